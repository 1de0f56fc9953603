"""PPO's KL penalty where it can be maximized exactly: one step, and many under a drifting scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.objective import adapt_beta
from companion.policy import FloatArray, check_policy, kl, uniform

TARGET_KL = 0.01  # nats; the middle one of the three targets that the PPO paper tries
ITERATIONS = 60


def penalized_policy(old: ArrayLike, adv: ArrayLike, beta: ArrayLike) -> FloatArray:
    """Maximize the penalized objective over all policies, exactly, state by state.

    argmax_pi sum_a pi(a|s) A(s,a) - beta KL(old || pi)(s) = beta old / (x + max_a A - A)
    where x > 0 makes the row sum to 1  (chapter, section 5)

    Args:
        old: (..., S, A) policy, every probability above 0.
        adv: (..., S, A) advantages; a constant added to a row changes nothing.
        beta: penalty coefficient above 0; broadcasts against `adv`.

    Returns:
        (..., S, A) policy.

    Raises:
        ValueError: old not a policy or with a probability of 0, adv not finite or of another
            shape, beta not above 0.

    >>> penalized_policy([[0.5, 0.5]], [[1.0, -1.0]], 10.0).round(3)
    array([[0.55, 0.45]])
    """
    policy, coefficient = _check(old, beta)
    values = validation.finite_array("adv", adv)
    if values.shape != policy.shape:
        raise ValueError(f"adv must have old's shape {policy.shape}; got {values.shape}")
    validation.broadcastable(beta=coefficient.shape, adv=values.shape)
    weight = coefficient * policy
    shortfall = values.max(axis=-1, keepdims=True) - values
    # At this x a single action has probability 1 and the row sums to more. The sum is convex and
    # falls in x, so Newton's method goes up from here to the root without passing it.
    x = (weight - shortfall).max(axis=-1, keepdims=True)
    for _ in range(100):
        new = weight / (x + shortfall)
        excess = new.sum(axis=-1, keepdims=True) - 1
        if excess.max() < 1e-13:
            break
        x = x + excess / (new / (x + shortfall)).sum(axis=-1, keepdims=True)
    normalized: FloatArray = new / new.sum(axis=-1, keepdims=True)
    return normalized


def penalty_loop(
    drift: float,
    beta: float,
    *,
    adaptive: bool,
    rng: np.random.Generator,
    runs: int = 1,
    n_states: int = 100,
    n_actions: int = 4,
) -> tuple[FloatArray, FloatArray]:
    """Improve a policy again and again under a KL penalty while the advantages change scale.

    Every iteration moves the action values a little, takes their exact advantages under the present
    policy times a scale that goes from 1 to `drift` geometrically, and maximizes exactly.

    Args:
        drift: scale of the last iteration over that of the first, above 0.
        beta: penalty coefficient, of the first iteration if it is adaptive.
        adaptive: whether the coefficient follows the measured KL.
        rng: the source of the values.
        runs: independent runs.
        n_states, n_actions: shape of each policy.

    Returns:
        Mean KL(old, new) of each iteration, nats, and its coefficient, each (ITERATIONS, runs).

    Raises:
        ValueError: drift or beta not finite and above 0, a count that is not a whole number of at
            least 1, rng no generator.
    """
    scale = validation.positive("drift", drift)
    shape = (validation.whole("runs", runs, 1), n_states, n_actions)
    pi = np.broadcast_to(uniform(n_states, n_actions), shape)
    q = validation.generator(rng).standard_normal(shape)
    betas = np.full((ITERATIONS, runs), validation.positive("beta", beta))
    measured = np.empty((ITERATIONS, runs))
    for k in range(ITERATIONS):
        q = 0.9 * q + np.sqrt(1 - 0.9**2) * rng.standard_normal(shape)
        adv = scale ** (k / (ITERATIONS - 1)) * (q - (pi * q).sum(axis=-1, keepdims=True))
        new = penalized_policy(pi, adv, betas[k][:, None, None])
        measured[k] = kl(pi, new).mean(axis=-1)
        if adaptive and k + 1 < ITERATIONS:
            pairs = zip(betas[k], measured[k], strict=True)
            betas[k + 1] = [adapt_beta(float(b), float(x), TARGET_KL) for b, x in pairs]
        pi = new
    return measured, betas


def share_on_target(measured: FloatArray) -> FloatArray:
    """Return the share of iterations whose KL is within a factor of 4 of the target, per run."""
    share: FloatArray = (np.abs(np.log(measured / TARGET_KL)) <= np.log(4)).mean(axis=0)
    return share


def _check(old: ArrayLike, beta: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the policy and beta as arrays."""
    policy = check_policy(old, name="old")
    if not policy.all():
        where = tuple(int(i) for i in np.argwhere(policy == 0)[0])
        raise ValueError(f"old must be above 0 everywhere; {validation.entry('old', where)} is 0")
    coefficient = validation.finite_array("beta", beta)
    if (coefficient <= 0).any():
        raise ValueError(f"beta must be above 0; got {beta!r}")
    return policy, coefficient
