"""Checks of arrays of any library, NumPy, PyTorch or JAX, that step aside while code is traced."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from companion.validation import entry

Array: TypeAlias = Any  # the array libraries share no base class


def namespace(**arrays: Array) -> Any:
    """Return the arrays' library; the first array sets the shape that the others must have."""
    try:
        xp = array_namespace(*arrays.values())
    except TypeError as error:  # no array, or arrays of two libraries
        raise ValueError(
            f"{', '.join(arrays)} must be arrays of one library, NumPy, PyTorch or JAX: {error}"
        ) from None
    first, *others = arrays
    shape = tuple(arrays[first].shape)
    if not xp.isdtype(arrays[first].dtype, "real floating"):
        # Whole numbers would be clipped to whole numbers.
        raise ValueError(f"{first} must be floating-point; its dtype is {arrays[first].dtype}")
    if 0 in shape:
        raise ValueError(f"{first} must hold at least one sample; its shape is {shape}")
    for name in others:
        other = tuple(getattr(arrays[name], "shape", ()))
        # Broadcasting (N, 1) against (N,) would quietly pair every sample with every other.
        if other not in (shape, ()):
            raise ValueError(f"{name} must have {first}'s shape {shape}; got {other}")
    return xp


def check(xp: Any, name: str, array: Array, ok: Array, allowed: str) -> None:
    """Raise ValueError with the first entry of an array that is not ok, unless code is traced."""
    ok = xp.asarray(ok)
    try:
        if bool(xp.all(ok)):
            return
    except (TypeError, RuntimeError):  # JAX's and torch.func's answer while they trace
        return
    at = int(xp.nonzero(~xp.reshape(ok, (-1,)))[0][0])
    value = xp.reshape(xp.asarray(array), (-1,))[at].item()
    where = tuple(int(i) for i in np.unravel_index(at, tuple(ok.shape)))
    raise ValueError(f"{name} must be {allowed}; {entry(name, where)} is {value}")
