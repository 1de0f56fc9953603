"""The printed TRPO step: one batch, one small network, every number of the chapter's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from companion import trust_region, validation
from companion.conjugate_gradient import conjugate_gradient_iterates
from companion.fisher import fisher_matrix, fisher_vector_product
from companion.sampling import portable_categorical


class Problem(NamedTuple):
    """A policy at the parameters that collected a batch, and the batch."""

    policy: nn.Module
    obs: Tensor
    actions: Tensor
    adv: Tensor


class Outcome(NamedTuple):
    """A step of quadratic KL delta: gains of the surrogate, and mean KL(old||new) in nats."""

    predicted_gain: float
    gain: float
    kl: float


@dataclass(frozen=True)
class Example:
    """Everything that the chapter prints about one TRPO step."""

    parameters: int
    eigenvalues: tuple[float, ...]  # of the damped Fisher matrix, ascending
    relative_error: tuple[float, ...]  # |x_j - x*| / |x*| of conjugate gradient, j = 1, 2, ...
    energy_error: tuple[float, ...]  # the same in the norm of the damped F, which the bound uses
    natural: Outcome  # along conjugate gradient's solution
    vanilla: Outcome  # along the gradient
    search: trust_region.LineSearch  # on the natural step


def problem(seed: int = 0) -> Problem:
    """Return the printed batch of 500 random observations and advantages (131 parameters).

    The draws follow the printed protocol, from torch's global generator; its state is restored.
    They are float32 whatever torch's default dtype.

    Args:
        seed: of network, batch and advantages, a whole number of at least 0.

    Raises:
        ValueError: seed is not such a number.

    >>> sum(w.numel() for w in problem().policy.parameters())
    131
    """
    start = validation.whole("seed", seed, at_least=0)
    dtype = torch.float32
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(start)
        layers = nn.Linear(4, 16, dtype=dtype), nn.Tanh(), nn.Linear(16, 3, dtype=dtype)
        policy = nn.Sequential(*layers)
        obs = torch.randn(500, 4, dtype=dtype)
        p_old = policy(obs).softmax(-1).detach()
        actions = portable_categorical(p_old, generator=torch.default_generator)
        return Problem(policy, obs, actions, torch.randn(500, dtype=dtype))


def run(
    *, delta: float = 0.01, damping: float = 0.1, iterations: int = 10, seed: int = 0
) -> Example:
    """Compute the printed table of one TRPO step (chapter, section 4; exercise 20.4).

    Args:
        delta: KL radius in nats, positive.
        damping: added to the Fisher matrix's diagonal; at least 0.
        iterations: most steps of conjugate gradient; the error tables end where it converges.
        seed: of network, batch and advantages.

    Returns:
        The numbers. The defaults are the chapter's.

    Raises:
        ValueError: an argument is out of range.

    Reference: Schulman et al. 2015, appendix C.

    >>> [f"{error:.1e}" for error in run().relative_error[:3]]
    ['5.5e-01', '3.0e-01', '1.7e-01']
    """
    batch = problem(seed)
    g, evaluate = trust_region.local_surrogate(*batch)
    product = fisher_vector_product(batch.policy, batch.obs, damping)
    iterates = list(conjugate_gradient_iterates(product, g, iterations))

    def outcome(direction: Tensor) -> tuple[Tensor, Outcome]:
        step = trust_region.natural_step(direction, float(direction @ product(direction)), delta)
        return step, Outcome(float(g @ step), *evaluate(step))

    step, natural = outcome(iterates[-1])
    _, vanilla = outcome(g)
    eigenvalues, relative, energy = _check_against_dense(batch, g, damping, iterates)
    return Example(
        parameters=len(g),
        eigenvalues=eigenvalues,
        relative_error=relative,
        energy_error=energy,
        natural=natural,
        vanilla=vanilla,
        search=trust_region.line_search(evaluate, step, delta=delta),
    )


def _check_against_dense(
    batch: Problem, g: Tensor, damping: float, iterates: list[Tensor]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    # The check is in float64, so that what it measures is conjugate gradient's own error.
    fisher = fisher_matrix(batch.policy, batch.obs).double()
    eigenvalues, basis = torch.linalg.eigh(
        fisher + damping * torch.eye(len(g), dtype=torch.float64)
    )
    # Without damping F has null directions, where g has no part: divide by the others only.
    positive = eigenvalues > 1e-7 * eigenvalues[-1]
    coordinates = torch.where(positive, basis.T @ g.double() / eigenvalues, 0.0)
    error = torch.stack(iterates).double() @ basis - coordinates
    relative = error.norm(dim=1) / coordinates.norm()
    weight = eigenvalues.clamp(min=0.0).sqrt()
    energy = (error * weight).norm(dim=1) / (coordinates * weight).norm()
    return tuple(eigenvalues.tolist()), tuple(relative.tolist()), tuple(energy.tolist())
