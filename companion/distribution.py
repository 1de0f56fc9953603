"""Action distributions of torch policies: categorical for discrete actions, Gaussian for real ones.

A policy is an `nn.Module` that maps a batch of observations to rows of numbers; a distribution is
made of those rows. Both offer the same methods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from companion import categorical, sampling

HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Categorical:
    """A distribution over A actions for each of N observations.

    Args:
        rows: (N, A) log-probabilities.
    """

    rows: Tensor

    @classmethod
    def of(cls, output: Tensor) -> Categorical:
        """Make it of a policy's output: logits (N, A)."""
        return cls(output.log_softmax(-1))

    def logp(self, actions: Tensor) -> Tensor:
        """Return the log-probability (N,) of each action taken (N,), nats."""
        return categorical.taken(self.rows, actions)

    def entropy(self) -> Tensor:
        """Return the entropy (N,), nats.

        - sum_a pi(a|s) log pi(a|s)  (chapter, section 7)
        """
        return -(self.rows.exp() * self.rows).sum(-1)

    def kl_from(self, old: Tensor) -> Tensor:
        """Return KL(old || this), (N,), nats, given the old policy's output: logits (N, A)."""
        return categorical.kl(old.log_softmax(-1), self.rows)

    def sample(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw one action for each observation, (N,)."""
        return sampling.draw(self.rows.detach().double().exp().numpy(), rng)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Independent normal actions of d dimensions for each of N observations.

    Args:
        mean, log_std: (N, d) each.
    """

    mean: Tensor
    log_std: Tensor

    @classmethod
    def of(cls, output: Tensor) -> Gaussian:
        """Make it of a policy's output (N, 2 d): means, then logarithms of standard deviations."""
        mean, log_std = output.chunk(2, -1)
        return cls(mean, log_std)

    def logp(self, actions: Tensor) -> Tensor:
        """Return the logarithm of the density (N,) at each action taken (N, d), nats."""
        z = (actions - self.mean) * (-self.log_std).exp()
        return -(0.5 * z**2 + self.log_std + HALF_LOG_TAU).sum(-1)

    def entropy(self) -> Tensor:
        """Return the differential entropy (N,), nats; it may be negative.

        sum_i log sigma_i + 1/2 log(2 pi e)
        """
        return (self.log_std + HALF_LOG_TAU + 0.5).sum(-1)

    def kl_from(self, old: Tensor) -> Tensor:
        """Return KL(old || this), (N,), nats, given the old policy's output (N, 2 d).

        sum_i log(sigma_i / sigma'_i) + (sigma'_i^2 + (mu'_i - mu_i)^2) / (2 sigma_i^2) - 1/2,
        the old ones with a dash
        """
        mean, log_std = old.chunk(2, -1)
        spread = (2 * log_std).exp() + (mean - self.mean) ** 2
        each = self.log_std - log_std + 0.5 * spread * (-2 * self.log_std).exp() - 0.5
        return each.sum(-1)

    def sample(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw one action for each observation, (N, d)."""
        noise = rng.standard_normal(self.mean.shape, dtype=np.float32)
        with torch.no_grad():
            actions: NDArray[Any] = (
                self.mean + self.log_std.exp() * torch.from_numpy(noise)
            ).numpy()
        return actions


Distribution: TypeAlias = Categorical | Gaussian
