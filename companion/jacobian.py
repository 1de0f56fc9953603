"""Products with the Jacobian of a policy's logits in its parameters, from one forward pass.

For layers of linear maps and tanh they are written out, from what each layer was given in that
pass; for any other policy autograd makes them, which takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from companion.parameters import pieces, policy_logits, pullback, trainable
from companion.perceptron import linear_layers


class Jacobian(NamedTuple):
    """J = d logits / d parameters at a policy's parameters, flat, for N observations."""

    logits: Tensor  # (N, A), with their graph
    push: Callable[[Tensor], Tensor]  # v (P,) -> J v (N, A)
    pull: Callable[[Tensor], Tensor]  # u (N, A) -> J^T u (P,)


def jacobian(policy: nn.Module, obs: Tensor) -> Jacobian:
    """Run a policy once, and return the products that need no second pass.

    Args:
        policy: module from observations to logits, deterministic.
        obs: observations, shape (N, ...).

    Returns:
        Jacobian. It holds until the parameters, or obs, change: its products raise RuntimeError
        then.

    Raises:
        ValueError: as `policy_logits` does.

    >>> J = jacobian(nn.Linear(1, 2), torch.tensor([[3.0]]))
    >>> J.push(torch.tensor([1.0, 0.0, 0.0, 1.0])), J.pull(torch.tensor([[1.0, 0.0]]))
    (tensor([[3., 1.]]), tensor([3., 0., 1., 0.]))
    """
    layers = linear_layers(policy)
    with _inputs(layers) as inputs:
        logits = policy_logits(policy, obs)
    return _by_layers(layers, inputs, logits) if layers else _by_autograd(policy, logits)


def _by_layers(layers: list[nn.Linear], inputs: list[Tensor], logits: Tensor) -> Jacobian:
    parameters = [w for layer in layers for w in (layer.weight, layer.bias)]
    weights = [layer.weight.detach() for layer in layers]
    kept = [*parameters, *inputs]
    versions = [tensor._version for tensor in kept]
    bends = [1 - x * x for x in inputs[1:]]  # tanh' where it was taken

    def check() -> None:
        if versions != [tensor._version for tensor in kept]:
            raise RuntimeError("a parameter or obs has been modified by an inplace operation")

    @torch.no_grad()
    def push(v: Tensor) -> Tensor:
        check()
        moves = pieces(v, parameters)
        out = (inputs[0] @ moves[0].t()).add_(moves[1])
        for k in range(1, len(layers)):
            inner = out.mul_(bends[k - 1]) @ weights[k].t()
            out = (inputs[k] @ moves[2 * k].t()).add_(moves[2 * k + 1]).add_(inner)
        return out

    @torch.no_grad()
    def pull(u: Tensor) -> Tensor:
        check()
        slopes = []
        for k in reversed(range(len(layers))):
            slopes += [u.sum(0), _products(u, inputs[k]).flatten()]
            if k:
                u = (u @ weights[k]).mul_(bends[k - 1])
        return torch.cat(slopes[::-1])

    return Jacobian(logits, push, pull)


def _products(u: Tensor, x: Tensor) -> Tensor:
    """Return u^T x, the narrow side first: the library is some times slower the other way."""
    return u.t() @ x if u.shape[1] <= x.shape[1] else (x.t() @ u).t()


def _by_autograd(policy: nn.Module, logits: Tensor) -> Jacobian:
    parameters = trainable(policy)

    @cache
    def graph() -> tuple[Tensor, Tensor]:
        # J^T u is linear in u, and its derivative is J: the graph of J^T u serves every J v.
        with torch.enable_grad():
            u = torch.zeros_like(logits, requires_grad=True)
            return pullback(logits, parameters, u, create_graph=True), u

    def push(v: Tensor) -> Tensor:
        (jv,) = torch.autograd.grad(*graph(), v, retain_graph=True)
        return jv

    return Jacobian(logits, push, lambda u: pullback(logits, parameters, u))


@contextmanager
def _inputs(layers: list[nn.Linear]) -> Iterator[list[Tensor]]:
    """Keep what each layer is given in a forward pass."""
    inputs: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0].detach()))
        for layer in layers
    ]
    try:
        yield inputs
    finally:
        for hook in hooks:
            hook.remove()
