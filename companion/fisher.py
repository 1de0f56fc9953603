"""Fisher information of a policy: the mean KL that it is the Hessian of, dense, and as a product.

A policy is any `torch.nn.Module` that maps a batch of observations to the logits of a categorical
distribution, one row per observation. Vectors of parameters are flat: the parameters that require
a gradient, in the order of `policy.parameters()`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from companion import validation
from companion.arrays import check
from companion.categorical import kl
from companion.jacobian import Jacobian, jacobian
from companion.parameters import policy_logits, trainable


def mean_kl(old_logits: Tensor, logits: Tensor) -> Tensor:
    """Return the KL divergence from the old policy to another, averaged over observations.

    mean_n sum_a p_old(a|s_n) (log p_old(a|s_n) - log p(a|s_n))  (chapter, section 4)

    Args:
        old_logits: logits of the old policy, shape (N, A).
        logits: logits of the other policy, same shape; the result is differentiable in them.

    Returns:
        The mean in nats, shape (). Actions of old probability 0 contribute 0.

    Raises:
        ValueError: the shapes differ, there is no observation, or a row of logits holds NaN, +inf
            or -inf alone.

    Reference: Schulman et al. 2015, section 4.

    >>> round(float(mean_kl(torch.zeros(1, 2), torch.tensor([[0.0, 2.0]]))), 4)
    0.4338
    """
    if old_logits.shape != logits.shape or old_logits.ndim != 2 or not logits.numel():
        raise ValueError(
            f"old_logits has shape {tuple(old_logits.shape)} and logits {tuple(logits.shape)}; "
            "both must have one shape (N, A) with N at least 1 and A at least 1"
        )
    old, new = old_logits.log_softmax(-1), logits.log_softmax(-1)
    for name, given, rows in (("old_logits", old_logits, old), ("logits", logits, new)):
        allowed = "below +inf, no NaN, and above -inf for one action at least"
        check(torch, name, given.amax(-1), ~rows.isnan().any(-1), allowed)
    return kl(old, new).mean()


def fisher_matrix(policy: nn.Module, obs: Tensor) -> Tensor:
    """Return the Fisher matrix from outer products of scores: for small policies, to check.

    F = mean_n sum_a p(a|s_n) score(a|s_n) score(a|s_n)^T, score = grad log p  (chapter, section 4)

    Args:
        policy: module from observations to logits, with P parameters.
        obs: observations, shape (N, ...).

    Returns:
        Shape (P, P), in the dtype of the parameters. A tabular softmax makes it singular.

    Raises:
        ValueError: obs is empty, or the policy does not return logits of shape (N, A).

    Reference: Kakade 2001, section 2.

    >>> fisher_matrix(nn.Linear(1, 2, bias=False), torch.zeros(3, 1))
    tensor([[0., 0.],
            [0., 0.]])
    """
    p = policy_logits(policy, obs).detach().softmax(-1)
    # functional_call does not restore a module that stands in the policy twice (PyTorch 2.13).
    scratch = copy.deepcopy(policy)

    def log_probabilities(parameters: dict[str, Tensor], one: Tensor) -> Tensor:
        logits: Tensor = torch.func.functional_call(scratch, parameters, (one[None],))
        return logits[0].log_softmax(-1)

    scores = torch.func.vmap(torch.func.jacrev(log_probabilities), in_dims=(None, 0))
    score = torch.cat([w.flatten(2) for w in scores(trainable(policy), obs).values()], -1).flatten(
        0, 1
    )
    return ((score * p.flatten()[:, None]).T @ score / len(obs)).detach()


def fisher_vector_product(
    policy: nn.Module, obs: Tensor, damping: float = 0.0
) -> Callable[[Tensor], Tensor]:
    """Return the function v -> (F + damping I) v, without forming F.

    F v = mean_n J_n^T (diag(p_n) - p_n p_n^T) J_n v, J_n = d logits_n / d theta  (exercise 20.3)

    At theta_old the gradient of KL(old||new) in the logits is zero, so the logits' own second
    derivatives drop out of the Hessian of the mean KL in theta, which leaves J^T M J with
    M = diag(p) - p p^T the Hessian in the logits. M is also the covariance of the score in the
    logits, so this Hessian is the Fisher matrix.

    Args:
        policy: module from observations to logits, deterministic (dropout off).
        obs: observations, shape (N, ...); a part of the batch is usual.
        damping: added to the diagonal; at least 0.

    Returns:
        A function of a flat vector v, shape (P,). It keeps what one forward pass computed, and so
        holds until the parameters, or obs, change (calling it after that is a RuntimeError).

    Raises:
        ValueError: damping is negative or not finite, obs is empty, or the policy does not
            return logits of shape (N, A) that depend on its parameters.

    Reference: Schulman et al. 2015, appendix C.1.

    >>> policy = nn.Embedding.from_pretrained(torch.zeros(1, 2), freeze=False)  # one state
    >>> fisher_vector_product(policy, torch.tensor([0]), damping=0.5)(torch.tensor([2.0, 2.0]))
    tensor([1., 1.])
    """
    return product_at(jacobian(policy, obs), damping)


def product_at(J: Jacobian, damping: float) -> Callable[[Tensor], Tensor]:
    """Return `fisher_vector_product` for a Jacobian that the caller has."""
    validation.non_negative("damping", damping)
    p = J.logits.detach().softmax(-1)
    weight = p / len(p)

    def product(v: Tensor) -> Tensor:
        jv = J.push(v)
        return J.pull(weight * (jv - (p * jv).sum(-1, keepdim=True))) + damping * v

    return product
