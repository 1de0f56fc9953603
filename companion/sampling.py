"""Draws from policies: the portable draw of the printed tables, and rollouts in tabular MDPs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from companion import validation
from companion.mdp import TabularMDP
from companion.policy import FloatArray, check_one_policy

if TYPE_CHECKING:
    import torch

MULTIPLIER = 1132489760
MODULUS = 2**31 - 1
FLOAT32_TOLERANCE = 1e-4  # a row of many float32 probabilities may be off by as much


def portable_categorical(p: torch.Tensor, *, generator: torch.Generator) -> torch.Tensor:
    """Draw one action per row of p, the same on every platform and in every PyTorch build.

    argmax_a p(a) / e(a), e(a) = -ln u(a),
    u from x' = 1132489760 x mod (2^31 - 1)  (chapter, section 6)

    The e(a) are exponential variables, so the smallest e(a) / p(a) falls on action a with
    probability p(a). `torch.multinomial` races in the same way, but with exponentials that depend
    on the build.

    Args:
        p: action probabilities, shape (N, A), any floating dtype; each row sums to 1.
        generator: CPU generator (`torch.default_generator` in the printed protocols). It advances
            by exactly one 32-bit word, whatever N and A.

    Returns:
        Actions, shape (N,), int64.

    Raises:
        ValueError: p is empty, is not a floating (N, A) tensor, or a row is not a distribution.

    Reference: L'Ecuyer 1999, table 2 (the multiplier).

    >>> import torch
    >>> p = torch.tensor([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]])
    >>> portable_categorical(p, generator=torch.Generator().manual_seed(0))
    tensor([1, 0, 1])
    """
    import torch

    if p.ndim != 2 or not p.is_floating_point():
        raise ValueError(
            f"p must be a floating tensor of shape (N, A); got {p.dtype} of shape {tuple(p.shape)}"
        )
    p = p.detach()
    validation.probabilities("p", p.double().numpy(), FLOAT32_TOLERANCE)
    x = torch.tensor([_next_word(generator) % MODULUS or 1])
    while len(x) < p.numel():
        # Twice as many at once: x_{n + k} = a^k x_n. The products stay below 2^62.
        x = torch.cat((x, x * pow(MULTIPLIER, len(x), MODULUS) % MODULUS))
    u = (x[: p.numel()].double() / MODULUS).float().reshape(p.shape)
    # In float64, because the float32 logarithm's last digit depends on the processor's vector unit.
    # u rounds to 1 about once in 3e7; then e = 0 would give 0 / 0 for an impossible action.
    e = -torch.log(u.double()).clamp(max=-torch.finfo(torch.float32).eps / 2)
    return (p / e).argmax(dim=-1)


def _next_word(generator: torch.Generator) -> int:
    import torch

    # No draw returns all 32 bits of one word: a 64-bit draw from a twin holds it in its high half,
    # and a 32-bit draw, which drops the top bit, moves the generator itself by the one word.
    both = torch.empty((), dtype=torch.int64)
    both.random_(-(2**63), None, generator=generator.clone_state())
    torch.empty((), dtype=torch.int32).random_(generator=generator)
    return (int(both) >> 32) % 2**32


def visits(
    mdp: TabularMDP, pi: ArrayLike, n: int, *, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw independent state-action pairs from d_pi x pi exactly.

    Pr(s) = (1 - gamma) sum_t gamma^t Pr(S_t = s | pi)  (chapter, section 2)

    Each pair comes from a walk of its own that stops after each step with probability 1 - gamma.

    Args:
        mdp: the MDP.
        pi: (S, A) policy.
        n: number of pairs.
        rng: source of the draws.

    Returns:
        states (n,), actions (n,), int64.

    Raises:
        ValueError: pi is not one policy of the MDP, n not a whole number of at least 1.
    """
    policy = check_one_policy(pi, mdp.shape)
    count = validation.whole("n", n, 1)
    remaining = validation.generator(rng).geometric(1 - mdp.gamma, size=count) - 1
    states = draw(np.broadcast_to(mdp.mu, (count, len(mdp.mu))), rng)
    actions = draw(policy[states], rng)
    while (walking := np.flatnonzero(remaining > 0)).size:
        states[walking] = draw(mdp.P[states[walking], actions[walking]], rng)
        actions[walking] = draw(policy[states[walking]], rng)
        remaining[walking] -= 1
    return states, actions


def trajectories(
    mdp: TabularMDP, pi: ArrayLike, n: int, horizon: int, *, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Roll a policy out from the start distribution, all episodes side by side.

    Args:
        mdp: the MDP.
        pi: (S, A) policy.
        n: number of episodes.
        horizon: steps of each.
        rng: source of the draws.

    Returns:
        states (n, horizon), actions (n, horizon), int64; rewards are mdp.r[states, actions].

    Raises:
        ValueError: pi is not one policy of the MDP, n or horizon not a whole number of at least 1.
    """
    policy = check_one_policy(pi, mdp.shape)
    count, steps = validation.whole("n", n, 1), validation.whole("horizon", horizon, 1)
    validation.generator(rng)
    states = np.empty((count, steps), dtype=np.int64)
    actions = np.empty((count, steps), dtype=np.int64)
    state = draw(np.broadcast_to(mdp.mu, (count, len(mdp.mu))), rng)
    for t in range(steps):
        states[:, t], actions[:, t] = state, draw(policy[state], rng)
        state = draw(mdp.P[state, actions[:, t]], rng)
    return states, actions


def effective_sample_share(weights: ArrayLike) -> float:
    """Say how evenly importance weights are spread, as a share of the sample.

    1 / (n sum_i w_i^2) for weights normalized to sum 1  (chapter, section 8)

    Args:
        weights: any shape, finite, not negative, not all 0; need not be normalized.

    Returns:
        Between 1/n (one weight carries everything) and 1 (all are equal).

    Raises:
        ValueError: a weight is negative, NaN or infinite, or all are 0.

    Reference: Kong 1992.

    >>> effective_sample_share([1.0, 1.0, 0.0, 0.0])
    0.5
    """
    w = validation.finite_array("weights", weights)
    if (w < 0).any() or not w.any():
        raise ValueError("weights must be at least 0 and not all 0")
    w = w / w.max()  # squares of very large or small weights would not be finite
    return float(w.sum() ** 2 / (w**2).sum() / w.size)


def draw(p: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one index from each row of p, shape (N, A), by inverting the cumulative sum."""
    # The last column is left out: it takes what is left over, whatever rounding did to the sum.
    cumulative = p.cumsum(axis=-1)[:, :-1]
    index: NDArray[np.int64] = (rng.random((len(p), 1)) >= cumulative).sum(axis=-1)
    return index
