"""PPO's update against A2C's, finite differences and closed forms; what each option changes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from companion.actor_critic import ActorCritic, actor_critic
from companion.batch import Batch
from companion.diagnostics import approximate_kl
from companion.distribution import Categorical, Gaussian
from companion.ppo import PPO, Diverged
from companion.ppo_loss import Samples, a2c_loss, freeze, ppo_loss
from companion.ppo_settings import ATARI, CONTINUOUS_CONTROL, PPOSettings
from companion.trpo import TRPO, TRPOSettings

OBS = gym.spaces.Box(-1, 1, (3,))
SPACES: dict[str, gym.Space[Any]] = {
    "discrete": gym.spaces.Discrete(4),
    "gaussian": gym.spaces.Box(-1, 1, (2,)),
}
WHOLE = PPOSettings(epochs=1, minibatch=None)


def make(kind: str, *, shared: bool = False, seed: int = 0) -> tuple[ActorCritic, Batch]:
    """Networks and a batch that they collected in a world of noise, in three stretches."""
    agent = actor_critic(OBS, SPACES[kind], seed=seed, hidden=(8,), shared=shared)
    rng = np.random.default_rng(seed)
    obs, next_obs = rng.normal(size=(2, 40, 3)).astype(np.float32)
    rewards = rng.normal(size=40).astype(np.float32)
    ends = [np.arange(40) == k for k in (10, 25, 39)]
    return agent, Batch(obs, agent.sampler(rng)(obs), rewards, next_obs, *ends)


def moved(agent: ActorCritic, size: float = 0.3) -> ActorCritic:
    """A copy whose parameters are some way from the agent's."""
    other = copy.deepcopy(agent)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for w in other.parameters():
            w += size * torch.randn(w.shape, generator=generator)
    return other


def flat(agent: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(agent.parameters()).detach().clone()


# ------------------------------------------------------------------------------------------- A2C


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("method", ["clip", "none"])
def test_one_epoch_on_the_whole_batch_is_a2cs_update(kind: str, shared: bool, method: Any) -> None:
    agent, batch = make(kind, shared=shared)
    settings = replace(
        WHOLE, method=method, entropy_coefficient=0.01, value_coefficient=0.5, max_grad_norm=0.5
    )
    other = copy.deepcopy(agent)
    adam = torch.optim.Adam(other.parameters(), settings.lr, eps=settings.adam_eps)
    a2c_loss(other, freeze(other, batch, settings), settings).backward()
    nn.utils.clip_grad_norm_(other.parameters(), 0.5)
    adam.step()
    before = flat(agent)
    PPO(agent, settings, rng=np.random.default_rng(0)).update(batch)
    step = flat(other) - before
    assert step.norm() > 1e-3
    torch.testing.assert_close(flat(agent) - before, step, rtol=1e-3, atol=1e-6)


def test_two_epochs_are_not_a2cs() -> None:
    agent, batch = make("discrete")
    settings = replace(WHOLE, epochs=2, lr=0.03)
    other = copy.deepcopy(agent)
    adam = torch.optim.Adam(other.parameters(), settings.lr, eps=settings.adam_eps)
    samples = freeze(other, batch, settings)
    for _ in range(2):
        adam.zero_grad()
        a2c_loss(other, samples, settings).backward()
        adam.step()
    PPO(agent, settings, rng=np.random.default_rng(0)).update(batch)
    assert (flat(agent) - flat(other)).abs().max() > 1e-3


# ----------------------------------------------------------------------------------------- losses

OBJECTIVES: dict[str, dict[str, Any]] = {
    "clip": {},
    "clip-higher": {"clip_range": 0.1, "clip_range_high": 0.4},
    "kl": {"method": "kl", "beta": 3.0},
    "none": {"method": "none"},
    "clipped value": {"value_clip_range": 0.1},
    "entropy": {"entropy_coefficient": 0.5},
    "minibatch": {"normalize": "minibatch"},
    "as they are": {"normalize": "none"},
}


@pytest.mark.parametrize("change", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("kind", SPACES)
def test_gradients_are_finite_differences(kind: str, change: dict[str, Any]) -> None:
    agent, batch = make(kind)
    settings = replace(WHOLE, **change)
    samples = Samples(
        *(t.double() if t.is_floating_point() else t for t in freeze(agent, batch, settings))
    )
    agent = moved(agent).double()
    start = flat(agent)

    def loss(at: Tensor) -> float:
        nn.utils.vector_to_parameters(at, agent.parameters())
        return ppo_loss(agent, samples, settings, beta=settings.beta).loss.item()

    loss(start)
    terms = ppo_loss(agent, samples, settings, beta=settings.beta)
    gradient = torch.cat(
        [g.flatten() for g in torch.autograd.grad(terms.loss, list(agent.parameters()))]
    )
    for seed in range(3):
        direction = torch.randn(len(start), generator=torch.Generator().manual_seed(seed)).double()
        slope = (loss(start + 1e-6 * direction) - loss(start - 1e-6 * direction)) / 2e-6
        assert float(gradient @ direction) == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_at_the_start_the_ratio_is_1_and_the_loss_that_of_mean_advantage_0() -> None:
    agent, batch = make("discrete")
    samples = freeze(agent, batch, WHOLE)
    terms = ppo_loss(agent, samples, WHOLE)
    assert bool((terms.ratio == 1).all())
    assert terms.kl.item() == 0
    expected = ((samples.v_old - samples.target) ** 2).mean().item()
    assert terms.loss.item() == pytest.approx(expected, abs=1e-6)


def test_the_annealed_band_is_narrower() -> None:
    agent, batch = make("discrete")
    samples = freeze(agent, batch, WHOLE)
    other = moved(agent)
    full = ppo_loss(other, samples, replace(WHOLE, clip_range=0.05)).loss
    scaled = ppo_loss(other, samples, replace(WHOLE, clip_range=0.2), clip_scale=0.25).loss
    torch.testing.assert_close(scaled, full)


# ---------------------------------------------------------------------------------------- options


def update(change: dict[str, Any], progress: float = 0.0) -> tuple[PPO, Any, Tensor]:
    agent, batch = make("discrete")
    settings = PPOSettings(**{"minibatch": 10, "lr": 0.01, "epochs": 4} | change)
    learner = PPO(agent, settings, rng=np.random.default_rng(0))
    before = flat(agent)
    record = learner.update(batch, progress)
    return learner, record, flat(agent) - before


def test_epochs_end_when_the_kl_exceeds_the_limit() -> None:
    _, free, _ = update({"epochs": 20})
    _, stopped, _ = update({"epochs": 20, "stop_kl": 0.015})
    kls = [epoch.kl for epoch in stopped.epochs]
    assert len(free.epochs) == 20 > len(kls) > 1
    assert kls[-1] > 0.015 >= max(kls[:-1])


def test_a_step_size_annealed_to_half_halves_the_first_step() -> None:
    one = {"epochs": 1, "minibatch": None, "anneal_lr": True}
    _, _, full = update(one)
    _, _, half = update(one, progress=0.5)
    torch.testing.assert_close(half, full / 2, rtol=1e-4, atol=1e-6)


def test_a_limited_gradient_still_reports_its_length() -> None:
    _, free, _ = update({"epochs": 1})
    _, limited, _ = update({"epochs": 1, "max_grad_norm": 0.1})
    assert limited.epochs[0].grad_norm > 0.1
    assert limited.epochs[0].grad_norm == pytest.approx(free.epochs[0].grad_norm, rel=0.2)


def test_beta_doubles_and_halves_by_the_measured_kl() -> None:
    far, _, _ = update({"method": "adaptive kl", "beta": 0.1, "target_kl": 1e-4})
    near, _, _ = update({"method": "adaptive kl", "beta": 8.0, "target_kl": 10.0})
    fixed, _, _ = update({"method": "kl", "beta": 8.0, "target_kl": 10.0})
    assert (far.beta, near.beta, fixed.beta) == (0.2, 4.0, 8.0)


def test_a_penalty_keeps_the_policy_near() -> None:
    kls = [
        update({"method": "kl", "beta": beta, "epochs": 20})[1].epochs[-1].kl
        for beta in (0.01, 1.0, 100.0)
    ]
    assert kls == sorted(kls, reverse=True)
    assert kls[0] > 10 * kls[2]


def test_minibatches_are_shuffled_and_the_same_seed_gives_the_same_bits() -> None:
    steps = []
    for seed in (0, 0, 1):
        agent, batch = make("gaussian")
        settings = PPOSettings(minibatch=16, epochs=2)
        PPO(agent, settings, rng=np.random.default_rng(seed)).update(batch)
        steps.append(flat(agent))
    assert torch.equal(steps[0], steps[1])
    assert not torch.equal(steps[0], steps[2])


def test_a_diverging_run_says_where_and_what_was_healthy_last() -> None:
    agent, batch = make("discrete")
    learner = PPO(agent, PPOSettings(minibatch=20, lr=1e36), rng=np.random.default_rng(0))
    pattern = r"update 0, epoch \d, minibatch \d: .*; last healthy epoch: (None|EpochRecord\(loss)"
    with pytest.raises(Diverged, match=pattern):
        learner.update(batch)


def test_a_run_that_was_healthy_before_it_diverged() -> None:
    agent, batch = make("discrete")
    learner = PPO(agent, PPOSettings(epochs=2), rng=np.random.default_rng(0))
    record = learner.update(batch)
    with torch.no_grad():
        next(agent.value.parameters()).fill_(math.nan)
    with pytest.raises(Diverged) as caught:
        learner.update(batch)
    assert "update 1, epoch 0, minibatch 0" in str(caught.value)
    assert str(record.epochs[-1]) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("method", "trpo"), ("clip_range", 0.0), ("minibatch", 0), ("gamma", 1.5), ("beta", 0.0)]
    + [("stop_kl", -1.0), ("value_coefficient", math.nan), ("normalize", "yes"), ("n_envs", 0)],
)
def test_settings_that_cannot_be(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        PPOSettings(**{field: value})


def test_presets_are_the_papers() -> None:
    mujoco, atari = CONTINUOUS_CONTROL, ATARI
    assert (mujoco.n_envs * mujoco.steps, mujoco.epochs, mujoco.minibatch) == (2048, 10, 64)
    assert (mujoco.lr, mujoco.gamma, mujoco.lam, mujoco.clip_range) == (3e-4, 0.99, 0.95, 0.2)
    assert mujoco.entropy_coefficient == 0
    assert (atari.n_envs, atari.steps, atari.epochs, atari.minibatch) == (8, 128, 3, 32 * 8)
    assert (atari.lr, atari.gamma, atari.lam, atari.clip_range) == (2.5e-4, 0.99, 0.95, 0.1)
    assert (atari.value_coefficient, atari.entropy_coefficient) == (1, 0.01)
    assert atari.anneal_lr
    assert atari.anneal_clip


# ---------------------------------------------------------------------------------- distributions


def test_categorical_is_torchs() -> None:
    logits, other = torch.randn(2, 50, 4, generator=torch.Generator().manual_seed(0))
    ours, theirs = Categorical.of(logits), torch.distributions.Categorical(logits=logits)
    new = torch.distributions.Categorical(logits=other)
    actions = torch.arange(50) % 4
    torch.testing.assert_close(ours.logp(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    expected = torch.distributions.kl_divergence(theirs, new)
    torch.testing.assert_close(Categorical.of(other).kl_from(logits), expected)


def test_gaussian_is_torchs() -> None:
    output, other = torch.randn(2, 50, 6, generator=torch.Generator().manual_seed(0))
    both = [
        torch.distributions.Independent(torch.distributions.Normal(o[:, :3], o[:, 3:].exp()), 1)
        for o in (output, other)
    ]
    ours, actions = Gaussian.of(output), torch.ones(50, 3)
    torch.testing.assert_close(ours.logp(actions), both[0].log_prob(actions))
    torch.testing.assert_close(ours.entropy(), both[0].entropy())
    expected = torch.distributions.kl_divergence(*both)
    torch.testing.assert_close(Gaussian.of(other).kl_from(output), expected)


def test_samples_follow_the_distribution() -> None:
    rng = np.random.default_rng(0)
    p = torch.tensor([0.1, 0.0, 0.6, 0.3])
    actions = Categorical.of(p.log().expand(100_000, 4)).sample(rng)
    assert np.bincount(actions, minlength=4) / 1e5 == pytest.approx(p.numpy(), abs=0.006)
    assert not (actions == 1).any()
    output = torch.tensor([1.0, -2.0, 0.0, -1.0]).expand(100_000, 4)
    drawn = Gaussian.of(output).sample(rng)
    assert drawn.mean(axis=0) == pytest.approx([1.0, -2.0], abs=0.02)
    assert drawn.std(axis=0) == pytest.approx([1.0, math.exp(-1)], abs=0.02)


def test_both_estimates_of_the_kl_are_unbiased_and_one_varies_less() -> None:
    old = torch.tensor([[0.0, 0.5, 1.0]])
    new = torch.tensor([[0.1, 0.3, 1.2]])
    exact = Categorical.of(new).kl_from(old).item()
    draw: Callable[[int], Any] = np.random.default_rng
    estimates = []
    for seed in range(200):
        rows = old.expand(500, 3)
        actions = torch.from_numpy(Categorical.of(rows).sample(draw(seed)))
        logp = Categorical.of(new.expand(500, 3)).logp(actions)
        estimates.append(approximate_kl(logp, Categorical.of(rows).logp(actions)))
    direct, low = np.array(estimates).T
    for values in (direct, low):
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - exact) < 4 * error
    assert low.std() < direct.std() / 5
    assert low.min() >= 0


# ------------------------------------------------------------------------------------------- TRPO


def test_trpo_steps_within_the_radius_and_fits_the_critic() -> None:
    agent, batch = make("discrete")
    learner = TRPO(agent, TRPOSettings(critic_epochs=1), rng=np.random.default_rng(0))
    records = [learner.update(batch) for _ in range(20)]
    assert all(0 < r.search.kl <= 0.01 for r in records if r.search.accepted)
    assert records[0].search.accepted
    assert records[0].search.gain == pytest.approx(records[0].predicted_gain, rel=0.5)
    assert records[-1].value_loss < records[0].value_loss


def test_trpo_needs_a_categorical_policy_of_its_own() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="must have a categorical policy"):
        TRPO(make("gaussian")[0], TRPOSettings(), rng=rng)
    with pytest.raises(ValueError, match="must not share parameters"):
        TRPO(make("discrete", shared=True)[0], TRPOSettings(), rng=rng)
