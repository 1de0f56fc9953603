"""PPO's update: epochs of shuffled minibatches on one batch. A2C is its case of one epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import nn

from companion.actor_critic import ActorCritic
from companion.batch import Batch
from companion.diagnostics import approximate_kl, explained_variance
from companion.objective import adapt_beta, fraction_outside
from companion.ppo_loss import Samples, freeze, ppo_loss
from companion.ppo_settings import PPOSettings


class Diverged(FloatingPointError):
    """Training has run into NaN or infinity; the message says where, and what was healthy last."""


@dataclass(frozen=True)
class EpochRecord:
    """One pass over the batch: means over its minibatches, each taken before its step."""

    loss: float
    value_loss: float  # mean squared error, clipped if the settings say so
    entropy: float  # nats
    kl: float  # mean KL(old, new), exact in each state, nats
    kl_direct: float  # the two estimates of it from the actions taken
    kl_low_variance: float
    outside: float  # share of the ratios outside the settings' band, annealed or not
    largest_ratio: float  # of all minibatches
    grad_norm: float  # before it is limited


LARGEST = [field.name for field in fields(EpochRecord)].index("largest_ratio")


@dataclass(frozen=True)
class UpdateRecord:
    """What an update did."""

    epochs: tuple[EpochRecord, ...]  # fewer than the settings' if the KL ended them
    explained_variance: float  # of the value targets, by the values before the update
    beta: float  # penalty coefficient of this update; 0 for a method without one


class PPO:
    """An agent that learns by PPO.

    Args:
        agent: policy and value network; the parameters change in place.
        settings: how.
        rng: source of the shuffles.
    """

    def __init__(
        self, agent: ActorCritic, settings: PPOSettings, *, rng: np.random.Generator
    ) -> None:
        self.agent, self.settings, self.rng = agent, settings, rng
        self.parameters = list(agent.parameters())
        # The same bits as one parameter after the other, in fewer calls.
        self.adam = torch.optim.Adam(
            self.parameters, settings.lr, eps=settings.adam_eps, foreach=True
        )
        self.beta = settings.beta if settings.method in ("kl", "adaptive kl") else 0.0
        self.updates = 0
        self.healthy: EpochRecord | None = None

    def update(self, batch: Batch, progress: float = 0.0) -> UpdateRecord:
        """Learn from a batch that the present policy collected.

        Args:
            batch: steps.
            progress: share of the training that is over, in [0, 1), for what is annealed.

        Returns:
            UpdateRecord.

        Raises:
            Diverged: loss, values or ratios are not finite.
        """
        try:
            samples = freeze(self.agent, batch, self.settings)
        except (ValueError, FloatingPointError) as error:
            raise Diverged(
                f"update {self.updates}: {error}; last healthy epoch: {self.healthy}"
            ) from error
        left = 1.0 - progress
        for group in self.adam.param_groups:
            group["lr"] = self.settings.lr * (left if self.settings.anneal_lr else 1.0)
        beta, epochs = self.beta, []
        for epoch in range(self.settings.epochs):
            self.healthy = self._epoch(samples, left if self.settings.anneal_clip else 1.0, epoch)
            epochs.append(self.healthy)
            if self.settings.stop_kl is not None and self.healthy.kl > self.settings.stop_kl:
                break
        if self.settings.method == "adaptive kl":
            with torch.no_grad():
                now = self.agent.distribution(samples.obs).kl_from(samples.old)
            self.beta = adapt_beta(beta, float(now.mean()), self.settings.target_kl)
        self.updates += 1
        explained = explained_variance(samples.v_old, samples.target)
        return UpdateRecord(tuple(epochs), explained, beta)

    def _epoch(self, samples: Samples, clip_scale: float, epoch: int) -> EpochRecord:
        n = len(samples.adv)
        size = self.settings.minibatch or n
        order = torch.from_numpy(self.rng.permutation(n)) if size < n else torch.arange(n)
        rows = []
        for k, index in enumerate(torch.split(order, size)):
            part = Samples(*(tensor[index] for tensor in samples)) if size < n else samples
            try:
                rows.append(self._step(part, clip_scale))
            except (ValueError, FloatingPointError) as error:
                raise Diverged(
                    f"update {self.updates}, epoch {epoch}, minibatch {k}: {error}; "
                    f"last healthy epoch: {self.healthy}"
                ) from error
        columns = np.array(rows).T
        record = columns.copy().mean(axis=1)
        record[LARGEST] = columns[LARGEST].max()
        return EpochRecord(*record.tolist())

    def _step(self, part: Samples, clip_scale: float) -> tuple[float, ...]:
        """Take one step of Adam; return the fields of an EpochRecord of this minibatch alone."""
        terms = ppo_loss(self.agent, part, self.settings, self.beta, clip_scale)
        if not math.isfinite(loss := terms.loss.item()):
            raise FloatingPointError(f"the loss is {loss}")
        self.adam.zero_grad()
        terms.loss.backward()  # type: ignore[no-untyped-call]
        limit = self.settings.max_grad_norm or math.inf
        norm = nn.utils.clip_grad_norm_(self.parameters, limit)
        self.adam.step()
        r, widths = terms.ratio.detach(), (self.settings.clip_range, self.settings.clip_range_high)
        estimates = approximate_kl(terms.logp.detach(), part.logp_old)
        return (
            loss,
            terms.value_loss.item(),
            terms.entropy.item(),
            terms.kl.item(),
            estimates.direct,
            estimates.low_variance,
            fraction_outside(r, *widths),
            r.max().item(),
            norm.item(),
        )
