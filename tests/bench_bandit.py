"""Benchmark of the bandit table against the protocol as written, one line after the other."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from companion.bandit import BanditSettings, EpochRecord, Method, printed_columns, run
from companion.sampling import portable_categorical
from tests.timing import medians

REPEATS = 5
METHODS: dict[str, Method] = {"no clipping": "none", "clipped": "clip", "KL penalty": "kl"}
Table = dict[str, list[tuple[float, float, float, float]]]
Records = dict[str, tuple[EpochRecord, ...]]


def protocol_table() -> Table:
    """Compute (mean KL, fraction outside, largest ratio, improvement) after each epoch."""

    def make_policy() -> nn.Sequential:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4))

    torch.manual_seed(0)
    weights = np.random.default_rng(0).normal(size=(8, 4)) / np.sqrt(8)
    W = torch.tensor(weights, dtype=torch.float32)
    X, X_test = torch.randn(2048, 8), torch.randn(20000, 8)
    old = make_policy()
    with torch.no_grad():
        p_old = torch.softmax(old(X), dim=1)
        actions = portable_categorical(p_old, generator=torch.default_generator)
        reward = (X @ W)[torch.arange(2048), actions] + torch.randn(2048)
        adv = reward - (p_old * (X @ W)).sum(1)
        adv = (adv - adv.mean()) / adv.std()
        J_old = (torch.softmax(old(X_test), 1) * (X_test @ W)).sum(1).mean()
    table: Table = {}
    for method in METHODS:
        policy = make_policy()
        adam = torch.optim.Adam(policy.parameters(), lr=3e-3)
        table[method] = []
        for _ in range(10):
            for index in torch.randperm(2048).split(256):
                p = torch.softmax(policy(X[index]), 1)
                taken = torch.arange(len(index)), actions[index]
                ratio, A = p[taken] / p_old[index][taken], adv[index]
                objective = ratio * A
                if method == "clipped":
                    objective = torch.minimum(objective, ratio.clamp(0.8, 1.2) * A)
                if method == "KL penalty":
                    kl = (p_old[index] * (p_old[index].log() - p.log())).sum(1)
                    objective = objective - 3 * kl
                adam.zero_grad()
                (-objective.mean()).backward()
                adam.step()
            with torch.no_grad():
                p = torch.softmax(policy(X), 1)
                ratio = p[torch.arange(2048), actions] / p_old[torch.arange(2048), actions]
                kl = (p_old * (p_old.log() - p.log())).sum(1).mean()
                outside = ((ratio < 0.8) | (ratio > 1.2)).float().mean()
                J = (torch.softmax(policy(X_test), 1) * (X_test @ W)).sum(1).mean()
            row = (float(kl), float(outside), float(ratio.max()), float(J - J_old))
            table[method].append(row)
    return table


def companion_table() -> Records:
    """Compute the same with the package."""
    return {name: run(BanditSettings(method=method)) for name, method in METHODS.items()}


def agree(table: Table, records: Records) -> None:
    """Raise an error unless the package's records give the same table."""
    for name, record in records.items():
        columns = np.array(list(printed_columns(record).values()), dtype=float)
        expected = np.array([table[name][k - 1] for k in (1, 2, 4, 6, 10)]).T
        np.testing.assert_allclose(columns, expected, atol=6e-4)


def rows() -> list[tuple[str, float, float]]:
    """Return (name, seconds of the protocol as written, seconds of companion's)."""
    measured = medians(lambda _: protocol_table(), lambda _: companion_table(), REPEATS, agree)
    return [("bandit table", *measured)]


if __name__ == "__main__":
    print(rows())
