"""TRPO's step: surrogate gradient, conjugate gradient, scaling to a KL radius, line search.

Policies are those of `companion.fisher`, flat vectors those of `companion.parameters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from companion import validation
from companion.categorical import kl, taken
from companion.conjugate_gradient import Vector, conjugate_gradient
from companion.fisher import product_at
from companion.jacobian import Jacobian, jacobian
from companion.objective import ratio
from companion.parameters import after_step, move


def natural_step(direction: Vector, curvature: float, delta: float) -> Vector:
    """Return the multiple of a direction at which the quadratic model of the mean KL is delta.

    step = sqrt(2 delta / (d^T F d)) d, predicted gain g . step  (exercise 20.3)

    Args:
        direction: d, shape (P,): F^-1 g for the natural step, g for a vanilla step of the same KL.
        curvature: d^T F d. For d from conjugate gradient it is also g . d.
        delta: KL radius in nats, positive.

    Returns:
        The step, shape (P,); zero for the zero direction.

    Raises:
        ValueError: delta is not finite and positive, or d^T F d is not positive.

    Reference: Schulman et al. 2015, appendix C.

    >>> import numpy as np
    >>> natural_step(np.array([3.0]), curvature=36.0, delta=0.5)  # F = 4
    array([0.5])
    """
    validation.positive("delta", delta)
    if not direction.any():
        return direction
    if not 0.0 < curvature < math.inf:
        raise ValueError(
            f"curvature d . F d must be finite and positive; got {curvature} (raise damping)"
        )
    return math.sqrt(2.0 * delta / curvature) * direction


class Surrogate(NamedTuple):
    """The sampled surrogate around the parameters that collected the batch."""

    g: Tensor  # its gradient there, flat, shape (P,)
    evaluate: Callable[[Tensor], tuple[float, float]]  # step -> gain and mean KL, NaN if undefined


def local_surrogate(policy: nn.Module, obs: Tensor, actions: Tensor, adv: Tensor) -> Surrogate:
    """Return the gradient of the sampled surrogate, and what a step away from here gains and costs.

    g = grad mean_n ratio_n adv_n,
    gain = mean_n (ratio_n - 1) adv_n, kl = mean KL(old||new)  (chapter, section 4)

    Args:
        policy: module from observations to logits, with the parameters that collected the data.
        obs: observations, shape (N, ...).
        actions: actions taken, shape (N,), int64 or int32, in [0, A).
        adv: advantages, shape (N,).

    Returns:
        The gradient, and the function step -> (gain, mean KL(old||new) in nats), which leaves the
        policy as it is, and returns NaN where the step makes a logit NaN.

    Raises:
        ValueError: the batch is empty, shapes differ, actions are of another dtype, one is out of
            range or has probability 0, or an advantage is not finite.

    Reference: Schulman et al. 2015, equation 14.

    >>> policy = nn.Linear(1, 2, bias=False)
    >>> g, evaluate = local_surrogate(policy, torch.ones(2, 1), torch.tensor([0, 1]), torch.ones(2))
    >>> evaluate(torch.zeros(2))
    (0.0, 0.0)
    """
    return _surrogate_at(jacobian(policy, obs), policy, obs, actions, adv)


def _surrogate_at(
    J: Jacobian, policy: nn.Module, obs: Tensor, actions: Tensor, adv: Tensor
) -> Surrogate:
    with torch.enable_grad():
        logits = J.logits.detach().requires_grad_()
        rows = logits.log_softmax(-1)
        logp = _log_probabilities(rows, actions, adv)
        (slope,) = torch.autograd.grad((ratio(logp, logp.detach()) * adv).mean(), logits)
    g = J.pull(slope)
    rows_old, logp_old = rows.detach(), logp.detach()
    after = after_step(policy, obs)

    @torch.no_grad()
    def evaluate(step: Tensor) -> tuple[float, float]:
        rows = after(step)
        if bool(rows.isnan().any()):
            return math.nan, math.nan
        # mean(r A) - mean(A) would lose small gains to rounding in float32.
        gain = ((ratio(taken(rows, actions), logp_old) - 1.0) * adv).mean()
        return float(gain), float(kl(rows_old, rows).mean())

    return Surrogate(g, evaluate)


class LineSearch(NamedTuple):
    """What a line search found."""

    fraction: float  # of the step to take; 0.0: keep the old parameters
    gain: float  # of the surrogate over the old parameters, at that fraction
    kl: float  # mean KL(old||new) there, nats
    halvings: int
    accepted: bool


def line_search(
    evaluate: Callable[[Tensor], tuple[float, float]],
    step: Tensor,
    *,
    delta: float = 0.01,
    halvings: int = 10,
) -> LineSearch:
    """Halve a step until the policy has not moved too far and the surrogate has improved.

    first fraction of 1, 1/2, 1/4, ... with mean KL <= delta and gain > 0  (chapter, section 4)

    Args:
        evaluate: the function step -> (gain, kl), as surrogate returns it.
        step: flat step, shape (P,).
        delta: KL radius in nats, positive.
        halvings: most halvings, at least 0.

    Returns:
        The first fraction that passes, or fraction 0.0: keep the old parameters. NaN never passes.

    Raises:
        ValueError: delta is not finite and positive, or halvings not a whole number >= 0.

    Reference: Schulman et al. 2015, appendix C.

    >>> line_search(lambda x: (float(x), float(x) ** 2), torch.tensor(1.0), delta=0.1)
    LineSearch(fraction=0.25, gain=0.25, kl=0.0625, halvings=2, accepted=True)
    """
    validation.positive("delta", delta)
    validation.whole("halvings", halvings, at_least=0)
    for halved in range(halvings + 1):
        fraction = 0.5**halved
        gain, kl = evaluate(fraction * step)
        if kl <= delta and gain > 0.0:
            return LineSearch(fraction, gain, kl, halved, accepted=True)
    return LineSearch(0.0, 0.0, 0.0, halvings, accepted=False)


@dataclass(frozen=True, eq=False)  # == on tensors has no single truth value
class TrpoStep:
    """One TRPO step: what was proposed, and what the line search made of it."""

    g: Tensor  # gradient of the surrogate, shape (P,)
    direction: Tensor  # conjugate gradient's solution of F x = g, shape (P,)
    step: Tensor  # scaled to the quadratic KL delta; the line search took search.fraction of it
    predicted_gain: float  # g . step
    search: LineSearch


def trpo_step(
    policy: nn.Module,
    obs: Tensor,
    actions: Tensor,
    adv: Tensor,
    *,
    delta: float = 0.01,
    damping: float = 0.1,
    cg_iterations: int = 10,
    halvings: int = 10,
    fisher_every: int = 1,
) -> TrpoStep:
    """Change the policy's parameters in place by one TRPO step, or not at all.

    theta += sqrt(2 delta / (g^T F^-1 g)) F^-1 g, halved until it passes  (chapter, section 4)

    Args:
        policy, obs, actions, adv: as for `local_surrogate`.
        delta: KL radius in nats, positive.
        damping: added to the Fisher matrix's diagonal; at least 0.
        cg_iterations: most steps of conjugate gradient, at least 1.
        halvings: most halvings of the line search.
        fisher_every: Fisher-vector products use one observation in this many (10 uses 10 %).

    Returns:
        The step and what it gained. If nothing passed, the parameters are the same to the bit.

    Raises:
        ValueError: an argument is out of range, the batch is empty or its shapes differ, an
            action has probability 0, an advantage is not finite, or conjugate gradient meets a
            matrix that is not positive definite.

    Reference: Schulman et al. 2015, section 6, appendix C.

    >>> policy = nn.Embedding.from_pretrained(torch.zeros(1, 2), freeze=False)  # one state
    >>> state, action, adv = torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([1.0, -1.0])
    >>> trpo_step(policy, state, action, adv, damping=0.0).search.accepted
    True
    >>> round(float(policy.weight.detach().softmax(-1)[0, 0]), 2)  # sigmoid(2 sqrt(2 delta))
    0.57
    """
    validation.whole("cg_iterations", cg_iterations, at_least=1)
    validation.whole("fisher_every", fisher_every, at_least=1)
    J = jacobian(policy, obs)
    g, evaluate = _surrogate_at(J, policy, obs, actions, adv)
    if fisher_every > 1:
        J = jacobian(policy, obs[::fisher_every])
    product = product_at(J, damping)
    # Below rounding, a residual of a singular Fisher matrix leads into its null space.
    tolerance = 10 * torch.finfo(g.dtype).eps
    direction = conjugate_gradient(product, g, cg_iterations, tolerance)
    # The residual F d - g is orthogonal to d, so that d . F d = g . d: one product less.
    step = natural_step(direction, float(g @ direction), delta)
    search = line_search(evaluate, step, delta=delta, halvings=halvings)
    if search.accepted:
        move(policy, search.fraction * step)
    return TrpoStep(g, direction, step, float(g @ step), search)


def _log_probabilities(rows: Tensor, actions: Tensor, adv: Tensor) -> Tensor:
    n, n_actions = rows.shape
    if actions.shape != (n,) or adv.shape != (n,):
        raise ValueError(
            f"actions has shape {tuple(actions.shape)} and adv {tuple(adv.shape)}; "
            f"both must have shape ({n},), one entry for each observation"
        )
    allowed = f"actions must be whole numbers from 0 to {n_actions - 1}"
    if actions.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{allowed}, of dtype int64 or int32; theirs is {actions.dtype}")
    if not bool(((actions >= 0) & (actions < n_actions)).all()):
        raise ValueError(allowed)
    if not bool(adv.isfinite().all()):
        row = int((~adv.isfinite()).nonzero()[0])
        raise ValueError(f"adv must be finite; adv[{row}] is {float(adv[row])}")
    logp = taken(rows, actions)
    if bool(logp.isneginf().any()):
        row = int(logp.isneginf().nonzero()[0])
        raise ValueError(f"actions[{row}] = {int(actions[row])} has probability 0 under policy")
    return logp
