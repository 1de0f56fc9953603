"""PPO's options, each with what it does, and the settings of the paper that introduced PPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from companion.objective import band
from companion.validation import non_negative, number_between, positive, whole

Method = Literal["clip", "kl", "adaptive kl", "none"]
Normalize = Literal["batch", "minibatch", "none"]


@dataclass(frozen=True)
class PPOSettings:
    """How PPO learns; the defaults are the paper's for continuous control.

    Raises:
        ValueError: a field is not as its comment says.

    Reference: Schulman et al. 2017, table 3.

    >>> PPOSettings(minibatch=0)
    Traceback (most recent call last):
    ValueError: minibatch must be a whole number of at least 1; got 0
    """

    # Data
    n_envs: int = 1  # environments side by side; >= 1
    steps: int = 2048  # T: steps of each in a batch; >= 1
    gamma: float = 0.99  # discount; 0 to 1
    lam: float = 0.95  # GAE's lambda, of advantages and value targets; 0 to 1
    normalize: Normalize = "batch"  # where advantages get mean 0 and std 1

    # Policy
    method: Method = "clip"  # what restrains the policy; "none" maximizes r A alone
    clip_range: float = 0.2  # eps of "clip", and of the fraction outside; > 0
    clip_range_high: float | None = None  # upper width of the band, if it is another; > 0
    anneal_clip: bool = False  # let the band shrink to 0, linearly over the iterations
    beta: float = 1.0  # coefficient of "kl", and the first of "adaptive kl"; > 0
    target_kl: float = 0.01  # mean KL that "adaptive kl" steers to, nats; > 0
    stop_kl: float | None = None  # end the epochs when their mean KL exceeds it, nats; > 0
    entropy_coefficient: float = 0.0  # weight of the mean entropy in the objective; >= 0

    # Value
    value_coefficient: float = 1.0  # weight of the mean squared error in the loss; >= 0
    value_clip_range: float | None = None  # band around the old value, in its units; > 0

    # Optimization
    epochs: int = 10  # K: passes over each batch; >= 1
    minibatch: int | None = 64  # samples in one step of Adam; >= 1, or None: the whole batch
    lr: float = 3e-4  # Adam's step size; > 0
    anneal_lr: bool = False  # let it fall to 0, linearly over the iterations
    adam_eps: float = 1e-5  # what Adam adds to the root of the mean squared slope; > 0
    max_grad_norm: float | None = None  # scale longer gradients down to this norm; > 0

    def __post_init__(self) -> None:
        for name, choices in (("method", get_args(Method)), ("normalize", get_args(Normalize))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}; got {getattr(self, name)!r}")
        band(self.clip_range, self.clip_range_high)
        for name in ("n_envs", "steps", "epochs", "minibatch"):
            if getattr(self, name) is not None or name != "minibatch":
                object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        for name in ("gamma", "lam"):
            number_between(name, getattr(self, name), 0, 1)
        for name in ("beta", "target_kl", "lr", "adam_eps"):
            positive(name, getattr(self, name))
        for name in ("stop_kl", "value_clip_range", "max_grad_norm"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        for name in ("entropy_coefficient", "value_coefficient"):
            non_negative(name, getattr(self, name))


# Table 3 of the paper: one environment, separate networks, no entropy bonus.
CONTINUOUS_CONTROL = PPOSettings()

# Table 5: networks that share their first layers.
ATARI = PPOSettings(
    n_envs=8,
    steps=128,
    epochs=3,
    minibatch=256,
    lr=2.5e-4,
    anneal_lr=True,
    clip_range=0.1,
    anneal_clip=True,
    value_coefficient=1.0,
    entropy_coefficient=0.01,
)
