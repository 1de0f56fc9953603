"""PPO's loss on samples of a batch, and A2C's, which PPO's first step follows."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from companion.actor_critic import ActorCritic
from companion.advantage import lambda_targets, standardized
from companion.batch import Batch
from companion.objective import clipped_objective, penalized_objective, ratio
from companion.ppo_settings import PPOSettings
from companion.value_loss import clipped_value_loss


class Samples(NamedTuple):
    """What the loss needs of each step, frozen when the update begins."""

    obs: Tensor  # (n, ...)
    actions: Tensor  # (n,) or (n, d)
    adv: Tensor  # (n,)
    target: Tensor  # (n,): TD(lambda) returns
    v_old: Tensor  # (n,)
    logp_old: Tensor  # (n,)
    old: Tensor  # (n, ...): the policy's rows, which its distribution is made of


class Terms(NamedTuple):
    """A loss on samples, and what it was made of."""

    loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    kl: Tensor  # mean over the samples' states
    logp: Tensor  # (n,)
    ratio: Tensor  # (n,)


@torch.no_grad()
def freeze(agent: ActorCritic, batch: Batch, settings: PPOSettings) -> Samples:
    """Compute what an update on a batch starts from: advantages, targets, old policy and values.

    Args:
        agent: with the parameters that collected the batch.
        batch: steps.
        settings: gamma, lam and normalize count.

    Returns:
        Samples.
    """
    obs, actions = torch.from_numpy(batch.obs), torch.from_numpy(batch.actions)
    v, following = (agent.values(torch.from_numpy(x)) for x in (batch.obs, batch.next_obs))
    made = lambda_targets(
        batch.rewards,
        v.numpy(),
        following.numpy(),
        batch.terminated,
        batch.last,
        settings.gamma,
        settings.lam,
    )
    adv = standardized(made.adv) if settings.normalize == "batch" else made.adv
    old = agent.policy(obs)
    logp_old = agent.kind.of(old).logp(actions)
    target = torch.from_numpy(made.target)
    return Samples(obs, actions, torch.from_numpy(adv), target, v, logp_old, old)


def ppo_loss(
    agent: ActorCritic,
    samples: Samples,
    settings: PPOSettings,
    beta: float = 0.0,
    clip_scale: float = 1.0,
) -> Terms:
    """Compute PPO's loss (minimized) on samples.

    - mean objective + c_v mean (v - G)^2 - c_H mean entropy  (chapter, section 7)

    Args:
        agent: policy and value network.
        samples: the whole batch, or a minibatch of it.
        settings: method and coefficients.
        beta: penalty coefficient, for a method with one.
        clip_scale: what the band's widths are multiplied by, above 0.

    Returns:
        Terms, differentiable in the agent's parameters.

    Raises:
        ValueError: a ratio, a value or an advantage is not finite.

    Reference: Schulman et al. 2017, equation 9.
    """
    pi, v = agent.distribution(samples.obs), agent.values(samples.obs)
    logp = pi.logp(samples.actions)
    r, adv = ratio(logp, samples.logp_old), samples.adv
    if settings.normalize == "minibatch":
        adv = torch.from_numpy(standardized(adv.numpy()))
    kl = pi.kl_from(samples.old)
    if settings.method == "clip":
        high = settings.clip_range_high or settings.clip_range
        objective = clipped_objective(r, adv, settings.clip_range * clip_scale, high * clip_scale)
    else:
        objective = penalized_objective(r, adv, kl, beta)
    if settings.value_clip_range is None:
        value_loss = ((v - samples.target) ** 2).mean()
    else:
        width = settings.value_clip_range
        value_loss = clipped_value_loss(v, samples.v_old, samples.target, width).mean()
    entropy = pi.entropy().mean()
    loss = settings.value_coefficient * value_loss - settings.entropy_coefficient * entropy
    return Terms(loss - objective.mean(), value_loss, entropy, kl.mean(), logp, r)


def a2c_loss(agent: ActorCritic, samples: Samples, settings: PPOSettings) -> Tensor:
    """Compute A2C's loss (minimized), which knows no ratio: PPO's of one epoch has its gradient.

    - mean A log pi(a|s) + c_v mean (v - G)^2 - c_H mean entropy  (chapter, section 7)

    Args:
        agent, samples, settings: as for `ppo_loss`; of the settings, the coefficients count.

    Returns:
        The loss, differentiable in the agent's parameters.

    Reference: Mnih et al. 2016, section 4; Huang et al. 2022b, "A2C is a special case of PPO".
    """
    pi = agent.distribution(samples.obs)
    gain = (samples.adv * pi.logp(samples.actions)).mean()
    value_loss = ((agent.values(samples.obs) - samples.target) ** 2).mean()
    bonus = settings.entropy_coefficient * pi.entropy().mean()
    return settings.value_coefficient * value_loss - gain - bonus
