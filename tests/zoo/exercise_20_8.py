"""Answers to exercise 20.8."""

import numpy as np
import torch

from companion.value_loss import clipped_value_derivative, clipped_value_loss
from tests.zoo import right, wrong


def edge(v, v_old, clip_range):
    """The new value, clipped to the band."""
    return np.minimum(np.maximum(v, v_old - clip_range), v_old + clip_range)


# a


@right("20-8-a", "a loop with two squares")
def _(v, v_old, target, clip_range):
    return [
        max((x - G) ** 2, (edge(x, old, clip_range) - G) ** 2)
        for x, old, G in zip(v, v_old, target, strict=True)
    ]


@right("20-8-a", "torch in float32")
def _(v, v_old, target, clip_range):
    v, v_old, G = (torch.tensor(x, dtype=torch.float32) for x in (v, v_old, target))
    clipped = v_old + (v - v_old).clamp(-clip_range, clip_range)
    return torch.stack([(v - G) ** 2, (clipped - G) ** 2]).amax(0)


@right("20-8-a", "the companion's function")
def _(v, v_old, target, clip_range):
    return clipped_value_loss(v, v_old, target, clip_range)


@wrong("20-8-a", "the minimum for the maximum")
def _(v, v_old, target, clip_range):
    return np.minimum((v - target) ** 2, (edge(v, v_old, clip_range) - target) ** 2)


@wrong("20-8-a", "the clipped value alone")
def _(v, v_old, target, clip_range):
    return (np.clip(v, v_old - clip_range, v_old + clip_range) - target) ** 2


@wrong("20-8-a", "nothing is clipped")
def _(v, v_old, target, clip_range):
    clipped = target + (v - target).clip(-clip_range, clip_range)
    return np.maximum((v - target) ** 2, (clipped - target) ** 2)


@wrong("20-8-a", "the band is relative to the old value")
def _(v, v_old, target, clip_range):
    clipped = v_old * (v / v_old).clip(1 - clip_range, 1 + clip_range)
    return np.maximum((v - target) ** 2, (clipped - target) ** 2)


@wrong("20-8-a", "the old value is not added back")
def _(v, v_old, target, clip_range):
    clipped = (v - v_old).clip(-clip_range, clip_range)
    return np.maximum((v - target) ** 2, (clipped - target) ** 2)


@wrong("20-8-a", "a factor one half")
def _(v, v_old, target, clip_range):
    return 0.5 * np.maximum((v - target) ** 2, (edge(v, v_old, clip_range) - target) ** 2)


@wrong("20-8-a", "absolute errors instead of squares")
def _(v, v_old, target, clip_range):
    return np.maximum(np.abs(v - target), np.abs(edge(v, v_old, clip_range) - target))


# b


@right("20-8-b", "torch's autograd")
def _(v, v_old, target, clip_range):
    return autograd(v, v_old, target, clip_range)


@right("20-8-b", "the larger of two losses, sample by sample")
def _(v, v_old, target, clip_range):
    slopes = []
    for x, old, G in zip(v, v_old, target, strict=True):
        clipped = edge(x, old, clip_range)
        slopes.append(0 if (clipped - G) ** 2 > (x - G) ** 2 else 2 * (x - G))
    return np.float32(slopes)


@right("20-8-b", "the companion's function")
def _(v, v_old, target, clip_range):
    return clipped_value_derivative(v, v_old, target, clip_range)


def autograd(v, v_old, target, clip_range, worse=torch.max):
    x, old, G = torch.tensor(v, requires_grad=True), torch.tensor(v_old), torch.tensor(target)
    clipped = old + (x - old).clamp(-clip_range, clip_range)
    worse((x - G) ** 2, (clipped - G) ** 2).sum().backward()
    return x.grad


@wrong("20-8-b", "the minimum for the maximum")
def _(v, v_old, target, clip_range):
    return autograd(v, v_old, target, clip_range, worse=torch.min)


@wrong("20-8-b", "zero everywhere outside the band")
def _(v, v_old, target, clip_range):
    return np.where(np.abs(v - v_old) > clip_range, 0.0, 2 * (v - target))


@wrong("20-8-b", "zero wherever the change was towards the target")
def _(v, v_old, target, clip_range):
    up = (v > v_old + clip_range) & (target > v_old)
    down = (v < v_old - clip_range) & (target < v_old)
    return np.where(up | down, 0.0, 2 * (v - target))


@wrong("20-8-b", "nowhere zero")
def _(v, v_old, target, clip_range):
    return 2 * v - 2 * target


@wrong("20-8-b", "the clip is differentiated as if it changed nothing")
def _(v, v_old, target, clip_range):
    off, clipped_off = v - target, edge(v, v_old, clip_range) - target
    return 2 * np.where(clipped_off**2 > off**2, clipped_off, off)


@wrong("20-8-b", "zero inside the band instead of outside")
def _(v, v_old, target, clip_range):
    off, clipped_off = v - target, edge(v, v_old, clip_range) - target
    return np.where(clipped_off**2 > off**2, 2 * off, 0.0)


@wrong("20-8-b", "the factor 2 is forgotten")
def _(v, v_old, target, clip_range):
    return autograd(v, v_old, target, clip_range) / 2


@wrong("20-8-b", "the sign is reversed")
def _(v, v_old, target, clip_range):
    return -autograd(v, v_old, target, clip_range)


# c


def slope(v, v_old, target, clip_range):
    off, clipped_off = v - target, edge(v, v_old, clip_range) - target
    return np.where(np.abs(clipped_off) > np.abs(off), 0.0, 2 * off)


def descend(v_old, target, clip_range, lr, steps):
    v = v_old.copy()
    for _ in range(steps):
        v -= lr * slope(v, v_old, target, clip_range)
    return v


@right("20-8-c", "each state by itself, until its value has left the band")
def _(v_old, target, clip_range, lr, steps):
    values = []
    for old, G in zip(v_old, target, strict=True):
        v = old
        for _ in range(steps):
            if abs(v - old) <= clip_range:
                v += 2 * lr * (G - v)
        values.append(v)
    return values


@right("20-8-c", "torch's SGD")
def _(v_old, target, clip_range, lr, steps):
    old, G = torch.tensor(v_old), torch.tensor(target)
    v = torch.nn.Parameter(old.clone())
    optimizer = torch.optim.SGD([v], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        clipped = old + (v - old).clamp(-clip_range, clip_range)
        torch.max((v - G) ** 2, (clipped - G) ** 2).sum().backward()
        optimizer.step()
    return v.detach()


@wrong("20-8-c", "the clip is left out, or its band moves along")
def _(v_old, target, clip_range, lr, steps):
    v = v_old
    for _ in range(steps):
        v = v - lr * slope(v, v, target, clip_range)
    return v


@wrong("20-8-c", "the values are held to the band")
def _(v_old, target, clip_range, lr, steps):
    return edge(descend(v_old, target, clip_range, lr, steps), v_old, clip_range)


@wrong("20-8-c", "the factor 2 is forgotten")
def _(v_old, target, clip_range, lr, steps):
    return descend(v_old, target, clip_range, lr / 2, steps)


@wrong("20-8-c", "one step too many")
def _(v_old, target, clip_range, lr, steps):
    return descend(v_old, target, clip_range, lr, len(range(steps + 1)))


@wrong("20-8-c", "one step too few")
def _(v_old, target, clip_range, lr, steps):
    v = v_old
    for _ in range(1, steps):
        v = v - lr * slope(v, v_old, target, clip_range)
    return v


@wrong("20-8-c", "the mean over the states is differentiated")
def _(v_old, target, clip_range, lr, steps):
    return descend(v_old, target, clip_range, lr / v_old.size, steps)


# d


def rms(error):
    return (error @ error / len(error)) ** 0.5


def iterations(v_old, target, clip_range, lr, steps):
    v, count = v_old, 0
    while count == 0 or np.abs(v - target).max() > clip_range:
        v, count = descend(v, target, clip_range, lr, steps), count + 1
    return count


def numbers(v_old, target, clip_range, lr, steps, size=rms):
    clipped = descend(v_old, target, clip_range, lr, steps)
    plain = target + (1 - 2 * lr) ** steps * (v_old - target)
    sizes = [size(v - target) for v in (v_old, clipped, plain)]
    return [*sizes, iterations(v_old, target, clip_range, lr, steps)]


@right("20-8-d", "the plain fit in closed form")
def _(**c):
    return numbers(**c)


@right("20-8-d", "NumPy's variance and mean, a tensor")
def _(**c):
    return torch.tensor(numbers(size=lambda e: np.sqrt(e.var() + e.mean() ** 2), **c)).float()


@wrong("20-8-d", "the mean square without the root")
def _(**c):
    return numbers(size=lambda error: (error**2).mean(), **c)


@wrong("20-8-d", "the sum of squares instead of their mean")
def _(**c):
    return numbers(size=lambda error: np.sqrt((error**2).sum()), **c)


@wrong("20-8-d", "the fits with and without the clip are interchanged")
def _(**c):
    before, clipped, plain, count = numbers(**c)
    return [before, plain, clipped, count]


@wrong("20-8-d", "the iterations are counted from 0")
def _(**c):
    *sizes, count = numbers(**c)
    return [*sizes, list(range(100)).index(count - 1)]


@wrong("20-8-d", "the factor 2 is forgotten")
def _(lr, **c):
    return numbers(lr=lr / 2, **c)


@wrong("20-8-d", "gradient steps are counted instead of iterations")
def _(**c):
    *sizes, count = numbers(**c)
    return [*sizes, count * c["steps"]]
