"""The bandit clip experiment: what clipping and KL penalties do to one batch used many times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from companion.categorical import kl, taken
from companion.objective import (
    adapt_beta,
    band,
    clipped_objective,
    fraction_outside,
    penalized_objective,
    ratio,
)
from companion.sampling import portable_categorical
from companion.validation import non_negative, positive, whole

Method = Literal["none", "clip", "kl", "adaptive kl"]

FEATURES, HIDDEN, ACTIONS, SAMPLES, TEST_CONTEXTS = 8, 64, 4, 2048, 20_000
FLOAT = torch.float32  # said everywhere, so that torch's default dtype has no say in the digits


@dataclass(frozen=True)
class BanditSettings:
    """One run of the experiment; the defaults are the chapter's.

    Raises:
        ValueError: a field is not as its comment says.

    >>> BanditSettings(method="kl", beta=-1.0)
    Traceback (most recent call last):
    ValueError: beta must be finite and at least 0; got -1.0
    """

    method: Method = "clip"  # what restrains the policy; "none" maximizes r A alone
    clip_range: float = 0.2  # band of "clip" and of the fraction outside; > 0
    clip_range_high: float | None = None  # upper width of the band, if it is another; > 0
    beta: float = 3.0  # coefficient of "kl", and of the first epoch of "adaptive kl"; >= 0 (> 0)
    target_kl: float = 0.02  # mean KL that "adaptive kl" steers to, nats; > 0
    epochs: int = 10  # passes over the one batch; >= 1
    lr: float = 3e-3  # Adam's step size; > 0
    minibatch: int = 256  # samples in one Adam step; >= 1
    seed: int = 0  # problem and data from seed, initial policy and shuffles from seed + 1; >= 0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ValueError(f"method must be one of {get_args(Method)}; got {self.method!r}")
        band(self.clip_range, self.clip_range_high)
        non_negative("beta", self.beta)
        if self.method == "adaptive kl":
            positive("beta", self.beta)
        for name in ("target_kl", "lr"):
            positive(name, getattr(self, name))
        for name, at_least in (("epochs", 1), ("minibatch", 1), ("seed", 0)):
            whole(name, getattr(self, name), at_least)


@dataclass(frozen=True)
class EpochRecord:
    """The state after one epoch, measured on the whole batch."""

    epoch: int  # from 1
    kl: float  # mean KL(old, new), nats
    outside: float  # share of the samples whose ratio is outside the band
    largest_ratio: float
    improvement: float  # J(new) - J(old) on the test contexts, from the known means, not sampled
    beta: float  # penalty coefficient in this epoch; 0 for a method without one


class Bandit(NamedTuple):
    """A contextual bandit, the batch that the old policy collected, and that policy's values."""

    contexts: Tensor  # (N, d)
    actions: Tensor  # (N,)
    adv: Tensor  # (N,), standardized
    logp_old: Tensor  # (N, A)
    test_contexts: Tensor  # (M, d)
    test_means: Tensor  # (M, A): true mean reward of each action
    old_return: float  # J of the old policy


def run(settings: BanditSettings) -> tuple[EpochRecord, ...]:
    """Train a fresh policy for several epochs on one batch, and measure it after each epoch.

    maximize the mean of r A, min(r A, clip(r) A) or r A - beta KL(old, new)  (chapter, section 6)

    Args:
        settings: method, its coefficients, and the seed.

    Returns:
        One record per epoch. The result depends on the settings alone; torch's global generator
        is left as it was found.

    Reference: Schulman et al. 2017, section 6.1; protocol of the printed table, steps 7 and 8.

    >>> first = run(BanditSettings(method="clip", epochs=1))[0]
    >>> f"{first.kl:.3f} {first.outside:.3f} {first.largest_ratio:.3f} {first.improvement:.3f}"
    '0.026 0.373 1.867 0.124'
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        bandit = make_bandit(settings.seed)
        policy = initial_policy(settings.seed)
        adam = torch.optim.Adam(policy.parameters(), settings.lr)
        beta = settings.beta if settings.method in ("kl", "adaptive kl") else 0.0
        records = []
        for epoch in range(1, settings.epochs + 1):
            for index in torch.split(torch.randperm(SAMPLES), settings.minibatch):
                loss = -_objective(settings, policy, bandit, beta, index).mean()
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                adam.step()
            records.append(_measure(settings, policy, bandit, epoch, beta))
            if settings.method == "adaptive kl":
                beta = adapt_beta(beta, records[-1].kl, settings.target_kl)
    return tuple(records)


def printed_columns(
    records: Sequence[EpochRecord], epochs: Sequence[int] = (1, 2, 4, 6, 10)
) -> dict[str, list[str]]:
    """Write the four columns of the chapter's table, as it prints them.

    Args:
        records: what `run` returned.
        epochs: the epochs to print, each at most len(records).

    Returns:
        Name of each column -> one string of three decimals per epoch.

    >>> printed_columns([EpochRecord(1, 0.02, 0.25, 1.5, 0.1, 0.0)], epochs=[1])["mean KL"]
    ['0.020']
    """
    rows = [records[epoch - 1] for epoch in epochs]
    return {
        "mean KL": [f"{row.kl:.3f}" for row in rows],
        "outside [0.8, 1.2]": [f"{row.outside:.3f}" for row in rows],
        "largest ratio": [f"{row.largest_ratio:.3f}" for row in rows],
        "improvement": [f"{row.improvement:.3f}" for row in rows],
    }


@torch.no_grad()
def make_bandit(seed: int) -> Bandit:
    """Draw the problem, the batch and the test contexts of a seed (protocol, steps 1 to 6)."""
    # The order of the draws is the printed protocol's.
    torch.default_generator.manual_seed(seed)
    w = np.random.default_rng(seed).normal(size=(FEATURES, ACTIONS)) / math.sqrt(FEATURES)
    weights = torch.from_numpy(w.astype(np.float32))
    contexts = torch.randn(SAMPLES, FEATURES, dtype=FLOAT)
    test_contexts = torch.randn(TEST_CONTEXTS, FEATURES, dtype=FLOAT)
    old = initial_policy(seed)
    logp_old = old(contexts).log_softmax(-1)
    p_old, means = logp_old.exp(), contexts @ weights
    actions = portable_categorical(p_old, generator=torch.default_generator)
    rewards = taken(means, actions) + torch.randn(SAMPLES, dtype=FLOAT)
    adv = rewards - (p_old * means).sum(-1)
    adv = (adv - adv.mean()) / adv.std()
    test_means = test_contexts @ weights
    old_return = _true_return(old, test_contexts, test_means)
    return Bandit(contexts, actions, adv, logp_old, test_contexts, test_means, old_return)


def initial_policy(seed: int) -> nn.Sequential:
    """Make the policy that all methods of a seed start from, and seed their shuffles."""
    # Seeding is part of the protocol: all methods start equal and then see the same shuffles.
    # torch.manual_seed would also reseed accelerators, whose state `run` does not restore.
    torch.default_generator.manual_seed(seed + 1)
    hidden = nn.Linear(FEATURES, HIDDEN, dtype=FLOAT)
    return nn.Sequential(hidden, nn.Tanh(), nn.Linear(HIDDEN, ACTIONS, dtype=FLOAT))


def _objective(
    settings: BanditSettings, policy: nn.Module, bandit: Bandit, beta: float, index: Tensor
) -> Tensor:
    logp, logp_old = policy(bandit.contexts[index]).log_softmax(-1), bandit.logp_old[index]
    r, adv = _ratio(logp, logp_old, bandit.actions[index]), bandit.adv[index]
    objective: Tensor
    if settings.method == "none":
        objective = r * adv
    elif settings.method == "clip":
        objective = clipped_objective(r, adv, settings.clip_range, settings.clip_range_high)
    else:
        objective = penalized_objective(r, adv, kl(logp_old, logp), beta)
    return objective


@torch.no_grad()
def _measure(
    settings: BanditSettings, policy: nn.Module, bandit: Bandit, epoch: int, beta: float
) -> EpochRecord:
    logp = policy(bandit.contexts).log_softmax(-1)
    r = _ratio(logp, bandit.logp_old, bandit.actions)
    new_return = _true_return(policy, bandit.test_contexts, bandit.test_means)
    return EpochRecord(
        epoch=epoch,
        kl=float(kl(bandit.logp_old, logp).mean()),
        outside=fraction_outside(r, settings.clip_range, settings.clip_range_high),
        largest_ratio=float(r.max()),
        improvement=new_return - bandit.old_return,
        beta=beta,
    )


def _ratio(logp: Tensor, logp_old: Tensor, actions: Tensor) -> Tensor:
    r: Tensor = ratio(taken(logp, actions), taken(logp_old, actions))
    return r


def _true_return(policy: nn.Module, contexts: Tensor, means: Tensor) -> float:
    return float((policy(contexts).softmax(-1) * means).sum(-1).mean())
