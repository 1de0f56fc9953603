"""Answers to further exercise 2."""

import math

import numpy as np
import torch
from scipy.optimize import brentq

from tests.zoo import right, wrong


def moved(p, x):
    """The probability after its logit has moved."""
    return p * np.exp(x) / (1 - p + p * np.exp(x))


def edge(p, e, most):
    """The change at which the action's ratio is e, cut off at most."""
    if e * p >= 1:
        return most
    return min(max(math.log(e * (1 - p) / (1 - e * p)), -most), most)


def own(p, low, high, most):
    return [[edge(x, e, most) for x in p] for e in (1 - low, 1 + high)]


def by_ratio(ratio, low, high, most):
    """The interval of changes in which ratio(x) is in the band, by root finding."""

    def outside(x):
        return max(1 - low - ratio(x), ratio(x) - 1 - high)

    return [
        brentq(outside, 0, end, xtol=1e-12) if outside(end) > 0 else end for end in (-most, most)
    ]


# a


@right("further-2-a", "root finding on the ratio")
def _(p, low, high, most):
    ends = [by_ratio(lambda x, p=p: moved(p, x) / p, low, high, most) for p in p]
    return np.transpose(ends)


@right("further-2-a", "differences of logits in torch")
def _(p, low, high, most):
    p = torch.tensor(p)
    edges = torch.stack([(1 - low) * p, ((1 + high) * p).clamp(max=1.0)])
    return (edges.logit() - p.logit()).clamp(-most, most).float()


@right("further-2-a", "a loop with the math module")
def _(p, low, high, most):
    return own(p, low, high, most)


@wrong("further-2-a", "the logs of the edges")
def _(p, low, high, most):
    return [np.full(len(p), np.log(1 - low)), np.full(len(p), np.log(1 + high))]


@wrong("further-2-a", "the first order in the range")
def _(p, low, high, most):
    return [np.maximum(-low / (1 - p), -most), np.minimum(high / (1 - p), most)]


@wrong("further-2-a", "the probability of the other actions instead of the action's")
def _(p, low, high, most):
    return own(1 - p, low, high, most)


@wrong("further-2-a", "changes of the probability")
def _(p, low, high, most):
    return [(1 - low) * p - p, np.minimum((1 + high) * p, 1) - p]


@wrong("further-2-a", "no change where the edge cannot be reached")
def _(p, low, high, most):
    lowest, highest = own(p, low, high, most)
    return [lowest, np.where((1 + high) * p >= 1, 0, highest)]


@wrong("further-2-a", "the old logit is not subtracted")
def _(p, low, high, most):
    edges = torch.tensor(np.array([(1 - low) * p, np.minimum((1 + high) * p, 1)]))
    return edges.logit().clamp(-most, most)


@wrong("further-2-a", "the largest change only where there is no bound")
def _(p, low, high, most):
    lowest, highest = own(p, low, high, 1e3)
    return [lowest, np.where(np.array(highest) == 1e3, most, highest)]


@wrong("further-2-a", "the two ranges are interchanged")
def _(p, low, high, most):
    return own(p, high, low, most)


# b


def others(p, low, high, most):
    """The ends at which the others' common ratio is at its edges."""
    ends = []
    for x in p:
        factors = [(1 / e - (1 - x)) / x for e in (1 + high, 1 - low)]
        ends.append([max(math.log(f), -most) if f > 0 else -most for f in factors])
    return np.minimum(np.transpose(ends), most)


@right("further-2-b", "both intervals, in common")
def _(p, low, high, most):
    ends = np.array([own(p, low, high, most), others(p, low, high, most)])
    return [ends[:, 0].max(axis=0), ends[:, 1].min(axis=0)]


@right("further-2-b", "root finding on all ratios of a softmax")
def _(p, low, high, most):
    ends = []
    for x in p:
        old = np.array([x, 0.3 * (1 - x), 0.7 * (1 - x)])

        def ratios(change, old=old):
            new = old * np.exp([change, 0, 0])
            return new / new.sum() / old

        end = [by_ratio(lambda c, a=a, r=ratios: r(c)[a], low, high, most) for a in range(3)]
        ends.append([max(e[0] for e in end), min(e[1] for e in end)])
    return np.float32(ends).T


@right("further-2-b", "two actions: the other one's interval turned round")
def _(p, low, high, most):
    ends, turned = np.array(own(p, low, high, most)), np.array(own(1 - p, low, high, most))
    return [np.maximum(ends[0], -turned[1]), np.minimum(ends[1], -turned[0])]


@wrong("further-2-b", "only the action's own ratio")
def _(p, low, high, most):
    return own(p, low, high, most)


@wrong("further-2-b", "only the ratios of the others")
def _(p, low, high, most):
    return others(p, low, high, most)


@wrong("further-2-b", "the looser of the two bounds")
def _(p, low, high, most):
    ends = np.array([own(p, low, high, most), others(p, low, high, most)])
    return [ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)]


@wrong("further-2-b", "the ratios of the others are upside down")
def _(p, low, high, most):
    ends = np.array(own(p, low, high, most))
    highest = np.log((1 + high - (1 - p)) / p)
    lowest = [math.log(1 - low / x) if x > low else -most for x in p]
    return [np.maximum(ends[0], lowest), np.minimum(ends[1], highest)]


@wrong("further-2-b", "the others' bounds are not turned round")
def _(p, low, high, most):
    ends, rest = np.array(own(p, low, high, most)), np.array(own(1 - p, low, high, most))
    return [np.maximum(ends[0], rest[0]), np.minimum(ends[1], rest[1])]


@wrong("further-2-b", "the tighter side on both sides")
def _(p, low, high, most):
    ends = np.array([own(p, low, high, most), others(p, low, high, most)])
    size = np.abs(ends).min(axis=(0, 1))
    return [-size, size]


@wrong("further-2-b", "the two ranges of the others are interchanged")
def _(p, low, high, most):
    ends = np.array([own(p, low, high, most), others(p, high, low, most)])
    return [ends[:, 0].max(axis=0), ends[:, 1].min(axis=0)]


# c


def change(p, e):
    return np.log(e * (1 - p) / (1 - e * p))


@right("further-2-c", "a narrow band, numerically")
def _(p):
    eps = 1e-4 * (1 - p)
    # Half of the symmetric and of the antisymmetric part: the next orders are of eps^2.
    up, down = change(p, 1 + eps), change(p, 1 - eps)
    return [(up - down) / (2 * eps), (up + down) / eps**2]


@right("further-2-c", "torch's derivatives of the logit")
def _(p):
    r = torch.ones(len(p), dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad((r * torch.tensor(p)).logit().sum(), r, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), r)
    return torch.stack([first.detach(), second]).float()


def both(p):
    return np.array([1 / (1 - p), -1 + (p / (1 - p)) ** 2])


@wrong("further-2-c", "the probability of the other actions instead of the action's")
def _(p):
    return [1 / p, (1 - 2 * p) / p**2]


@wrong("further-2-c", "the derivatives are in the probability")
def _(p):
    x = torch.tensor(p, requires_grad=True)
    (first,) = torch.autograd.grad(x.logit().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return torch.stack([first, second]).detach()


@wrong("further-2-c", "a factor one half too many in the second limit")
def _(p):
    return [both(p)[0], both(p)[1] / 2]


@wrong("further-2-c", "a factor two too many in the second limit")
def _(p):
    return [both(p)[0], 2 * both(p)[1]]


@wrong("further-2-c", "the sign of the second limit is reversed")
def _(p):
    return [1 / (1 - p), (1 - 2 * p) / (1 - p) ** 2]


@wrong("further-2-c", "the normalization is left out")
def _(p):
    return [np.ones(len(p)), -np.ones(len(p))]


@wrong("further-2-c", "the width of the interval")
def _(p):
    eps = 1e-4 * (1 - p)
    return [(change(p, 1 + eps) - change(p, 1 - eps)) / eps, both(p)[1]]


@wrong("further-2-c", "the curvature of the logarithm of the ratio is left out")
def _(p):
    return [1 / (1 - p), (p / (1 - p)) ** 2]


# d


def steps(p, end, lr, slope):
    x, n = 0.0, 0
    while x <= end:
        x, n = x + lr * slope(p, x), n + 1
    return n


def ratio_slope(p, x):
    return moved(p, x) / p * (1 - moved(p, x))


def numbers(p, low, high, lr, slope=ratio_slope, shared=None, quotient=lambda r, c: c / r):
    rare, common = float(p.min()), float(p.max())
    up, down = edge(rare, 1 + high, 9), edge(common, 1 - low, 9)
    shared = -edge(1 - common, 1 - low, 9) if shared is None else shared
    counts = steps(rare, up, lr, slope), steps(common, shared, lr, slope)
    return [up, down, shared, quotient(*counts)]


@right("further-2-d", "the other actions as one, turned round")
def _(p, low, high, lr):
    return numbers(p, low, high, lr)


@right("further-2-d", "torch's softmax and gradients, until a ratio is outside")
def _(p, low, high, lr):
    old = torch.tensor(p)

    def run(action, watched):
        shift, n = torch.zeros(len(p), dtype=torch.float64), 0
        while True:
            x = shift.clone().requires_grad_()
            ratios = (old.log() + x).softmax(0) / old
            if not all(1 - low <= ratios[b] <= 1 + high for b in watched):
                return n
            (slope,) = torch.autograd.grad(ratios[action], x)
            shift[action] += lr * slope[action]
            n += 1

    rare, common = int(old.argmin()), int(old.argmax())
    counts = run(rare, [rare]), run(common, range(len(p)))
    up, down, shared, _ = numbers(p, low, high, lr)
    return torch.tensor([up, down, shared, counts[1] / counts[0]])


@wrong("further-2-d", "the rarest and the most common action are interchanged")
def _(p, low, high, lr):
    rare, (_, _, shared, quotient) = p.min(), numbers(p, low, high, lr)
    return [shared, edge(rare, 1 - low, 9), edge(rare, 1 + high, 9), 1 / quotient]


@wrong("further-2-d", "changes of the probability")
def _(p, low, high, lr):
    rare, common = p.min(), p.max()
    up, down, shared, quotient = numbers(p, low, high, lr)
    return [
        moved(rare, up) - rare,
        moved(common, down) - common,
        moved(common, shared) - common,
        quotient,
    ]


@wrong("further-2-d", "the logs of the edges")
def _(p, low, high, lr):
    quotient = numbers(p, low, high, lr)[3]
    return [math.log(1 + high), math.log(1 - low), -math.log(1 - low), quotient]


@wrong("further-2-d", "the ratios of the others are upside down")
def _(p, low, high, lr):
    return numbers(p, low, high, lr, shared=math.log(1 + high / p.max()))


@wrong("further-2-d", "the downward change without its sign")
def _(p, low, high, lr):
    return np.abs(numbers(p, low, high, lr))


@wrong("further-2-d", "the gradient is that of the log probability")
def _(p, low, high, lr):
    return numbers(p, low, high, lr, slope=lambda p, x: 1 - moved(p, x))


@wrong("further-2-d", "the steps are counted one too far")
def _(p, low, high, lr):
    return numbers(p, low, high, lr, quotient=lambda r, c: (c + 1) / (r + 1))


@wrong("further-2-d", "the difference of the numbers of steps")
def _(p, low, high, lr):
    return numbers(p, low, high, lr, quotient=lambda r, c: c - r)


@wrong("further-2-d", "the quotient of the numbers of steps is upside down")
def _(p, low, high, lr):
    return numbers(p, low, high, lr, quotient=lambda r, c: r / c)
