"""Categorical policies in torch: rows of log-probabilities, one row a sample."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def taken(rows: Tensor, actions: Tensor) -> Tensor:
    """Return each sample's entry for the action that was taken.

    Args:
        rows: (N, A), one number for each action, such as its log-probability.
        actions: (N,) integers in [0, A).

    Returns:
        (N,), differentiable in rows.

    >>> taken(torch.tensor([[-0.1, -2.4], [-0.7, -0.6]]), torch.tensor([1, 0]))
    tensor([-2.4000, -0.7000])
    """
    return rows.gather(1, actions[:, None]).squeeze(1)


def kl(logp_old: Tensor, logp: Tensor) -> Tensor:
    """Return the KL divergence from the old policy to another for each sample, in nats.

    KL(old || new)(s) = sum_a old(a|s) (log old(a|s) - log new(a|s))  (chapter, section 3)

    Args:
        logp_old: (N, A) log-probabilities of the old policy; -inf rules an action out.
        logp: (N, A) log-probabilities of the other; the result is differentiable in them.

    Returns:
        (N,); inf where the other policy rules out an action that the old one takes.

    >>> kl(torch.tensor([[0.0, -torch.inf]]), torch.tensor([[0.5, 0.5]]).log())
    tensor([0.6931])
    """
    # An action that both rule out has -inf twice, and 0 * (inf - inf) would be NaN.
    difference = torch.where(logp_old == -math.inf, 0.0, logp_old - logp)
    return (logp_old.exp() * difference).sum(-1)
