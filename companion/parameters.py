"""A policy's parameters as one flat vector: its derivatives, and a look at other values of it.

A flat vector holds the parameters that require a gradient, in the order of `policy.parameters()`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def policy_logits(policy: nn.Module, obs: Tensor) -> Tensor:
    """Return the policy's logits with their graph, or raise ValueError if they can't be used."""
    if obs.ndim == 0 or not len(obs):
        raise ValueError(f"obs has shape {tuple(obs.shape)}; at least one observation is needed")
    with torch.enable_grad():
        logits: Tensor = policy(obs)
    if logits.ndim != 2 or len(logits) != len(obs):
        raise ValueError(
            f"policy returned shape {tuple(logits.shape)} for {len(obs)} observations; "
            "it must return one row of logits for each"
        )
    if bool(logits.isnan().any()):
        row = int(logits.isnan().any(-1).nonzero()[0])
        raise ValueError(f"policy returned NaN for obs[{row}]; logits must be numbers")
    if not logits.requires_grad:
        raise ValueError("policy has no parameter that requires a gradient and moves its logits")
    return logits


def trainable(policy: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that require a gradient, in the order of every flat vector."""
    return {name: w for name, w in policy.named_parameters() if w.requires_grad}


def pullback(
    output: Tensor, parameters: dict[str, Tensor], u: Tensor, *, create_graph: bool = False
) -> Tensor:
    """Return the flat vector J^T u, J = d output / d parameters, and keep the graph."""
    pieces = torch.autograd.grad(
        output,
        list(parameters.values()),
        u,
        retain_graph=True,
        create_graph=create_graph,
        materialize_grads=True,  # zero, not None, for a parameter that the output ignores
    )
    return torch.cat([piece.flatten() for piece in pieces])


def after_step(policy: nn.Module, obs: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the function step -> log-probabilities (N, A), away from what the policy is now.

    It leaves the policy as it is, and goes on from what it was if the policy changes later.
    """
    moving = list(trainable(policy).values())
    fixed = [w for w in policy.parameters() if not w.requires_grad] + list(policy.buffers())
    state = moving + fixed
    old = [w.detach().clone() for w in state]

    @torch.no_grad()
    def log_probabilities(step: Tensor) -> Tensor:
        values = [w + move for w, move in zip(old, pieces(step, moving), strict=False)]
        values += [w.clone() for w in old[len(moving) :]]  # a forward pass may write to a buffer
        # A deep copy costs a small policy more than its forward pass, and functional_call leaves
        # its values in a module that stands in the policy twice (PyTorch 2.13).
        present = [w.data for w in state]
        try:
            for w, value in zip(state, values, strict=True):
                w.data = value
            logits: Tensor = policy(obs)
            return logits.log_softmax(-1)
        finally:
            for w, value in zip(state, present, strict=True):
                w.data = value

    return log_probabilities


@torch.no_grad()
def move(policy: nn.Module, step: Tensor) -> None:
    """Add a flat vector to the parameters that require a gradient, in place."""
    moving = list(trainable(policy).values())
    for w, piece in zip(moving, pieces(step, moving), strict=True):
        w.add_(piece)


def pieces(flat: Tensor, like: list[Tensor]) -> list[Tensor]:
    """Return a flat vector in pieces of these shapes."""
    sizes = [w.numel() for w in like]
    if flat.shape != (sum(sizes),):
        raise ValueError(f"step must have shape ({sum(sizes)},); got {tuple(flat.shape)}")
    split = torch.split(flat, sizes)
    return [piece.view_as(w) for piece, w in zip(split, like, strict=True)]
