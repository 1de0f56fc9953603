"""Answers to exercise 20.6."""

import numpy as np
import torch
from scipy.optimize import brentq

from companion.mdp import TabularMDP, evaluate
from companion.objective import adapt_beta as companions_rule
from tests.zoo import right, wrong

# a


@right("20-6-a", "two conditional expressions")
def _(beta, kl, target):
    return beta * (2 if kl > 1.5 * target else 0.5 if 1.5 * kl < target else 1)


@right("20-6-a", "the sign of the log in units of the threshold")
def _(beta, kl, target):
    return np.float32(beta * 2.0 ** np.trunc(np.clip(np.log(kl / target) / np.log(1.5), -1, 1)))


@wrong("20-6-a", "doubling and halving are interchanged")
def _(beta, kl, target):
    if kl > 1.5 * target:
        return beta / 2
    return 2 * beta if kl < target / 1.5 else beta


@wrong("20-6-a", "there is no dead zone")
def _(beta, kl, target):
    return 2 * beta if kl > target else beta / 2


@wrong("20-6-a", "beta is halved as soon as the KL is below the target")
def _(beta, kl, target):
    if kl > 1.5 * target:
        return 2 * beta
    return beta / 2 if kl < target else beta


@wrong("20-6-a", "the lower threshold is half the target")
def _(beta, kl, target):
    if abs(kl - target) <= 0.5 * target:
        return beta
    return 2 * beta if kl > target else beta / 2


@wrong("20-6-a", "the thresholds are a factor 2 from the target")
def _(beta, kl, target):
    if kl > 2 * target:
        return 2 * beta
    return beta / 2 if kl < target / 2 else beta


@wrong("20-6-a", "beta changes by the factor of the thresholds")
def _(beta, kl, target):
    if kl > 1.5 * target:
        return 1.5 * beta
    return beta / 1.5 if kl < target / 1.5 else beta


@wrong("20-6-a", "beta never falls")
def _(beta, kl, target):
    return 2 * beta if kl > 1.5 * target else beta


@wrong("20-6-a", "beta is multiplied by the KL over the target")
def _(beta, kl, target):
    return kl / target * beta


@wrong("20-6-a", "the thresholds are not relative to the target")
def _(beta, kl, target):
    if kl > 1.5:
        return 2 * beta
    return beta / 2 if kl < 1 / 1.5 else beta


# b


def step(pi, adv, beta):
    """The maximizer, its level found state by state by a root finder."""
    rows = []
    for p, A in zip(pi, adv, strict=True):
        low, high = (A + beta * p).max(), A.max() + beta
        level = brentq(lambda x, p=p, A=A: (beta * p / (x - A)).sum() - 1, low, high, xtol=1e-14)
        rows.append(beta * p / (level - A))
    return np.array(rows)


@right("20-6-b", "SciPy's root finder")
def _(pi, adv, beta):
    return step(pi, adv, beta)


@right("20-6-b", "torch, Newton ascent on the logits")
def _(pi, adv, beta):
    pi, A = torch.tensor(pi), torch.tensor(adv)
    rows = []
    for p, a in zip(pi, A, strict=True):
        # One logit is held, so that the Hessian can be inverted.
        def loss(z, p=p, a=a):
            logp = torch.cat([z, torch.zeros(1, dtype=z.dtype)]).log_softmax(0)
            return beta * (p * (p.log() - logp)).sum() - (logp.exp() * a).sum()

        z = (p.log() - p.log()[-1])[:-1].requires_grad_()
        optimizer = torch.optim.LBFGS(
            [z],
            max_iter=300,
            tolerance_grad=1e-12,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )

        def closure(z=z, optimizer=optimizer, loss=loss):
            optimizer.zero_grad()
            value = loss(z)
            value.backward()
            return value

        optimizer.step(closure)
        rows.append(torch.cat([z.detach(), torch.zeros(1, dtype=z.dtype)]).softmax(0))
    return torch.stack(rows).float()


@wrong("20-6-b", "the arguments of the KL are swapped")
def _(pi, adv, beta):
    weights = pi * np.exp(adv / beta)
    return weights / weights.sum(axis=1, keepdims=True)


@wrong("20-6-b", "beta multiplies the advantages")
def _(pi, adv, beta):
    return step(pi, beta * adv, 1.0)


@wrong("20-6-b", "the probabilities are divided by their sum")
def _(pi, adv, beta):
    weights = beta * pi / (adv.max(axis=1)[:, None] + beta - adv)
    return weights / weights.sum(axis=1)[:, None]


@wrong("20-6-b", "the step of first order")
def _(pi, adv, beta):
    return pi + pi * adv / beta


@wrong("20-6-b", "the penalty is left out")
def _(pi, adv, beta):
    return np.eye(pi.shape[1])[adv.argmax(axis=1)]


@wrong("20-6-b", "the sign of the advantages is reversed")
def _(pi, adv, beta):
    return step(pi, -adv, beta)


@wrong("20-6-b", "the old policy is taken for uniform")
def _(pi, adv, beta):
    return step(np.ones_like(pi) / pi.shape[1], adv, beta)


# c and d


def mean_kl(old, new, rho):
    return (old * np.log(old / new)).sum(axis=1) @ rho / rho.sum()


def double_or_halve(beta, kl, target):
    if kl > 1.5 * target:
        return 2 * beta
    return beta / 2 if kl < target / 1.5 else beta


def loop(
    P, r, gamma, mu, pi, beta, target, updates, *, rule=double_or_halve, measure=mean_kl, move=step
):
    """The KLs and betas of the loop, or of one with another rule, measure or step."""
    kls, betas = [], []
    for _ in range(updates):
        _, _, adv, rho = evaluate(TabularMDP(P, r, gamma, mu), pi)
        new = move(pi, adv, beta)
        kls.append(measure(pi, new, rho))
        betas.append(beta)
        beta, pi = rule(beta, kls[-1], target), new
    return np.array([kls, betas])


def loop_from_the_first(P, r, gamma, mu, pi, beta, target, updates):
    kls, betas = [], []
    _, _, adv, rho = evaluate(TabularMDP(P, r, gamma, mu), pi)
    for _ in range(updates):
        kls.append(mean_kl(pi, step(pi, adv, beta), rho))
        betas.append(beta)
        beta = double_or_halve(beta, kls[-1], target)
    return np.array([kls, betas])


@right("20-6-c", "SciPy's root finder")
def _(**c):
    return loop(**c)


@right("20-6-c", "the companion's rule, and lists of single-precision tensors")
def _(**c):
    kls, betas = loop(rule=companions_rule, **c)
    return [[torch.tensor(x, dtype=torch.float32) for x in row] for row in (kls, betas)]


@wrong("20-6-c", "doubling and halving are interchanged")
def _(**c):
    return loop(rule=lambda beta, kl, target: beta**2 / double_or_halve(beta, kl, target), **c)


@wrong("20-6-c", "there is no dead zone")
def _(**c):
    return loop(rule=lambda beta, kl, target: beta * 2 if kl > target else beta / 2, **c)


@wrong("20-6-c", "beta never falls")
def _(**c):
    return loop(rule=lambda beta, kl, target: beta * 2 if kl > 1.5 * target else beta, **c)


@wrong("20-6-c", "beta is not adapted")
def _(**c):
    return loop(rule=lambda beta, kl, target: beta, **c)


@wrong("20-6-c", "beta is reported after it was adapted")
def _(target, **c):
    kls, betas = loop(target=target, **c)
    return [kls, [double_or_halve(b, kl, target) for b, kl in zip(betas, kls, strict=True)]]


def swapped(old, new, rho):
    return mean_kl(new, old, rho)


def alike(old, new, rho):
    return (old * np.log(old / new)).sum(axis=1).mean()


@wrong("20-6-c", "the arguments of the KL are swapped")
def _(**c):
    return loop(measure=swapped, **c)


@wrong("20-6-c", "the states count alike in the mean KL")
def _(**c):
    return loop(measure=alike, **c)


@wrong("20-6-c", "the states are weighted by the unnormalized visitation")
def _(**c):
    return loop(measure=lambda old, new, rho: rho.sum() * mean_kl(old, new, rho), **c)


@wrong("20-6-c", "every update starts from the first policy")
def _(**c):
    return loop_from_the_first(**c)


def fixed(beta, kl, target):
    return beta


def numbers(r, scale, target, at=-1, **c):
    """The four numbers of part d, with what else a loop takes."""
    first = [loop(r=s * r, target=target, **c)[0][0] for s in (1, scale)]
    last = [loop(r=r, target=target, **c | {"rule": f})[0][at] for f in (fixed, double_or_halve)]
    return np.array([*first, *last]) / target


@right("20-6-d", "SciPy's root finder")
def _(**c):
    return numbers(**c)


@right("20-6-d", "advantages scaled instead of rewards, rounded to five digits")
def _(r, scale, target, **c):
    once = c | {"updates": 1}
    scaled = loop(r=r, target=target, move=lambda pi, A, beta: step(pi, scale * A, beta), **once)
    first, _, *last = numbers(r, scale, target, **c)
    return [float(f"{x:.5g}") for x in (first, scaled[0][0] / target, *last)]


@wrong("20-6-d", "the KLs are in nats")
def _(target, **c):
    return numbers(target=target, **c) * target


@wrong("20-6-d", "the arguments of the KL are swapped")
def _(**c):
    return numbers(measure=swapped, **c)


@wrong("20-6-d", "the states count alike in the mean KL")
def _(**c):
    return numbers(measure=alike, **c)


@wrong("20-6-d", "every update starts from the first policy")
def _(r, scale, target, **c):
    run, scaled = (loop_from_the_first(r=s * r, target=target, **c)[0] for s in (1, scale))
    return np.array([run[0], scaled[0], run[0], run[-1]]) / target


@wrong("20-6-d", "the update before the last is taken for the last")
def _(**c):
    return numbers(at=c["updates"] - 2, **c)


@wrong("20-6-d", "a mirror step instead of the penalized step")
def _(**c):
    def mirror(pi, adv, beta):
        weights = pi * np.exp(adv / beta)
        return weights / weights.sum(axis=1)[:, None]

    return numbers(move=mirror, **c)


@wrong("20-6-d", "the last two numbers are interchanged")
def _(**c):
    *first, steady, steered = numbers(**c)
    return [*first, steered, steady]
