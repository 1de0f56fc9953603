"""The printed TRPO batch in the eigenvectors of its Fisher matrix, where many steps cost little."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from companion import trpo_example
from companion.conjugate_gradient import cg_error_bound, conjugate_gradient_iterates
from companion.fisher import fisher_matrix
from companion.policy import kl, softmax
from companion.trust_region import Surrogate, local_surrogate

FloatArray = NDArray[np.float64]

MOST_ITERATIONS = 20


class Spectrum(NamedTuple):
    """The printed batch in float64: the surrogate, and the Fisher matrix F = basis diag basis^T."""

    surrogate: Surrogate
    eigenvalues: FloatArray  # of F without damping, ascending
    basis: FloatArray  # one eigenvector a column
    g: FloatArray  # the surrogate's gradient in that basis


@cache
def spectrum() -> Spectrum:
    """Return what no slider changes."""
    policy, obs, actions, adv = trpo_example.problem()
    policy, obs, adv = policy.double(), obs.double(), adv.double()
    batch = local_surrogate(policy, obs, actions, adv)
    eigenvalues, basis = np.linalg.eigh(fisher_matrix(policy, obs).numpy())
    # F is positive semidefinite; rounding leaves its zeros on either side.
    return Spectrum(batch, eigenvalues.clip(min=0.0), basis, basis.T @ batch.g.numpy())


@cache
def _arrays() -> tuple[Any, ...]:
    """Return the batch, its actions as a mask, and the network's transposed weights and biases."""
    policy, obs, actions, adv = trpo_example.problem()
    weights = [w.detach().double().numpy().T for w in policy.parameters()]
    taken = np.eye(3, dtype=bool)[actions.numpy()]
    return obs.double().numpy(), taken, adv.double().numpy(), *weights


def measure(steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return gain and mean KL of many steps, as `spectrum().surrogate.evaluate` does of one.

    Args:
        steps: (K, P), in the eigenvectors' coordinates.

    Returns:
        Gain of the surrogate and mean KL(old, new) in nats, each (K,).
    """
    obs, taken, adv, *old = _arrays()
    ends = np.cumsum([w.size for w in old])[:-1]
    moves = np.split(steps @ spectrum().basis.T, ends, axis=1)
    W, b, V, c = (
        w + move.reshape(-1, *w.shape[::-1]).swapaxes(1, -1)
        for w, move in zip(old, moves, strict=True)
    )
    pi_old = softmax(np.tanh(obs @ old[0] + old[1]) @ old[2] + old[3])
    pi = softmax(np.tanh(obs @ W + b[:, None]) @ V + c[:, None])
    ratio = (pi / pi_old)[:, taken]
    return ((ratio - 1) * adv).mean(axis=-1), kl(pi_old, pi).mean(axis=-1)


def measure_one(step: torch.Tensor) -> tuple[float, float]:
    """Return gain and mean KL of one step, for the line search."""
    gain, mean_kl = measure(step.numpy()[None])
    return float(gain[0]), float(mean_kl[0])


class Solution(NamedTuple):
    """What conjugate gradient made of F x = g, in the eigenvectors' coordinates."""

    error: FloatArray  # |x_j - x*| / |x*| in the norm of the damped F, j = 0, 1, ...
    bound: FloatArray  # on the same, for the same j
    direction: FloatArray  # the iterate asked for
    residual: float  # |F x - g| / |g| there


def solve(damping: float, iterations: int) -> Solution:
    """Run conjugate gradient and compare every iterate with the exact solution."""
    _, eigenvalues, _, g = spectrum()
    F = eigenvalues + damping
    iterates = [0 * g, *conjugate_gradient_iterates(lambda v: F * v, g, MOST_ITERATIONS, 1e-15)]
    iterates += iterates[-1:] * (MOST_ITERATIONS + 1 - len(iterates))  # where it converged
    error = np.sqrt((F * (np.array(iterates) - g / F) ** 2).sum(axis=1))
    bound = cg_error_bound(F[-1] / F[0], np.arange(len(iterates)))
    direction = iterates[iterations]
    residual = float(np.linalg.norm(F * direction - g) / np.linalg.norm(g))
    return Solution(error / error[0], bound, direction, residual)
