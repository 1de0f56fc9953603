"""Products with the Jacobian against the dense one, for layers written out and by autograd."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

from companion.jacobian import jacobian
from companion.trust_region import trpo_step


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


class Scaled(nn.Sequential):
    def forward(self, x: Tensor) -> Any:
        return super().forward(10 * x)


def with_computed_weights(normalize: Callable[[nn.Module], nn.Module]) -> nn.Sequential:
    network = chain(4, 5, 3)
    normalize(network[0])
    return network.eval()  # in training, spectral_norm's weight is another in each pass


def with_a_hook(at: Callable[[nn.Sequential], nn.Module], before: bool = False) -> nn.Sequential:
    network = chain(4, 5, 3)
    if before:
        at(network).register_forward_pre_hook(lambda _, given: (10 * given[0],))
    else:
        at(network).register_forward_hook(lambda _, given, output: output**3)
    return network


def with_another_forward() -> nn.Sequential:
    network = chain(4, 5, 3)
    linear = network[0].forward
    network[0].forward = lambda x: linear(x) ** 2  # type: ignore[method-assign]
    return network


def with_a_parameter_more() -> nn.Sequential:
    network = chain(4, 5, 3)
    network[1].register_parameter("unused", nn.Parameter(torch.ones(2)))
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
    "another forward of a class": lambda: Scaled(*chain(4, 6, 3)),
    "another forward": with_another_forward,
    "a parameter more": with_a_parameter_more,
    "spectral norm": lambda: with_computed_weights(nn.utils.spectral_norm),
    "spectral norm, parametrized": lambda: with_computed_weights(parametrizations.spectral_norm),
    "weight norm": lambda: with_computed_weights(weight_norm),
    "hook on a linear layer": lambda: with_a_hook(lambda network: network[0]),
    "hook before a linear layer": lambda: with_a_hook(lambda network: network[2], before=True),
    "hook on tanh": lambda: with_a_hook(lambda network: network[1]),
    "hook on the whole": lambda: with_a_hook(lambda network: network),
}


def slopes(logit: Tensor, parameters: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(logit, parameters, retain_graph=True, materialize_grads=True)


def dense(policy: nn.Module, obs: Tensor) -> Tensor:
    """J (N, A, P), one row of it for each backward pass."""
    parameters = [w for w in policy.parameters() if w.requires_grad]
    logits = policy(obs)
    rows = [
        torch.cat([slope.flatten() for slope in slopes(logit, parameters)])
        for logit in logits.flatten()
    ]
    return torch.stack(rows).unflatten(0, logits.shape)


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
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


@pytest.mark.parametrize("between", [nn.Tanh, nn.ReLU])
def test_products_refuse_observations_that_have_changed(between: type[nn.Module]) -> None:
    policy, obs = chain(4, 6, 3, between=between), torch.ones(2, 4)
    made = jacobian(policy, obs)
    obs.mul_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.pull(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.push(torch.ones(51))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int16])
def test_a_step_refuses_actions_that_cannot_be_indices(dtype: torch.dtype) -> None:
    actions = torch.tensor([0, 1]).to(dtype)
    with pytest.raises(ValueError, match=f"of dtype int64 or int32; theirs is {dtype}"):
        trpo_step(chain(4, 6, 3), torch.ones(2, 4), actions, torch.ones(2))


def test_a_steps_gradient_with_spectral_norm_is_autograds() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = with_computed_weights(nn.utils.spectral_norm).double()
        obs, actions, adv = torch.randn(50, 4).double(), torch.randint(3, (50,)), torch.randn(50)
    logp = policy(obs).log_softmax(-1)[torch.arange(50), actions]
    surrogate = ((logp - logp.detach()).exp() * adv).mean()
    g = torch.autograd.grad(surrogate, list(policy.parameters()))
    taken = trpo_step(policy, obs, actions, adv)
    torch.testing.assert_close(taken.g, torch.cat([piece.flatten() for piece in g]))
    assert taken.search.accepted
