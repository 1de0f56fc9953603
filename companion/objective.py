"""PPO's objectives and their derivatives, one formula for every array library; adaptive penalty.

Arrays may be NumPy, PyTorch (autograd flows through) or JAX arrays. Every function works sample by
sample: the mean, and the sign that turns an objective into a loss, are left to the caller. Inside
jax.jit or torch.func.vmap, where values are not known yet, only shapes and numbers are checked.
"""

from __future__ import annotations

import math
from typing import Any

from companion.arrays import Array, check, namespace
from companion.validation import is_finite, non_negative, positive


def ratio(logp: Array, logp_old: Array) -> Array:
    """Compute the probability ratio of the new policy to the old one at the actions taken.

    r = pi(a|s) / pi_old(a|s) = exp(logp - logp_old)  (chapter, section 2)

    Args:
        logp: log-probabilities under the new policy, any shape, nats; -inf gives ratio 0.
        logp_old: log-probabilities under the policy that collected the data, same shape.

    Returns:
        Ratios, same shape and dtype.

    Raises:
        ValueError: logp_old holds -inf (an action that cannot have been sampled), a value is
            NaN or +inf, or the arrays are empty or differ in shape.

    Reference: Schulman et al. 2017, section 3.

    >>> import numpy as np
    >>> ratio(np.log([0.6, 0.1]), np.log([0.5, 0.2])).round(3)
    array([1.2, 0.5])
    """
    xp = namespace(logp=logp, logp_old=logp_old)
    check(xp, "logp_old", logp_old, abs(logp_old) < math.inf, "finite (the action was sampled)")
    check(xp, "logp", logp, logp < math.inf, "below +inf")
    return xp.exp(logp - logp_old)


def band(clip_range: float, clip_range_high: float | None = None) -> tuple[float, float]:
    """Return the edges of the band of ratios that the clip leaves alone.

    (1 - eps_low, 1 + eps_high)  (chapter, section 5)

    Args:
        clip_range: eps_low, and eps_high too unless that is given; finite and > 0.
        clip_range_high: eps_high of the asymmetric band ("clip-higher"); finite and > 0.

    Returns:
        Lower and upper edge.

    Raises:
        ValueError: a range is not finite or not positive.

    Reference: Schulman et al. 2017, equation 7.

    >>> band(0.2), band(0.2, 0.28)
    ((0.8, 1.2), (0.8, 1.28))
    """
    low = positive("clip_range", clip_range)
    high = low if clip_range_high is None else positive("clip_range_high", clip_range_high)
    return 1 - low, 1 + high


def clipped_objective(
    ratio: Array, adv: Array, clip_range: float = 0.2, clip_range_high: float | None = None
) -> Array:
    """Compute PPO's objective (maximized), per sample.

    min(r A, clip(r, 1 - eps_low, 1 + eps_high) A)  (chapter, section 5)

    Args:
        ratio: probability ratios, any shape, finite and >= 0.
        adv: advantages, same shape or one number.
        clip_range, clip_range_high: eps_low and eps_high, see `band`.

    Returns:
        Objective per sample, shape of ratio.

    Raises:
        ValueError: a range, a shape or a value is not as above.

    Reference: Schulman et al. 2017, equation 7.

    >>> import numpy as np
    >>> r = np.array([0.5, 1.0, 1.5])
    >>> clipped_objective(r, 1.0), clipped_objective(r, -1.0)
    (array([0.5, 1. , 1.2]), array([-0.8, -1. , -1.5]))
    """
    low, high = band(clip_range, clip_range_high)
    xp = _check_samples(ratio, adv)
    return xp.minimum(ratio * adv, xp.clip(ratio, low, high) * adv)


def clipped_derivative(
    ratio: Array, adv: Array, clip_range: float = 0.2, clip_range_high: float | None = None
) -> Array:
    """Differentiate `clipped_objective` in the ratio, per sample.

    A > 0: A up to 1 + eps_high, then 0;  A < 0: 0 up to 1 - eps_low, then A  (exercise 20.5a)

    At the kink there is no derivative: the two sides give A and 0. The value returned is A, the one
    from inside the band; PyTorch's autograd says the same.

    Args:
        ratio, adv, clip_range, clip_range_high: as for `clipped_objective`.

    Returns:
        Derivative per sample, shape of ratio.

    Raises:
        ValueError: as for `clipped_objective`.

    Reference: Schulman et al. 2017, figure 1.

    >>> import numpy as np
    >>> r = np.array([0.5, 1.0, 1.5])
    >>> clipped_derivative(r, 2.0), clipped_derivative(r, -2.0)
    (array([2., 2., 0.]), array([ 0., -2., -2.]))
    """
    low, high = band(clip_range, clip_range_high)
    xp = _check_samples(ratio, adv)
    adv = adv + xp.zeros_like(ratio)
    return xp.where(xp.where(adv > 0, ratio <= high, ratio >= low), adv, 0.0)


def penalized_objective(ratio: Array, adv: Array, kl: Array, beta: float) -> Array:
    """Compute PPO's objective with a KL penalty instead of the clip (maximized), per sample.

    r A - beta KL(pi_old || pi)  (chapter, section 5)

    Args:
        ratio: probability ratios, any shape, finite and >= 0.
        adv: advantages, same shape or one number.
        kl: KL(old, new) at each sample's state, same shape or one number, nats; at least 0 up to
            rounding. The log-ratio of one action is no divergence and can be negative.
        beta: penalty coefficient, finite and >= 0.

    Returns:
        Objective per sample, shape of ratio.

    Raises:
        ValueError: beta, a shape or a value is not as above.

    Reference: Schulman et al. 2017, equation 8.

    >>> import numpy as np
    >>> penalized_objective(np.array([1.5]), np.array([2.0]), np.array([0.1]), beta=3.0)
    array([2.7])
    """
    non_negative("beta", beta)
    _check_samples(ratio, adv)
    xp = namespace(ratio=ratio, kl=kl)
    rounding = 100 * float(xp.finfo(ratio.dtype).eps)
    allowed = "finite and at least 0 (the KL of whole distributions, not one action's log-ratio)"
    check(xp, "kl", kl, (kl >= -rounding) & (kl < math.inf), allowed)
    return ratio * adv - beta * kl


def adapt_beta(beta: float, kl: float, target_kl: float) -> float:
    """Choose the next epoch's penalty coefficient from the KL that the last one measured.

    2 beta if KL > 1.5 target;  beta / 2 if KL < target / 1.5;  else beta  (chapter, section 5)

    Args:
        beta: current coefficient, finite and > 0 (doubling would never leave 0).
        kl: measured mean KL(old, new), nats, finite; a sampled estimate may be negative.
        target_kl: the KL to keep to, nats, finite and > 0.

    Returns:
        The new coefficient.

    Raises:
        ValueError: an argument is not as above.

    Reference: Schulman et al. 2017, section 4.

    >>> adapt_beta(1.0, kl=0.04, target_kl=0.02), adapt_beta(1.0, kl=0.01, target_kl=0.02)
    (2.0, 0.5)
    """
    positive("beta", beta)
    positive("target_kl", target_kl)
    if not is_finite("kl", kl):
        raise ValueError(f"kl must be finite; got {kl!r}")
    if kl > 1.5 * target_kl:
        return 2 * beta
    return beta / 2 if kl < target_kl / 1.5 else beta


def fraction_outside(
    ratio: Array, clip_range: float = 0.2, clip_range_high: float | None = None
) -> float:
    """Return the share of the samples whose ratio is outside the band (its edges are inside).

    mean of 1[r < 1 - eps_low or r > 1 + eps_high]  (chapter, section 6)

    Args:
        ratio: probability ratios, any shape, finite and >= 0.
        clip_range, clip_range_high: eps_low and eps_high, see `band`.

    Returns:
        A number in [0, 1].

    Raises:
        ValueError: a range, a shape or a value is not as above.

    Reference: Huang et al. 2022, debug variables.

    >>> import numpy as np
    >>> fraction_outside(np.array([0.5, 1.0, 1.1, 1.3]))
    0.5
    """
    low, high = band(clip_range, clip_range_high)
    xp = _check_samples(ratio, 0.0)
    return int(xp.count_nonzero((ratio < low) | (ratio > high))) / int(math.prod(ratio.shape))


def _check_samples(ratio: Array, adv: Array) -> Any:
    xp = namespace(ratio=ratio, adv=adv)
    check(xp, "ratio", ratio, (ratio >= 0) & (ratio < math.inf), "finite and at least 0")
    check(xp, "adv", adv, abs(adv) < math.inf, "finite")
    return xp
