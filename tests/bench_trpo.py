"""Benchmark of one TRPO step against the plain version: rows() for the table of `make bench`.

The plain version differentiates (grad KL) . v and builds the graph of grad KL again for each
product. Everything else is the same work: 10 iterations of conjugate gradient, one more product to
scale the step, the line search.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from companion.trpo_example import Problem, problem
from companion.trust_region import trpo_step
from tests.timing import medians

DELTA, DAMPING, ITERATIONS = 0.01, 0.1, 10
REPEATS = 41


def rows() -> list[tuple[str, float, float]]:
    """Return (name, seconds of the plain version, seconds of companion's) for each policy."""
    return [
        ("TRPO step, 131 parameters, batch 500", *_medians(problem())),
        ("TRPO step, 2 x 64 tanh, batch 2,048", *_medians(_large_problem())),
    ]


def plain_trpo_step(policy: nn.Module, obs: Tensor, actions: Tensor, adv: Tensor) -> Tensor:
    """Make the same step with the graph built again for each product; return it."""
    parameters = list(policy.parameters())

    def flat_gradient(of: Tensor, *, create_graph: bool = False) -> Tensor:
        pieces = torch.autograd.grad(of, parameters, create_graph=create_graph)
        return torch.cat([piece.flatten() for piece in pieces])

    with torch.no_grad():
        logp_old: Tensor = policy(obs).log_softmax(-1)
    taken = torch.arange(len(obs)), actions

    def mean_kl() -> Tensor:
        logp: Tensor = policy(obs).log_softmax(-1)
        return (logp_old.exp() * (logp_old - logp)).sum(-1).mean()

    def surrogate() -> Tensor:
        logp: Tensor = policy(obs).log_softmax(-1)
        return ((logp[taken] - logp_old[taken]).exp() * adv).mean()

    def product(v: Tensor) -> Tensor:
        return flat_gradient(flat_gradient(mean_kl(), create_graph=True) @ v) + DAMPING * v

    old_surrogate = surrogate()
    g = flat_gradient(old_surrogate)
    x, residual, search = torch.zeros_like(g), g, g
    for _ in range(ITERATIONS):
        image = product(search)
        rate = (residual @ residual) / (search @ image)
        x = x + rate * search
        new_residual = residual - rate * image
        search = new_residual + (new_residual @ new_residual) / (residual @ residual) * search
        residual = new_residual
    step = (2.0 * DELTA / (x @ product(x))).sqrt() * x
    _plain_line_search(parameters, step, lambda: (surrogate() - old_surrogate, mean_kl()))
    return step


def _plain_line_search(
    parameters: list[nn.Parameter], step: Tensor, measure: Callable[[], tuple[Tensor, Tensor]]
) -> None:
    old = torch.cat([w.detach().flatten() for w in parameters])
    with torch.no_grad():
        for halvings in range(11):
            nn.utils.vector_to_parameters(old + 0.5**halvings * step, parameters)
            gain, kl = measure()
            if kl <= DELTA and gain > 0.0:
                return
        nn.utils.vector_to_parameters(old, parameters)


def _large_problem() -> Problem:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = nn.Sequential(
            nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)
        )
        obs, adv = torch.randn(2048, 8), torch.randn(2048)
        actions = torch.randint(4, (2048,))
        return Problem(policy, obs, actions, adv)


def _medians(batch: Problem) -> tuple[float, float]:
    """Time both versions, each call from the old parameters."""
    theirs, ours = ([copy.deepcopy(batch.policy) for _ in range(REPEATS + 1)] for _ in range(2))
    data = batch[1:]

    def plain(k: int) -> tuple[nn.Module, Tensor]:
        return theirs[k], plain_trpo_step(theirs[k], *data)

    def companion(k: int) -> tuple[nn.Module, Tensor]:
        return ours[k], trpo_step(ours[k], *data, delta=DELTA, damping=DAMPING).step

    return medians(plain, companion, REPEATS, agree)


def agree(plain: tuple[nn.Module, Tensor], ours: tuple[nn.Module, Tensor]) -> None:
    """Raise an error unless both made the same step and left the same parameters."""
    torch.testing.assert_close(ours[1], plain[1], rtol=1e-3, atol=1e-6)
    for one, other in zip(plain[0].parameters(), ours[0].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    print(rows())
