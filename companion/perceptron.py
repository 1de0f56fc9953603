"""Networks of linear layers with tanh between them, whose slopes need no graph."""

from __future__ import annotations

from torch import nn
from torch.nn.modules import module as torch_module


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """Return the layers of a network that is nothing but them with tanh between, else none.

    Each has its own weight and bias, none of them frozen: the network's parameters, in this order.
    """
    modules = list(network) if type(network) is nn.Sequential else [network]
    layers = [module for module in modules[::2] if type(module) is nn.Linear]
    others = [module for module in modules[1::2] if type(module) is nn.Tanh]
    weights = [w for layer in layers for w in (layer.weight, layer.bias)]
    parameters = list(network.parameters())
    plain = (
        len(layers) == len(others) + 1
        and len(layers) + len(others) == len(modules)
        # Weight normalization leaves a computed tensor where the parameter was.
        and list(map(id, weights)) == list(map(id, parameters))
        and all(w.requires_grad for w in parameters)
        and not any(map(_changed, (network, *modules)))
    )
    return layers if plain else []


def _changed(module: nn.Module) -> bool:
    """Say whether calling a module may do something else than its class does."""
    return bool(
        "forward" in vars(module)
        or module._forward_pre_hooks
        or module._forward_hooks
        or module._backward_pre_hooks
        or module._backward_hooks
        or torch_module._has_any_global_hook()  # type: ignore[no-untyped-call]
    )
