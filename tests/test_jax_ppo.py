"""The update in JAX is torch's, and gives the lines that the chapter's JAX run printed."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch import nn

from companion import ablation, ablation_lines, jax_ppo
from companion.ablation import AblationSettings
from companion.sampling import effective_sample_share
from companion.show import printed
from companion.threads import one_thread


def copied(network: nn.Sequential) -> jax_ppo.Perceptron:
    """A network in JAX with the parameters of torch's."""
    hidden, _, out = network
    twin = jax_ppo.Perceptron(len(out.bias), nnx.Rngs(0))
    for ours, theirs in ((twin.hidden, hidden), (twin.out, out)):
        ours.kernel[...] = jnp.asarray(theirs.weight.detach().numpy().T)
        ours.bias[...] = jnp.asarray(theirs.bias.detach().numpy())
    return twin


def assert_same(ours: jax_ppo.Perceptron, theirs: nn.Sequential) -> None:
    for layer, other in ((ours.hidden, theirs[0]), (ours.out, theirs[2])):
        np.testing.assert_allclose(layer.kernel[...].T, other.weight.detach(), atol=1e-5)
        np.testing.assert_allclose(layer.bias[...], other.bias.detach(), atol=1e-5)


@pytest.fixture(scope="module")
def collected() -> tuple[ablation.Agent, ablation.Samples, Any]:
    """torch's agent of seed 3 with its first batch, as torch's samples and as it is."""
    agent = ablation.initial_agent(3)
    with one_thread(), ablation.gym.make("CartPole-v1") as env:
        env.reset(seed=3)
        act = ablation.sampled(agent.policy, np.random.default_rng(3))
        batch = ablation.episodes(env, act, 8)
    return agent, ablation.samples(agent, batch), batch


@pytest.mark.parametrize("clip_range", [0.2, None])
def test_the_same_step_from_the_same_parameters_and_batch(
    collected: Any, clip_range: float | None
) -> None:
    _, samples, batch = collected
    settings = AblationSettings(clip_range=clip_range)
    theirs = ablation.initial_agent(3)
    policy = copied(theirs.policy)
    adam = jax_ppo.optimizer(policy, settings.lr)
    frozen = jax_ppo.freeze(policy, copied(theirs.value), batch)
    n = len(batch)
    assert len(frozen.mask) == 512 > n
    np.testing.assert_allclose(frozen.adv[:n], samples.adv, atol=1e-5)
    np.testing.assert_allclose(frozen.logp_old[:n], samples.logp_old, atol=1e-6)
    step = nnx.jit(jax_ppo.policy_step, static_argnums=3)
    for _ in range(5):
        expected = ablation.losses(theirs.policy, samples, settings)
        terms = step(policy, adam, frozen, settings)
        ablation.step(theirs.policy_adam, expected.loss)
        np.testing.assert_allclose(terms.ratio[:n], expected.ratio.detach(), atol=1e-5)
        assert float(terms.kl) == pytest.approx(expected.kl.item(), abs=1e-5)
        assert float(terms.entropy) == pytest.approx(expected.entropy.item(), abs=1e-5)
        assert_same(policy, theirs.policy)


def test_the_same_step_of_the_critic(collected: Any) -> None:
    _, _, batch = collected
    theirs = ablation.initial_agent(3)
    value = copied(theirs.value)
    adam = jax_ppo.optimizer(value, 1e-2)
    for _ in range(3):
        frozen = jax_ppo.freeze(copied(theirs.policy), value, batch)
        target = torch.from_numpy(ablation.estimate(theirs.value, batch).target)
        np.testing.assert_allclose(frozen.target[: len(batch)], target, atol=1e-4)
        v = theirs.value(torch.from_numpy(batch.obs)).squeeze(-1)
        ablation.step(theirs.value_adam, ((v - target) ** 2).mean())
        jax_ppo.value_step(value, adam, frozen)
        assert_same(value, theirs.value)


def test_every_line_that_is_exact() -> None:
    chapter = printed("ablation")["jax"]
    seed = ablation_lines.STALENESS_SEED
    stale = {
        name: jax_ppo.stale_ratios(AblationSettings(seed, clip))
        for name, clip in {"clipped": 0.2, "no clip": None}.items()
    }
    counted = jax_ppo.minibatches(AblationSettings(ablation_lines.MINIBATCH_SEED))
    kls = {name: f"{getattr(counted, name):.3f}" for name in ("kl_full_batch", "kl_minibatches")}
    ours = {
        "ess_after_20_epochs": {
            name: f"{effective_sample_share(ratios[-1]):.0%}" for name, ratios in stale.items()
        },
        "batch_steps": stale["clipped"].shape[1],
        "minibatch": counted._asdict() | kls,
    }
    assert ours == {name: chapter[name] for name in chapter["exact_lines"]}


@pytest.mark.parametrize(("n", "size"), [(1, 64), (64, 64), (65, 128), (386, 512)])
def test_batches_are_padded_to_a_power_of_two(n: int, size: int) -> None:
    columns = [np.ones((n, 4)), *np.ones((5, n))]
    made = jax_ppo.padded(columns)
    assert made.obs.shape == (size, 4)
    assert float(made.mask.sum()) == float(made.obs[:, 0].sum()) == n
