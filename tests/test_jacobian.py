"""Products with the Jacobian against the dense one, for layers written out and by autograd."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from companion.jacobian import jacobian


def chain(*widths: int, between: type[nn.Module] = nn.Tanh, bias: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs, bias=bias), between()]
    return nn.Sequential(*layers[:-1])


def with_a_layer_twice() -> nn.Sequential:
    inner = nn.Linear(4, 4)
    return nn.Sequential(inner, nn.Tanh(), inner, nn.Tanh(), nn.Linear(4, 3))


def with_a_frozen_layer() -> nn.Sequential:
    network = chain(4, 5, 3)
    network[0].requires_grad_(False)
    return network


POLICIES = {
    "linear": lambda: nn.Linear(4, 3),
    "one hidden layer": lambda: chain(4, 6, 3),
    "wide and narrow": lambda: chain(4, 9, 2, 7, 3),
    "relu": lambda: chain(4, 6, 3, between=nn.ReLU),
    "no bias": lambda: chain(4, 6, 3, bias=False),
    "tanh at the end": lambda: nn.Sequential(*chain(4, 6, 3), nn.Tanh()),
    "a layer twice": with_a_layer_twice,
    "a frozen layer": with_a_frozen_layer,
}


def dense(policy: nn.Module, obs: Tensor) -> Tensor:
    """J (N, A, P), one row of it for each backward pass."""
    parameters = [w for w in policy.parameters() if w.requires_grad]
    logits = policy(obs)
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(logit, parameters, retain_graph=True)])
        for logit in logits.flatten()
    ]
    return torch.stack(rows).unflatten(0, logits.shape)


@pytest.mark.parametrize("name", POLICIES)
def test_products_are_those_of_the_dense_matrix(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = POLICIES[name]().double()
    obs = torch.randn(11, 4, generator=generator).double()
    J, made = dense(policy, obs), jacobian(policy, obs)
    torch.testing.assert_close(made.logits, policy(obs))
    for _ in range(2):  # nothing of one product is left in the next
        v = torch.randn(J.shape[-1], generator=generator).double()
        u = torch.randn(J.shape[:-1], generator=generator).double()
        torch.testing.assert_close(made.push(v), J @ v)
        torch.testing.assert_close(made.pull(u), torch.einsum("nap,na->p", J, u))


def test_products_refuse_parameters_that_have_moved_and_leave_no_hook() -> None:
    policy = chain(4, 6, 3)
    made = jacobian(policy, torch.ones(2, 4))
    assert not any(module._forward_pre_hooks for module in policy)
    with torch.no_grad():
        policy[2].bias += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.pull(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.push(torch.ones(51))
