"""Answers to exercise 20.7."""

import numpy as np
import torch
from scipy.optimize import brentq, minimize

from companion.mirror import mirror_step as companions_step
from tests.zoo import right, wrong


def normalized(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


# a


@right("20-7-a", "torch's softmax in float32")
def _(pi, q, eta):
    return (torch.tensor(pi).float().log() + eta * torch.tensor(q).float()).softmax(1)


@right("20-7-a", "the companion's function")
def _(pi, q, eta):
    return companions_step(pi, q, eta)


@right("20-7-a", "the maximum found by SciPy")
def _(pi, q, eta):
    def loss(z, p, values):
        new = normalized(np.exp(z - z.max()))
        return new @ np.log(new / p) - eta * new @ values

    options = {"maxiter": 20_000, "xatol": 1e-9, "fatol": 1e-13}
    return [
        normalized(np.exp(minimize(loss, np.log(p), (p, v), "Nelder-Mead", options=options).x))
        for p, v in zip(pi, q, strict=True)
    ]


@wrong("20-7-a", "a greedy step instead of the mirror step")
def _(pi, q, eta):
    return np.eye(q.shape[1])[q.argmax(axis=1)]


@wrong("20-7-a", "eta divides the action values")
def _(pi, q, eta):
    return normalized(pi * np.exp(q / eta))


@wrong("20-7-a", "the normalization is forgotten")
def _(pi, q, eta):
    return np.exp(np.log(pi) + eta * q)


@wrong("20-7-a", "the old policy is left out")
def _(pi, q, eta):
    return normalized(np.exp(eta * q))


@wrong("20-7-a", "the exponential is replaced by its first order")
def _(pi, q, eta):
    return normalized(pi + eta * pi * q)


@wrong("20-7-a", "the sign of the action values is reversed")
def _(pi, q, eta):
    return normalized(pi / np.exp(eta * q))


@wrong("20-7-a", "the arguments of the KL are swapped")
def _(pi, q, eta):
    rows = []
    for p, v in zip(pi, q, strict=True):
        bounds = (v + p / eta).max(), v.max() + 1 / eta
        level = brentq(lambda x, p=p, v=v: (p / (x - v)).sum() - eta, *bounds, xtol=1e-14)
        rows.append(p / (level - v) / eta)
    return rows


# b


@right("20-7-b", "the log probabilities' change, centred")
def _(pi, q, eta):
    change = np.log(normalized(pi * np.exp(eta * q))) - np.log(pi)
    return change - (pi * change).sum(axis=1, keepdims=True)


@right("20-7-b", "the natural gradient with a pseudo-inverse of the Fisher matrix")
def _(pi, q, eta):
    rows = []
    for p, v in zip(pi, q, strict=True):
        fisher = np.diag(p) - np.outer(p, p)
        change = eta * np.linalg.pinv(fisher) @ (p * (v - p @ v))
        rows.append(change - p @ change)
    return np.float32(rows)


@wrong("20-7-b", "the mean under the policy is not zero")
def _(pi, q, eta):
    return eta * q


@wrong("20-7-b", "the difference of the log probabilities")
def _(pi, q, eta):
    return np.log(normalized(pi * np.exp(eta * q))) - np.log(pi)


@wrong("20-7-b", "the mean is over the actions alike")
def _(pi, q, eta):
    return eta * (q - q.mean(axis=1, keepdims=True))


@wrong("20-7-b", "the mean is under the new policy")
def _(pi, q, eta):
    new = normalized(pi * np.exp(eta * q))
    return eta * (q - (new * q).sum(axis=1, keepdims=True))


@wrong("20-7-b", "a gradient step instead of the natural step")
def _(pi, q, eta):
    return eta * pi * (q - (pi * q).sum(axis=1, keepdims=True))


@wrong("20-7-b", "eta divides the action values")
def _(pi, q, eta):
    return (q - (pi * q).sum(axis=1, keepdims=True)) / eta


@wrong("20-7-b", "eta is left out")
def _(pi, q, eta):
    return q - np.einsum("sa,sa->s", pi, q)[:, None]


# c


def gap(q):
    best = q.argmax()
    return q[best] - np.delete(q, best).max()


@right("20-7-c", "advantages")
def _(pi, q):
    A = q - pi @ q
    return [pi @ A**2, pi @ A**2 / 2, gap(q)]


@right("20-7-c", "numerically, at a small and at large eta")
def _(pi, q):
    eta = 1e-4
    new = normalized(pi * np.exp(eta * q))
    old = normalized(pi * np.exp(-eta * q))  # central differences cancel the next order
    divergence = new @ np.log(new / pi) + old @ np.log(old / pi)

    def log_rest(eta):
        weights = pi * np.exp(eta * (q - q.max()))
        return np.log(np.delete(weights, q.argmax()).sum())

    return [(new - old) @ q / (2 * eta), divergence / (2 * eta**2), log_rest(100) - log_rest(101)]


@wrong("20-7-c", "a factor one half is missing in the KL")
def _(pi, q):
    variance = pi @ (q - pi @ q) ** 2
    return [variance, variance, gap(q)]


@wrong("20-7-c", "a factor one half too many in the gain")
def _(pi, q):
    variance = pi @ (q - pi @ q) ** 2
    return [variance / 2, variance / 2, gap(q)]


@wrong("20-7-c", "the second moment instead of the variance")
def _(pi, q):
    return [pi @ q**2, pi @ q**2 / 2, gap(q)]


@wrong("20-7-c", "the actions are averaged without the policy")
def _(pi, q):
    return [q.var(), q.var() / 2, gap(q)]


@wrong("20-7-c", "the gap to the worst action")
def _(pi, q):
    variance = pi @ (q - pi @ q) ** 2
    return [variance, variance / 2, q.max() - q.min()]


@wrong("20-7-c", "the best action's value instead of a gap")
def _(pi, q):
    variance = pi @ (q - pi @ q) ** 2
    return [variance, variance / 2, q.max()]


@wrong("20-7-c", "the best action's advantage instead of a gap")
def _(pi, q):
    A = q - pi @ q
    return [pi @ A**2, pi @ A**2 / 2, A.max()]


# d


def start(reward, stuck):
    pi = [(1 - stuck) / (len(reward) - 1)] * len(reward)
    pi[int(np.argmin(reward))] = stuck
    return np.array(pi)


def natural(pi, reward):
    return reward


def gradient(pi, reward):
    return pi * (reward - pi @ reward)


def count(reward, pi, eta, direction):
    """Updates until the best arm has more than one half, by multiplying the probabilities."""
    updates = 0
    while pi[reward.argmax()] <= 0.5:
        pi = normalized(pi * np.exp(eta * direction(pi, reward)))
        updates += 1
    return updates


def numbers(reward, pi, eta, mirror=natural, ascent=gradient):
    counts = [count(reward, pi, eta, direction) for direction in (mirror, ascent)]
    return [*counts, ascent(pi, reward)[reward.argmax()]]


@right("20-7-d", "probabilities multiplied instead of logits added")
def _(reward, stuck, eta):
    return numbers(reward, start(reward, stuck), eta)


@right("20-7-d", "the mirror steps in closed form, torch's gradients")
def _(reward, stuck, eta):
    pi, best = start(reward, stuck), reward.argmax()
    k = 0
    while normalized(pi * np.exp(k * eta * reward))[best] <= 0.5:
        k += 1
    z, r = torch.tensor(np.log(pi), requires_grad=True), torch.tensor(reward)
    slopes = []
    while (p := z.softmax(0))[best] <= 0.5:
        (slope,) = torch.autograd.grad(p @ r, z)
        slopes.append(slope)
        with torch.no_grad():
            z += eta * slope
    return [k, len(slopes), slopes[0][best].float()]


@wrong("20-7-d", "the updates are counted from 1")
def _(reward, stuck, eta):
    mirror, ascent, slope = numbers(reward, start(reward, stuck), eta)
    return [mirror + 1, ascent + 1, slope]


@wrong("20-7-d", "the start is on the best arm")
def _(reward, stuck, eta):
    return numbers(reward, start(-reward, stuck), eta)


@wrong("20-7-d", "the start is uniform")
def _(reward, stuck, eta):
    return numbers(reward, np.ones(len(reward)) / len(reward), eta)


@wrong("20-7-d", "the gradient step lacks the probabilities")
def _(reward, stuck, eta):
    return numbers(reward, start(reward, stuck), eta, ascent=lambda pi, r: r - pi @ r)


@wrong("20-7-d", "the mirror step has the gradient's probabilities")
def _(reward, stuck, eta):
    return numbers(reward, start(reward, stuck), eta, mirror=gradient)


@wrong("20-7-d", "eta divides")
def _(reward, stuck, eta):
    return numbers(reward, start(reward, stuck), 1 / eta)
