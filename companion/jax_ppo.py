"""The ablation's update in JAX (flax NNX, optax): torch's step, and the chapter's lines.

Batches are padded with zeros to a power of two and masked, so that few shapes are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, TypeAlias

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from numpy.typing import NDArray

from companion.ablation import ACTIONS, GAMMA, HIDDEN, LAM, OBSERVATIONS, AblationSettings
from companion.ablation_lines import MINIBATCH, MINIBATCH_PASSES, Minibatches
from companion.advantage import lambda_targets, standardized
from companion.batch import Batch
from companion.objective import clipped_objective, ratio
from companion.rollout import episodes

Floats: TypeAlias = NDArray[np.float32]
SMALLEST = 64  # samples that a batch is padded to at least


class Perceptron(nnx.Module):
    """Linear, tanh, Linear."""

    def __init__(self, outputs: int, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(OBSERVATIONS, HIDDEN, rngs=rngs)
        self.out = nnx.Linear(HIDDEN, outputs, rngs=rngs)

    def __call__(self, obs: jax.Array) -> jax.Array:
        """Return the outputs (..., n) for observations (..., 4)."""
        return self.out(jnp.tanh(self.hidden(obs)))


class Samples(NamedTuple):
    """What the losses need of each step; rows that pad are zeros and have mask 0."""

    obs: jax.Array  # (n, 4)
    actions: jax.Array  # (n,)
    adv: jax.Array  # (n,)
    target: jax.Array  # (n,)
    logp_old: jax.Array  # (n,)
    mask: jax.Array  # (n,): 1 for a sample, 0 for padding


class Terms(NamedTuple):
    """What the policy's loss was made of."""

    ratio: jax.Array  # (n,)
    kl: jax.Array  # mean of log pi_old - log pi
    entropy: jax.Array  # mean


def networks(seed: int) -> tuple[Perceptron, Perceptron]:
    """Make policy and value network of a seed, with flax's initialization."""
    rngs = nnx.Rngs(seed)
    return Perceptron(ACTIONS, rngs), Perceptron(1, rngs)


def optimizer(network: Perceptron, lr: float) -> nnx.Optimizer[Perceptron]:
    """Make Adam for a network."""
    return nnx.Optimizer(network, optax.adam(lr), wrt=nnx.Param)


def policy_loss(
    policy: Perceptron, samples: Samples, settings: AblationSettings
) -> tuple[jax.Array, Terms]:
    """Compute the policy's loss (minimized), as `companion.ablation.losses` does.

    - mean min(r A, clip(r) A) - 0.01 mean entropy  (chapter, section 8)

    Args:
        policy: network of logits.
        samples: batch, padded or not.
        settings: clip and entropy coefficient count.

    Returns:
        Loss and Terms.
    """
    rows = jax.nn.log_softmax(policy(samples.obs))
    logp = jnp.take_along_axis(rows, samples.actions[:, None], 1)[:, 0]
    r = ratio(logp, samples.logp_old)
    clip = settings.clip_range
    objective = r * samples.adv if clip is None else clipped_objective(r, samples.adv, clip)
    mean = partial(_mean, samples.mask)
    entropy = mean(-(jnp.exp(rows) * rows).sum(-1))
    loss = -mean(objective) - settings.entropy_coefficient * entropy
    return loss, Terms(r, mean(samples.logp_old - logp), entropy)


def value_loss(value: Perceptron, samples: Samples) -> jax.Array:
    """Compute the critic's loss: the mean squared error to the targets."""
    return _mean(samples.mask, (value(samples.obs)[:, 0] - samples.target) ** 2)


def policy_step(
    policy: Perceptron,
    adam: nnx.Optimizer[Perceptron],
    samples: Samples,
    settings: AblationSettings,
) -> Terms:
    """Take one step of the policy, in place; return what was there before it."""
    terms: Terms
    slopes, terms = nnx.grad(policy_loss, has_aux=True)(policy, samples, settings)
    adam.update(policy, slopes)
    return terms


def value_step(value: Perceptron, adam: nnx.Optimizer[Perceptron], samples: Samples) -> None:
    """Take one step of the critic, in place."""
    adam.update(value, nnx.grad(value_loss)(value, samples))


def freeze(policy: Perceptron, value: Perceptron, batch: Batch) -> Samples:
    """Compute what the steps on a batch start from, and pad it."""
    obs, following = jnp.asarray(batch.obs), jnp.asarray(batch.next_obs)
    v, after = (np.asarray(value(x)[:, 0]) for x in (obs, following))
    made = lambda_targets(batch.rewards, v, after, batch.terminated, batch.last, GAMMA, LAM)
    rows = np.asarray(jax.nn.log_softmax(policy(obs)))
    logp_old = np.take_along_axis(rows, batch.actions[:, None], 1)[:, 0]
    ones = np.ones(len(batch), np.float32)
    actions = batch.actions.astype(np.int32)
    return padded((batch.obs, actions, standardized(made.adv), made.target, logp_old, ones))


def padded(columns: Iterable[NDArray[np.generic]]) -> Samples:
    """Pad columns (n, ...), in the order of Samples, with zeros to the next power of two."""
    columns = list(columns)
    n = len(columns[0])
    size = max(SMALLEST, 1 << (n - 1).bit_length())
    fill = (np.pad(column, [(0, size - n)] + [(0, 0)] * (column.ndim - 1)) for column in columns)
    return Samples(*map(jnp.asarray, fill))


def first_batch(seed: int) -> tuple[Perceptron, Samples, int]:
    """Collect the first batch of a seed, its critic untrained; return policy, samples and n."""
    policy, value = networks(seed)
    probabilities = nnx.jit(lambda network, obs: jax.nn.softmax(network(obs)))
    rng = np.random.default_rng(seed)

    def act(obs: Floats) -> int:
        return int(rng.choice(ACTIONS, p=np.asarray(probabilities(policy, jnp.asarray(obs)))))

    with gym.make("CartPole-v1") as env:
        env.reset(seed=seed)
        batch = episodes(env, act, AblationSettings().episodes)
    return policy, freeze(policy, value, batch), len(batch)


def stale_ratios(settings: AblationSettings) -> Floats:
    """Do what `companion.ablation_lines.stale_ratios` does, in JAX.

    Args:
        settings: as there.

    Returns:
        (epochs, n) ratios of the samples after each step.
    """
    policy, samples, n = first_batch(settings.seed)
    steps = _steps(policy, samples, [samples] * settings.epochs, settings)
    return np.stack([np.asarray(terms.ratio)[:n] for terms in steps])


def minibatches(settings: AblationSettings) -> Minibatches:
    """Do what `companion.ablation_lines.minibatches` does, in JAX.

    Args:
        settings: as there.

    Returns:
        Minibatches.
    """
    policy, samples, n = first_batch(settings.seed)
    order = np.random.default_rng(settings.seed).permutation(n)
    slices = np.split(order, range(MINIBATCH, n, MINIBATCH)) * MINIBATCH_PASSES
    parts = [padded(np.asarray(column)[index] for column in samples) for index in slices]
    everything = [samples] * settings.epochs
    full, few = (_steps(policy, samples, some, settings)[-1] for some in (everything, parts))
    return Minibatches(n, settings.epochs, len(parts), float(full.kl), float(few.kl))


def _steps(
    start: Perceptron, samples: Samples, parts: Iterable[Samples], settings: AblationSettings
) -> list[Terms]:
    """Take a twin's step on each part; return what the whole batch says after each."""
    policy = nnx.clone(start)
    adam = optimizer(policy, settings.lr)
    step = nnx.jit(policy_step, static_argnums=3)
    evaluate = nnx.jit(policy_loss, static_argnums=2)
    after = []
    for part in parts:
        step(policy, adam, part, settings)
        after.append(evaluate(policy, samples, settings)[1])
    return after


def _mean(mask: jax.Array, values: jax.Array) -> jax.Array:
    return (mask * values).sum() / mask.sum()
