"""A network of one hidden layer, its gradient and Adam, compiled: what `companion.bandit` trains.

The last axis of every array of samples is the sample. The inner loops run over it, so that the
compiler turns them into vector instructions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion.compiled.jit import kernel, summation

Floats = NDArray[np.float32]
Scalar = np.float32


class Network(NamedTuple):
    """Weights of Linear, tanh, Linear in torch's shapes, or a loss's slopes in them."""

    hidden_weight: Floats  # (H, d)
    hidden_bias: Floats  # (H,)
    weight: Floats  # (A, H)
    bias: Floats  # (A,)


def network_of(parameters: Floats, n_features: int, n_hidden: int, n_actions: int) -> Network:
    """Return the weights as views of all parameters in a row, in torch's order."""
    shapes = (n_hidden, n_features), (n_hidden,), (n_actions, n_hidden), (n_actions,)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(parameters, ends[:-1])
    return Network(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


def _pade(order: int) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """Return N's odd and even coefficients in exp(2x) = N(x) / N(-x), highest power first."""
    terms = [
        2.0**k * math.comb(order, k) * math.factorial(2 * order - k) / math.factorial(2 * order)
        for k in range(order + 1)
    ]
    odd, even = terms[1::2], terms[0::2]
    return tuple(map(np.float32, odd[::-1])), tuple(map(np.float32, even[::-1]))


_ODD, _EVEN = _pade(13)
_ZERO, _ONE, _SATURATED = np.float32(0), np.float32(1), np.float32(9)


@kernel
def tanh(x: Scalar) -> Scalar:
    """Return tanh x, by the Pade approximant of exp(2x) of order 13, to 5e-7.

    tanh x = (exp(2x) - 1) / (exp(2x) + 1) = odd part of N / even part of N

    All of the error is rounding. The library's tanh would be called for one number at a time; this
    one becomes vector instructions in the caller's loop.

    Args and Returns: float32.

    Reference: Baker and Graves-Morris 1996, section 1.2.
    """
    x = min(max(x, -_SATURATED), _SATURATED)
    square = x * x
    odd, even = _ODD[0], _EVEN[0]
    for k in range(1, len(_ODD)):
        odd = odd * square + _ODD[k]
        even = even * square + _EVEN[k]
    return x * odd / even


@kernel
def forward(network: Network, contexts: Floats) -> tuple[Floats, Floats]:
    """Return the hidden layer's outputs (H, n) and the logits (A, n) of contexts (d, n)."""
    n_features, n = contexts.shape
    hidden = np.empty((len(network.hidden_bias), n), np.float32)
    logits = np.empty((len(network.bias), n), np.float32)
    for a in range(len(logits)):
        for i in range(n):
            logits[a, i] = network.bias[a]
    for j in range(len(hidden)):
        for i in range(n):
            hidden[j, i] = network.hidden_bias[j]
        for d in range(n_features):
            for i in range(n):
                hidden[j, i] += network.hidden_weight[j, d] * contexts[d, i]
        for i in range(n):
            hidden[j, i] = tanh(hidden[j, i])
        for a in range(len(logits)):
            for i in range(n):
                logits[a, i] += network.weight[a, j] * hidden[j, i]
    return hidden, logits


@summation
def backward(
    network: Network, contexts: Floats, hidden: Floats, outer: Floats, slopes: Network
) -> None:
    """Fill the loss's slopes in the weights, given its slopes `outer` (A, n) in the logits."""
    n_features, n = contexts.shape
    inner = np.empty(n, np.float32)  # slopes in the input of one hidden unit
    for j in range(len(hidden)):
        for i in range(n):
            inner[i] = _ZERO
        for a in range(len(outer)):
            total = _ZERO
            for i in range(n):
                inner[i] += network.weight[a, j] * outer[a, i]
                total += outer[a, i] * hidden[j, i]
            slopes.weight[a, j] = total
        total = _ZERO
        for i in range(n):
            inner[i] *= _ONE - hidden[j, i] * hidden[j, i]
            total += inner[i]
        slopes.hidden_bias[j] = total
        for d in range(n_features):
            total = _ZERO
            for i in range(n):
                total += inner[i] * contexts[d, i]
            slopes.hidden_weight[j, d] = total
    for a in range(len(outer)):
        total = _ZERO
        for i in range(n):
            total += outer[a, i]
        slopes.bias[a] = total


@kernel
def adam(state: Floats, step: int, lr: float) -> None:
    """Make Adam's step number `step`, from 1, in place, with torch's defaults.

    Args:
        state: (4, P) parameters, slopes, and the averages of slopes and of squared slopes.
        step, lr: number and size of the step.

    Reference: Kingma and Ba 2015, algorithm 1.
    """
    rate = np.float32(lr / (1 - 0.9**step))
    correction = np.float32(math.sqrt(1 - 0.999**step))
    for i in range(state.shape[1]):
        slope = state[1, i]
        state[2, i] += np.float32(0.1) * (slope - state[2, i])
        state[3, i] = np.float32(0.999) * state[3, i] + np.float32(0.001) * slope * slope
        scale = math.sqrt(state[3, i]) / correction + np.float32(1e-8)
        state[0, i] -= rate * state[2, i] / scale
