"""The compiled ablation: the same steps as the readable one's, and the same rates over seeds."""

from __future__ import annotations

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from companion import ablation, ablation_lines
from companion.ablation import AblationRun, AblationSettings, Agent, Samples
from companion.ablation_records import Records, repeated_reference, summarized
from companion.batch import Batch
from companion.compiled import agent as kernels
from companion.compiled import ppo
from companion.rollout import episodes
from companion.threads import one_thread
from tests.test_compiled import python


@pytest.fixture(scope="module")
def collected() -> tuple[Agent, Batch, Samples]:
    """An agent that has moved on from its start, and a batch with episodes that a limit cuts."""
    settings = AblationSettings(seed=0)
    agent = ablation.initial_agent(0)
    rng = np.random.default_rng(0)
    with one_thread(), gym.make("CartPole-v1", max_episode_steps=30) as env:
        env.reset(seed=0)
        batch = episodes(env, ablation.sampled(agent.policy, rng), 8)
        ablation.fit_critic(agent, batch)
        samples = ablation.samples(agent, batch)
        ablation.improve(agent, samples, replace(settings, epochs=15))
    assert batch.truncated.any()
    assert batch.terminated.any()
    return agent, batch, samples


def rules(settings: AblationSettings) -> kernels.Rules:
    return ppo._rules(settings)


def compiled_batch(batch: Batch, samples: Samples) -> tuple[kernels.Batch, kernels.Block]:
    into, block = kernels._space(8)
    n = len(batch)
    into.obs[:, :n], into.sign[:n] = batch.obs.T, 2 * batch.actions - 1
    into.last[:n], into.fell[:] = batch.last, batch.terminated[batch.last]
    into.after[:] = batch.next_obs[batch.last].T
    into.adv[:n], into.p_old[:n] = samples.adv, samples.logp_old.exp()
    into.logp_old[0] = samples.logp_old.sum()
    return into, block


@pytest.mark.parametrize("clip_range", [0.02, 0.2, None])
@pytest.mark.parametrize("entropy_coefficient", [0.0, 0.01, 1.0])
def test_the_policys_slopes_and_diagnostics_are_torchs(
    collected: tuple[Agent, Batch, Samples], clip_range: float | None, entropy_coefficient: float
) -> None:
    agent, batch, samples = collected
    settings = AblationSettings(clip_range=clip_range, entropy_coefficient=entropy_coefficient)
    losses = ablation.losses(agent.policy, samples, settings)
    expected = torch.autograd.grad(losses.loss, list(agent.policy.parameters()))
    hidden_weight, hidden_bias, weight, bias = (g.numpy() for g in expected)
    state = ppo._state(ppo._parameters(agent.policy))
    policy, slopes = kernels._network(state[0]), kernels._network(state[1])
    into, block = compiled_batch(batch, samples)
    outside, kl, entropy = kernels._policy_pass(
        policy, slopes, into, block, len(batch), rules(settings), False
    )
    assert 0.05 < outside == pytest.approx(((losses.ratio - 1).abs() > 0.2).float().mean().item())
    assert kl == pytest.approx(losses.kl.item(), abs=2e-6)
    assert entropy == pytest.approx(losses.entropy.item(), abs=1e-6)
    np.testing.assert_allclose(weight[0], -weight[1], atol=1e-6)  # why the difference is enough
    for ours, theirs in zip(slopes, (hidden_weight, hidden_bias, weight[1], bias[1:]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


def test_the_critics_slopes_and_advantages_are_torchs(
    collected: tuple[Agent, Batch, Samples],
) -> None:
    agent, batch, samples = collected
    made = ablation.estimate(agent.value, batch)
    v = agent.value(torch.from_numpy(batch.obs)).squeeze(-1)
    loss = ((v - torch.from_numpy(made.target)) ** 2).mean()
    expected = torch.autograd.grad(loss, list(agent.value.parameters()))
    state = ppo._state(ppo._parameters(agent.value))
    value, slopes = kernels._network(state[0]), kernels._network(state[1])
    into, block = compiled_batch(batch, samples)
    kernels._value_pass(value, slopes, into, block, len(batch), rules(AblationSettings()), True)
    np.testing.assert_allclose(into.adv[: len(batch)], made.adv, rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy().reshape(ours.shape), rtol=1e-3, atol=1e-4)


def test_whole_updates_are_torchs(collected: tuple[Agent, Batch, Samples]) -> None:
    """Twenty steps on one batch, ratios checked before each, from the agent's first parameters."""
    _, batch, _ = collected
    settings = AblationSettings(seed=5)
    agent = ablation.initial_agent(5)
    samples = ablation.samples(agent, batch)
    first = ppo._parameters(agent.policy).copy()
    state = ppo._state(first)
    policy, slopes = kernels._network(state[0]), kernels._network(state[1])
    into, block = compiled_batch(batch, samples)
    rows = []
    for k in range(20):
        state[1] = 0
        n = len(batch)
        rows.append(kernels._policy_pass(policy, slopes, into, block, n, rules(settings), False))
        kernels._adam(state, k + 1, settings.lr, 2.0)
    expected = np.array(ablation.improve(agent, samples, settings))
    np.testing.assert_allclose(np.array(rows)[:, 1:], expected[:, 1:], atol=2e-5)
    np.testing.assert_allclose(np.array(rows)[:, 0], expected[:, 0], atol=1.01 / len(batch))
    np.testing.assert_allclose(
        ppo._moved(first, state[0]), ppo._parameters(agent.policy), atol=2e-4
    )


def test_cart_and_pole_move_as_gymnasiums() -> None:
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)
    for episode in range(30):
        env.reset(seed=episode)
        state = np.array(env.unwrapped.state)  # type: ignore[attr-defined]
        fell = False
        while not fell:
            action = int(rng.integers(2))
            obs, _, terminated, _, _ = env.step(action)
            fell = kernels.move(state, 10.0 if action else -10.0)
            np.testing.assert_allclose(obs, state, rtol=1e-6, atol=1e-9)
            assert fell == terminated
    env.close()


def test_functions_are_accurate() -> None:
    x = np.concatenate([np.linspace(-12, 12, 2001), np.geomspace(1e-20, 1e20, 200)])
    ours = [kernels.tanh(np.float32(one)) for one in x]
    np.testing.assert_allclose(ours, np.tanh(x), atol=4e-7)
    x = np.linspace(0, 80, 2001)
    np.testing.assert_allclose([kernels.decaying(one) for one in x], np.exp(-x), rtol=1e-6)
    assert kernels.decaying(1e6) == pytest.approx(math.exp(-80), rel=1e-6)
    q = np.linspace(0, 1, 1001, dtype=np.float32)
    ours = [kernels.log_of_one_and(one) for one in q]
    np.testing.assert_allclose(ours, np.log1p(q.astype(float)), rtol=4e-7)


def assert_same(one: AblationRun, other: AblationRun) -> None:
    assert one.settings == other.settings
    for name in ("returns", "outside", "kl", "entropy", "parameters"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_runs_are_the_same_bit_for_bit_whatever_the_number_of_threads() -> None:
    some = [AblationSettings(seed, clip, updates=5) for seed in range(3) for clip in (0.2, None)]
    for threads in (1, 2, 5):
        for run, settings in zip(ppo.run_all(some, threads), some, strict=True):
            assert_same(run, ppo.run(settings))


def test_it_starts_from_the_readable_ones_networks() -> None:
    settings = AblationSettings(seed=4, updates=1, epochs=1, lr=1e-12)
    first = ppo._parameters(ablation.initial_agent(4).policy)
    np.testing.assert_allclose(ppo.run(settings).parameters, first, atol=1e-7)


@pytest.fixture(scope="module")
def pooled() -> dict[str, Records]:
    clips = {"clipped": 0.2, "no clip": None}
    return {
        name: summarized(ppo.run_all(ablation_lines.settings(clip, range(48))))
        for name, clip in clips.items()
    }


def test_clipped_runs_never_die(pooled: dict[str, Records]) -> None:
    assert not pooled["clipped"].dead.any()
    assert not repeated_reference()["clipped"].dead.any()


def test_unclipped_runs_die_as_often_as_the_references(pooled: dict[str, Records]) -> None:
    """Within the 99 % interval of the difference of two proportions; and about half."""
    p, q = (some["no clip"].dead.mean() for some in (pooled, repeated_reference()))
    assert abs(p - q) < 2.58 * math.sqrt((p * (1 - p) + q * (1 - q)) / 48)
    assert 0.3 < p < 0.7


@pytest.mark.parametrize("name", ["clipped", "no clip"])
@pytest.mark.parametrize("line", ["outside", "outside_last", "entropy_first", "entropy_last"])
def test_means_over_seeds_are_the_references(
    pooled: dict[str, Records], name: str, line: str
) -> None:
    """Within the 99 % interval of the difference of two means."""
    ours, reference = (getattr(some[name], line) for some in (pooled, repeated_reference()))
    error = math.hypot(ours.std(ddof=1), reference.std(ddof=1)) / math.sqrt(48)
    assert abs(ours.mean() - reference.mean()) < 2.58 * error


def test_a_second_process_compiles_nothing() -> None:
    use = """
from companion.compiled import agent, ppo
ppo.run(ppo.AblationSettings(updates=1))
kernels = [f for f in vars(agent).values() if hasattr(f, "stats") and f.signatures]
print(sum(sum(f.stats.cache_misses.values()) for f in kernels))
"""
    python(use)
    assert python(use) == "0\n"


def test_more_episodes_than_a_block_holds() -> None:
    some = AblationSettings(seed=1, updates=2, episodes=3 * kernels.BLOCK)
    done = ppo.run(some)
    assert done.returns.shape == (2, 384)
    assert (done.returns >= 1).all()
    assert done.entropy[0, 0] == pytest.approx(math.log(2), abs=0.02)


def test_a_lost_policy_says_where() -> None:
    with pytest.raises(FloatingPointError, match=r"NaN in update \d+ of .*seed=3.*last healthy"):
        ppo.run(AblationSettings(seed=3, lr=1e38))
