"""The clipped value loss that many implementations of PPO use, and its derivative.

Arrays as in `companion.objective`.
"""

from __future__ import annotations

import math
from typing import Any

from companion.arrays import Array, check, namespace
from companion.validation import positive


def clipped_value_loss(v: Array, v_old: Array, target: Array, clip_range: float = 0.2) -> Array:
    """Compute a value loss (minimized) that does not reward leaving a band around the old value.

    max((v - G)^2, (v_old + clip(v - v_old, -eps, eps) - G)^2)  (exercise 20.8)

    Args:
        v: new values, any shape, finite.
        v_old: values when the data were collected, same shape or one number.
        target: returns G, same shape or one number.
        clip_range: half-width eps of the band, in units of value; finite and > 0.

    Returns:
        Loss per sample, shape of v.

    Raises:
        ValueError: clip_range, a shape or a value is not as above.

    Reference: Engstrom et al. 2020, section 3.

    >>> import numpy as np
    >>> clipped_value_loss(np.array([0.1, 0.5]), v_old=0.0, target=1.0)
    array([0.81, 0.64])
    """
    xp = _check_values(v, v_old, target, clip_range)
    clipped = v_old + xp.clip(v - v_old, -clip_range, clip_range)
    return xp.maximum((v - target) ** 2, (clipped - target) ** 2)


def clipped_value_derivative(
    v: Array, v_old: Array, target: Array, clip_range: float = 0.2
) -> Array:
    """Differentiate `clipped_value_loss` in the new value, per sample.

    0 if v is outside the band and nearer to G than the band's edge, else 2 (v - G)  (exercise 20.8)

    At the two kinks (that edge, and its mirror image beyond G) the sides give 2 (v - G) and 0. The
    value returned is 2 (v - G); PyTorch's autograd agrees at the edge and halves it at the image.

    Args:
        v, v_old, target, clip_range: as for `clipped_value_loss`.

    Returns:
        Derivative per sample, shape of v.

    Raises:
        ValueError: as for `clipped_value_loss`.

    Reference: Engstrom et al. 2020, section 3.

    >>> import numpy as np
    >>> clipped_value_derivative(np.array([0.1, 0.5]), v_old=0.0, target=1.0)
    array([-1.8,  0. ])
    """
    xp = _check_values(v, v_old, target, clip_range)
    edge = v_old + xp.clip(v - v_old, -clip_range, clip_range)
    dead = (abs(v - v_old) > clip_range) & (abs(v - target) < abs(edge - target))
    return xp.where(dead, 0.0, 2 * (v - target))


def _check_values(v: Array, v_old: Array, target: Array, clip_range: float) -> Any:
    positive("clip_range", clip_range)
    arrays = {"v": v, "v_old": v_old, "target": target}
    xp = namespace(**arrays)
    for name, array in arrays.items():
        check(xp, name, array, abs(array) < math.inf, "finite")
    return xp
