"""Small policies of every kind that the trust region must take."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

N_OBS, N_ACTIONS = 12, 3


class Shared(nn.Module):
    """One layer used twice, a second one with the first one's weight, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.first.weight
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.last = nn.Linear(4, N_ACTIONS)

    def forward(self, obs: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(torch.tanh(self.first(obs))))
        logits: Tensor = self.last(self.frozen(torch.tanh(self.tied(hidden))))
        return logits


class WithCritic(nn.Module):
    """Logits from a body that a value head shares: the head receives no gradient from them."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Linear(5, 1)
        self.body = nn.Linear(4, 5)
        self.last = nn.Linear(5, N_ACTIONS)

    def forward(self, obs: Tensor) -> Tensor:
        logits: Tensor = self.last(torch.relu(self.body(obs)))
        return logits


class Masked(nn.Module):
    """The last action is impossible in every second observation: its logit is -inf."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, N_ACTIONS)

    def forward(self, obs: Tensor) -> Tensor:
        mask = torch.zeros(N_ACTIONS, dtype=torch.bool)
        mask[-1] = True
        odd = obs[:, :1] > 0
        logits: Tensor = self.linear(obs)
        return logits.masked_fill(mask & odd, -torch.inf)


KINDS: dict[str, Callable[[], nn.Module]] = {
    "tanh network": lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, N_ACTIONS)),
    "tabular": lambda: nn.Embedding(4, N_ACTIONS),
    "shared layers": Shared,
    "with a critic": WithCritic,
    "masked actions": Masked,
}


def batch(
    kind: str, dtype: torch.dtype = torch.float64, seed: int = 0
) -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """Return a random policy of this kind with observations, its actions, and advantages."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = KINDS[kind]().to(dtype)
        obs = torch.randn(N_OBS, 4, dtype=dtype)
        if kind == "tabular":
            obs = torch.randint(4, (N_OBS,))
        with torch.no_grad():
            actions = policy(obs).softmax(-1).multinomial(1).squeeze(1)
        return policy, obs, actions, torch.randn(N_OBS, dtype=dtype)


def parameters(policy: nn.Module) -> Tensor:
    """Return a flat copy of the parameters that require a gradient."""
    return torch.cat([w.detach().flatten() for w in policy.parameters() if w.requires_grad])


def moved(policy: nn.Module, step: Tensor) -> dict[str, Tensor]:
    """Return the parameters moved by a flat step, by name, for torch.func.functional_call."""
    new, start = {}, 0
    for name, w in policy.named_parameters():
        if w.requires_grad:
            new[name] = w.detach() + step[start : start + w.numel()].view_as(w)
            start += w.numel()
    return new
