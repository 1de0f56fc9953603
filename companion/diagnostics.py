"""What to watch while a policy learns: two estimates of the KL, and the state of the ratios."""

from __future__ import annotations

from typing import NamedTuple

from companion.arrays import Array, check, namespace
from companion.objective import ratio


class ApproximateKl(NamedTuple):
    """Two estimates of mean KL(old, new) from the actions that the old policy took, nats."""

    direct: float  # mean of - log r: unbiased, of large variance, at times negative
    low_variance: float  # mean of (r - 1) - log r: unbiased too, never negative


def approximate_kl(logp: Array, logp_old: Array) -> ApproximateKl:
    """Estimate the mean KL from log-probabilities of the actions taken.

    E_old[- log r] = E_old[(r - 1) - log r] = KL(old || new), since E_old[r] = 1

    Args:
        logp: (n,) log-probabilities under the new policy, finite.
        logp_old: (n,) under the policy that took the actions.

    Returns:
        ApproximateKl.

    Raises:
        ValueError: an entry is not finite, or the shapes differ.

    Reference: Schulman 2020, "Approximating KL divergence"; Huang et al. 2022, debug variables.

    >>> import numpy as np
    >>> kl = approximate_kl(np.log([0.6, 0.4]), np.log([0.5, 0.5]))
    >>> f"{kl.direct:.4f} {kl.low_variance:.4f}"
    '0.0204 0.0204'
    """
    xp = namespace(logp=logp, logp_old=logp_old)
    check(xp, "logp", logp, abs(logp) < float("inf"), "finite")
    log_ratio = logp - logp_old
    r = ratio(logp, logp_old)
    return ApproximateKl(float(xp.mean(-log_ratio)), float(xp.mean((r - 1) - log_ratio)))


def explained_variance(values: Array, targets: Array) -> float:
    """Say which share of the targets' variance the values explain.

    1 - Var(G - v) / Var(G)

    Args:
        values: (n,) predictions.
        targets: (n,) returns.

    Returns:
        At most 1; 0 for constant values, NaN for constant targets.

    >>> import numpy as np
    >>> explained_variance(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    0.75
    """
    xp = namespace(values=values, targets=targets)
    spread = float(xp.var(targets))
    return 1 - float(xp.var(targets - values)) / spread if spread else float("nan")
