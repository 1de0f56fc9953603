"""Answers to further exercise 1."""

import math

import numpy as np
import torch
from scipy.optimize import linprog

from tests.zoo import right, wrong

# a


@right("further-1-a", "a loop in plain Python")
def _(p, low, high):
    smallest, largest = [], []
    for old in p:
        smallest.append(float(old) * (1 - low))
        largest.append(min(1.0, float(old) * (1 + high)))
    return smallest, largest


@right("further-1-a", "torch in float32")
def _(p, low, high):
    edges = torch.tensor([[1 - low], [1 + high]])
    return (edges * torch.tensor(p, dtype=torch.float32)).clamp(max=1)


@right("further-1-a", "where the slope of the objective vanishes, on a grid")
def _(p, low, high):
    def last(old, adv):
        new = torch.linspace(0, 1, 200_001, dtype=torch.float64, requires_grad=True)
        r = new / old
        torch.minimum(r * adv, r.clamp(1 - low, 1 + high) * adv).sum().backward()
        alive = new[new.grad != 0].detach()
        return (alive.min() if adv < 0 else alive.max()).item()

    return [[last(old, adv) for old in p] for adv in (-1.0, 1.0)]


@wrong("further-1-a", "the two ranges are interchanged")
def _(p, low, high):
    return [p - high * p, np.minimum(p + low * p, 1)]


@wrong("further-1-a", "the lower range on both sides")
def _(p, low, high):
    return [(1 - low) * p, ((1 + low) * p).clip(max=1)]


@wrong("further-1-a", "the probability may exceed 1")
def _(p, low, high):
    return np.outer([1 - low, 1 + high], p)


@wrong("further-1-a", "the range is added to the probability")
def _(p, low, high):
    return [np.maximum(p - low, 0), np.minimum(p + high, 1)]


@wrong("further-1-a", "the band is on the log of the ratio")
def _(p, low, high):
    return [np.exp(np.log(p) - low), np.exp(np.minimum(np.log(p) + high, 0))]


@wrong("further-1-a", "the band is on the logit")
def _(p, low, high):
    logit = torch.tensor(p).logit()
    return torch.stack([(logit - low).sigmoid(), (logit + high).sigmoid()])


@wrong("further-1-a", "the edge is divided by a sum")
def _(p, low, high):
    rows = []
    for factor in (1 - low, 1 + high):
        weights = np.where(np.eye(len(p), dtype=bool), factor * p, p)
        rows.append(np.diag(weights / weights.sum(axis=1, keepdims=True)))
    return rows


@wrong("further-1-a", "the two rows are interchanged")
def _(p, low, high):
    return [np.minimum((1 + high) * p, 1), (1 - low) * p]


# b


@right("further-1-b", "linear programs")
def _(p, low, high):
    def extreme(action, sign):
        bounds = [((1 - low) * x, min(1, (1 + high) * x)) for x in p]
        cost = -sign * np.eye(len(p))[action]
        return linprog(cost, A_eq=np.ones((1, len(p))), b_eq=[1], bounds=bounds).x[action]

    return [[extreme(action, sign) for action in range(len(p))] for sign in (-1, 1)]


@right("further-1-b", "what the others give and take, torch float32")
def _(p, low, high):
    p = torch.tensor(p).float()
    loss = torch.minimum(low * p, high * (1 - p))
    gain = torch.minimum(high * p, low * (1 - p))
    return torch.stack([p - loss, p + gain])


@right("further-1-b", "sums over the others, in loops")
def _(p, low, high):
    smallest, largest = [], []
    for a in range(len(p)):
        others = [p[b] for b in range(len(p)) if b != a]
        smallest.append(max(p[a] * (1 - low), 1 - sum(x * (1 + high) for x in others)))
        largest.append(min(p[a] * (1 + high), 1 - sum(x * (1 - low) for x in others)))
    return smallest, largest


@wrong("further-1-b", "each action alone")
def _(p, low, high):
    return [(1 - low) * p, np.minimum((1 + high) * p, 1)]


@wrong("further-1-b", "the others move by the action's own range")
def _(p, low, high):
    return [p - low * np.minimum(p, 1 - p), p + high * np.minimum(p, 1 - p)]


@wrong("further-1-b", "only the others are bounded")
def _(p, low, high):
    return [1 - (1 + high) * (1 - p), 1 - (1 - low) * (1 - p)]


@wrong("further-1-b", "one other action gives way")
def _(p, low, high):
    rows = []
    for a, x in enumerate(p):
        other = np.delete(p, a).max()
        rows.append([x - min(low * x, high * other), x + min(high * x, low * other)])
    return np.transpose(rows)


@wrong("further-1-b", "the edges are divided by their sum")
def _(p, low, high):
    rows = []
    for own, rest in ((1 - low, 1 + high), (1 + high, 1 - low)):
        edges = np.where(np.eye(len(p), dtype=bool), own * p, rest * p)
        rows.append(np.diag(edges) / edges.sum(axis=1))
    return rows


@wrong("further-1-b", "the looser of the two bounds")
def _(p, low, high):
    return [
        p - np.maximum(low * p, high * (1 - p)),
        p + np.maximum(high * p, low * (1 - p)),
    ]


@wrong("further-1-b", "the two ranges are interchanged")
def _(p, low, high):
    return [p - np.minimum(high * p, low * (1 - p)), p + np.minimum(low * p, high * (1 - p))]


# c


@right("further-1-c", "batch after batch, in a loop")
def _(p, target, low, high):
    counts = []
    for x, end in zip(p, target, strict=True):
        up, count = end > x, 0
        while x < end if up else x > end:
            x, count = x * (1 + high if up else 1 - low), count + 1
        counts.append(count)
    return counts


@right("further-1-c", "two formulas, chosen by torch")
def _(p, target, low, high):
    distance = (torch.tensor(target) / torch.tensor(p)).log().float()
    up, down = distance / math.log1p(high), distance / math.log1p(-low)
    return torch.where(distance > 0, up, down).ceil()


def quotient(p, target, low, high):
    edge = np.where(target > p, np.log(1 + high), np.log(1 - low))
    return (np.log(target) - np.log(p)) / edge


@wrong("further-1-c", "rounded down")
def _(p, target, low, high):
    return quotient(p, target, low, high).astype(int)


@wrong("further-1-c", "rounded to the nearest whole number")
def _(p, target, low, high):
    return [round(float(x)) for x in quotient(p, target, low, high)]


@wrong("further-1-c", "not rounded")
def _(p, target, low, high):
    return quotient(p, target, low, high)


@wrong("further-1-c", "the steps are added")
def _(p, target, low, high):
    counts = []
    for x, end in zip(p, target, strict=True):
        step = high * x if end > x else low * x
        counts.append(math.ceil(abs(end - x) / step))
    return counts


@wrong("further-1-c", "the range is the step of the log probability")
def _(p, target, low, high):
    distance = np.log(target / p)
    return np.ceil(np.where(distance > 0, distance / high, -distance / low))


@wrong("further-1-c", "the upper range for falling actions, too")
def _(p, target, low, high):
    further = np.maximum(target / p, p / target)
    return np.ceil(np.log(further) / np.log(1 + high))


@wrong("further-1-c", "the two ranges are interchanged")
def _(p, target, low, high):
    return np.ceil(quotient(p, target, high, low))


# d


def count(x, target, high):
    """Batches of an action that rises, by multiplying."""
    batches = 0
    while x < target:
        x, batches = (1 + high) * x, batches + 1
    return batches


def numbers(p, low, high, target):
    rare, common = min(p), max(p)
    return [
        100 * (1 + high) * rare,
        100 * (common + low * (1 - common)),
        100 * (common - high * (1 - common)),
        count(rare, target, high),
        count(rare, target, low),
    ]


@right("further-1-d", "in plain Python, batch after batch")
def _(p, low, high, target):
    return numbers([float(x) for x in p], low, high, target)


@right("further-1-d", "with torch, by formulas in float32")
def _(p, low, high, target):
    p = torch.tensor(p).float().sort().values
    rare, common = p[0], p[-1]
    batches = [((target / rare).log() / math.log1p(x)).ceil() for x in (high, low)]
    up, down = 1 - (1 - low) * (1 - common), 1 - (1 + high) * (1 - common)
    return torch.stack([100 * (1 + high) * rare, 100 * up, 100 * down, *batches])


@wrong("further-1-d", "the rarest and the most common action are interchanged")
def _(p, low, high, target):
    rare, common = p.max(), p.min()
    batches = math.ceil(math.log(target / rare) / math.log(1 - low))
    first = [100.0, 100 * (1 + high) * common, 100 * (1 - low) * common]
    return [*first, batches, batches]


@wrong("further-1-d", "each action alone")
def _(p, low, high, target):
    rare_up, _, _, *batches = numbers(p, low, high, target)
    return [rare_up, 100.0, 100 * (1 - low) * p.max(), *batches]


@wrong("further-1-d", "the two ranges are interchanged")
def _(p, low, high, target):
    return numbers(p, high, low, target)


@wrong("further-1-d", "the numbers of batches are rounded down")
def _(p, low, high, target):
    *first, asymmetric, symmetric = numbers(p, low, high, target)
    return [*first, asymmetric - 1, symmetric - 1]


@wrong("further-1-d", "the steps are added")
def _(p, low, high, target):
    *first, _, _ = numbers(p, low, high, target)
    rare = p.min()
    return [*first, *(math.ceil((target - rare) / (x * rare)) for x in (high, low))]


@wrong("further-1-d", "changes instead of probabilities")
def _(p, low, high, target):
    rest = 100 * (1 - p.max())
    *_, asymmetric, symmetric = numbers(p, low, high, target)
    return [100 * high * p.min(), low * rest, -high * rest, asymmetric, symmetric]


@wrong("further-1-d", "probabilities instead of percent")
def _(p, low, high, target):
    *first, asymmetric, symmetric = numbers(p, low, high, target)
    return [*(x / 100 for x in first), asymmetric, symmetric]


@wrong("further-1-d", "the last two numbers are interchanged")
def _(p, low, high, target):
    *first, asymmetric, symmetric = numbers(p, low, high, target)
    return [*first, symmetric, asymmetric]
