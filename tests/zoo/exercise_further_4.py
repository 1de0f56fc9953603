"""Answers to further exercise 4."""

import numpy as np
import torch

from tests.zoo import right, wrong


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]


# a


def dead(ratio, adv, clip_range):
    return ((adv > 0) & (ratio > 1 + clip_range)) | ((adv < 0) & (ratio < 1 - clip_range))


def value(ratio, adv, clip_range):
    return np.mean(np.minimum(ratio * adv, ratio.clip(1 - clip_range, 1 + clip_range) * adv))


@right("further-4-a", "a loop over the samples")
def _(ratio, adv, clip_range):
    total = slope = 0.0
    for r, A in zip(ratio, adv, strict=True):
        if A > 0 and r > 1 + clip_range:
            total, slope = total + (1 + clip_range) * A, slope + A
        elif A < 0 and r < 1 - clip_range:
            total, slope = total + (1 - clip_range) * A, slope - A
        else:
            total += r * A
    return total / len(adv), slope / len(adv)


@right("further-4-a", "torch's derivative in the width, float32")
def _(ratio, adv, clip_range):
    eps = torch.tensor(clip_range, requires_grad=True)
    r, A = torch.tensor(ratio).float(), torch.tensor(adv).float()
    clipped = torch.maximum(torch.minimum(r, 1 + eps), 1 - eps)
    objective = torch.minimum(r * A, clipped * A).mean()
    objective.backward()
    return torch.stack([objective.detach(), eps.grad])


@right("further-4-a", "a central difference in the width")
def _(ratio, adv, clip_range):
    up, down = value(ratio, adv, clip_range + 1e-6), value(ratio, adv, clip_range - 1e-6)
    return [value(ratio, adv, clip_range), (up - down) / 2e-6]


@wrong("further-4-a", "the maximum for the minimum")
def _(ratio, adv, clip_range):
    def of_max(eps):
        return np.mean(np.maximum(ratio * adv, ratio.clip(1 - eps, 1 + eps) * adv))

    return [of_max(clip_range), (of_max(clip_range + 1e-6) - of_max(clip_range - 1e-6)) / 2e-6]


@wrong("further-4-a", "every sample outside the band counts in the slope")
def _(ratio, adv, clip_range):
    outside = (ratio > 1 + clip_range) | (ratio < 1 - clip_range)
    return [value(ratio, adv, clip_range), np.abs(adv)[outside].sum() / len(adv)]


@wrong("further-4-a", "the advantages count with their sign")
def _(ratio, adv, clip_range):
    return [value(ratio, adv, clip_range), adv[dead(ratio, adv, clip_range)].sum() / len(adv)]


@wrong("further-4-a", "the slope is a share of samples")
def _(ratio, adv, clip_range):
    return [value(ratio, adv, clip_range), dead(ratio, adv, clip_range).mean()]


@wrong("further-4-a", "the derivative is in the ratio")
def _(ratio, adv, clip_range):
    r, A = torch.tensor(ratio, requires_grad=True), torch.tensor(adv)
    objective = torch.min(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A).mean()
    objective.backward()
    return [objective.detach(), r.grad.sum()]


@wrong("further-4-a", "the sum over samples instead of the mean")
def _(ratio, adv, clip_range):
    slope = np.abs(adv)[dead(ratio, adv, clip_range)].sum()
    return [len(adv) * value(ratio, adv, clip_range), slope]


@wrong("further-4-a", "the clip is left out of the value")
def _(ratio, adv, clip_range):
    return [ratio @ adv / len(adv), (np.abs(adv) * dead(ratio, adv, clip_range)).mean()]


@wrong("further-4-a", "the sign of the slope is reversed")
def _(ratio, adv, clip_range):
    return [value(ratio, adv, clip_range), -(np.abs(adv) * dead(ratio, adv, clip_range)).mean()]


# b


def ahead(ratio, adv):
    """How far the improved samples have gone."""
    return [r - 1 if A > 0 else 1 - r for r, A in zip(ratio, adv, strict=True) if (r - 1) * A > 0]


@right("further-4-b", "the largest of a list")
def _(ratio, adv):
    return max([0.0, *ahead(ratio, adv)])


@right("further-4-b", "bisection on the objective, float32")
def _(ratio, adv):
    low, high = 0.0, float(np.abs(ratio - 1).max())
    for _ in range(60):
        middle = (low + high) / 2
        binds = dead(ratio, adv, middle).any()
        low, high = (middle, high) if binds else (low, middle)
    return np.float32(high)


@right("further-4-b", "both signs apart, in torch")
def _(ratio, adv):
    r, A = torch.tensor(ratio), torch.tensor(adv)
    above, below = (r - 1) * (A > 0), (1 - r) * (A < 0)
    return torch.cat([above, below]).max().clamp(min=0)


@wrong("further-4-b", "the largest distance in either direction")
def _(ratio, adv):
    return max(ratio.max() - 1, 1 - ratio.min())


@wrong("further-4-b", "only samples with a positive advantage")
def _(ratio, adv):
    return max([0.0, *(ratio[adv > 0] - 1)])


@wrong("further-4-b", "the direction is reversed")
def _(ratio, adv):
    return max([0.0, *ahead(ratio, -adv)])


@wrong("further-4-b", "the width may be negative")
def _(ratio, adv):
    return np.where(adv > 0, ratio - 1, 1 - ratio).max()


@wrong("further-4-b", "the edge instead of the width")
def _(ratio, adv):
    return 1 + max([0.0, *ahead(ratio, adv)])


@wrong("further-4-b", "the distance is that of the log of the ratio")
def _(ratio, adv):
    return max([0.0, *np.where(adv > 0, np.log(ratio), -np.log(ratio))])


@wrong("further-4-b", "the width that leaves only one sample unclipped")
def _(ratio, adv):
    return min(ahead(ratio, adv), default=0.0)


@wrong("further-4-b", "the mean over the samples that have improved")
def _(ratio, adv):
    return np.mean(ahead(ratio, adv) or [0.0])


# c


def step(batch, theta, width, lr):
    """One step of gradient ascent."""
    X, W, actions, adv = batch
    old, new = softmax(X @ W), softmax(X @ theta)
    r = taken(new / old, actions)
    slope = np.where(dead(r, adv, width), 0, r * adv)
    score = np.eye(W.shape[1])[actions] - new
    return theta + lr * np.einsum("n,nd,na->da", slope, X, score) / len(adv)


def path(batch, width, lr, steps, start=None):
    thetas = [batch[1] if start is None else start]
    for _ in range(steps):
        thetas.append(step(batch, thetas[-1], width, lr))
    return thetas


def taken(p, actions):
    return p[np.arange(len(actions)), actions]


def mean_kl(old, new):
    return (old * np.log(old / new)).sum() / len(old)


def row(batch, means, theta):
    X, W, actions, adv = batch
    old, new = softmax(X @ W), softmax(X @ theta)
    promised = taken(new / old - 1, actions) @ adv / len(adv)
    return [promised, np.sum((new - old) * means) / len(adv), mean_kl(old, new)]


def curve(batch, means, widths, lr, steps):
    return np.array([row(batch, means, path(batch, w, lr, steps)[-1]) for w in widths])


def column(rows, index, values):
    """Replace one column."""
    changed = np.array(rows)
    changed[:, index] = values
    return changed


def ends(batch, widths, lr, steps):
    """For each width, the old and the new probabilities and the ratios at the end."""
    X, W, actions, _ = batch
    old = softmax(X @ W)
    news = [softmax(X @ path(batch, w, lr, steps)[-1]) for w in widths]
    return [(old, new, taken(new / old, actions)) for new in news]


@right("further-4-c", "with einsum")
def _(features, W, means, actions, adv, widths, lr, steps):
    return curve((features, W, actions, adv), means, widths, lr, steps)


@right("further-4-c", "sample by sample")
def _(features, W, means, actions, adv, widths, lr, steps):
    rows, old = [], softmax(features @ W)
    for width in widths:
        theta = W
        for _ in range(steps):
            gradient = np.zeros_like(W)
            for phi, a, A, p in zip(features, actions, adv, old, strict=True):
                q = softmax((phi @ theta)[None])[0]
                r = q[a] / p[a]
                if not dead(r, A, width):
                    gradient += r * A * np.outer(phi, np.eye(len(q))[a] - q)
            theta = theta + lr * gradient / len(adv)
        rows.append(row((features, W, actions, adv), means, theta))
    return rows


@right("further-4-c", "torch's SGD, float32 at the end")
def _(features, W, means, actions, adv, widths, lr, steps):
    X, A, n = torch.tensor(features), torch.tensor(adv), np.arange(len(adv))
    m, old = torch.tensor(means), (X @ torch.tensor(W)).softmax(1)
    rows = []
    for eps in widths:
        theta = torch.tensor(W, requires_grad=True)
        optimizer = torch.optim.SGD([theta], lr=lr)
        for _ in range(steps):
            r = ((X @ theta).softmax(1) / old)[n, actions]
            optimizer.zero_grad()
            (-torch.min(r * A, r.clamp(1 - eps, 1 + eps) * A).mean()).backward()
            optimizer.step()
        new = (X @ theta.detach()).softmax(1)
        gain = ((new / old)[n, actions] * A - A).mean()
        far = (old * (old.log() - new.log())).sum(1).mean()
        rows.append(torch.stack([gain, ((new - old) * m).sum(1).mean(), far]))
    return torch.stack(rows).float()


@wrong("further-4-c", "the arguments of the KL are swapped")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    kls = [mean_kl(new, old) for old, new, _ in ends(batch, widths, lr, steps)]
    return column(curve(batch, means, widths, lr, steps), 2, kls)


@wrong("further-4-c", "the surrogate instead of its gain")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    values = [np.mean(r * adv) for _, _, r in ends(batch, widths, lr, steps)]
    return column(curve(batch, means, widths, lr, steps), 0, values)


@wrong("further-4-c", "the gain of the clipped objective")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    finals = zip(ends(batch, widths, lr, steps), widths, strict=True)
    values = [value(r, adv, width) - adv.mean() for (_, _, r), width in finals]
    return column(curve(batch, means, widths, lr, steps), 0, values)


@wrong("further-4-c", "the true gain is estimated from the actions taken")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch, m = (features, W, actions, adv), taken(means, actions)
    values = [np.mean(r * m) - m.mean() for _, _, r in ends(batch, widths, lr, steps)]
    return column(curve(batch, means, widths, lr, steps), 1, values)


@wrong("further-4-c", "the true value instead of its gain")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    values = [np.sum(new * means) / len(adv) for _, new, _ in ends(batch, widths, lr, steps)]
    return column(curve(batch, means, widths, lr, steps), 1, values)


@wrong("further-4-c", "each width goes on where the last one stopped")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch, theta, rows = (features, W, actions, adv), W, []
    for width in widths:
        theta = path(batch, width, lr, steps, theta)[-1]
        rows.append(row(batch, means, theta))
    return rows


@wrong("further-4-c", "one step too few")
def _(features, W, means, actions, adv, widths, lr, steps):
    return curve((features, W, actions, adv), means, widths, lr, steps - 1)


@wrong("further-4-c", "one step too many")
def _(features, W, means, actions, adv, widths, lr, steps):
    return curve((features, W, actions, adv), means, widths, lr, steps + 1)


@wrong("further-4-c", "promised and true gain are interchanged")
def _(features, W, means, actions, adv, widths, lr, steps):
    promised, true, far = curve((features, W, actions, adv), means, widths, lr, steps).T
    return np.stack([true, promised, far], axis=1)


# d


def numbers(batch, rows, lr, steps):
    """The right numbers from the rows of both widths and of the run without the clip."""
    X, W, actions, adv = batch
    narrow, wide, free = rows
    needed = 0.0
    for theta in path(batch, np.inf, lr, steps):
        r = taken(softmax(X @ theta) / softmax(X @ W), actions)
        needed = max([needed, *ahead(r, adv)])
    return [wide[0] / narrow[0], wide[2] / narrow[2], *free, needed]


@right("further-4-d", "with einsum, the largest of a list")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    return numbers(batch, curve(batch, means, [*widths, np.inf], lr, steps), lr, steps)


@right("further-4-d", "the free width by trial: the run must be the same")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    rows = curve(batch, means, [*widths, np.inf], lr, steps)
    thetas = path(batch, np.inf, lr, steps)
    r = np.array([taken(softmax(features @ t) / softmax(features @ W), actions) for t in thetas])
    low, high = 0.0, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        same = all(np.isclose(value(x, adv, middle), np.mean(x * adv), 1e-12, 1e-13) for x in r)
        low, high = (low, middle) if same else (middle, high)
    return np.float32([*numbers(batch, rows, lr, steps)[:5], high])


def right_numbers(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    return numbers(batch, curve(batch, means, [*widths, np.inf], lr, steps), lr, steps)


@wrong("further-4-d", "the arguments of the KL are swapped")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch, all_widths = (features, W, actions, adv), [*widths, np.inf]
    kls = [mean_kl(new, old) for old, new, _ in ends(batch, all_widths, lr, steps)]
    rows = column(curve(batch, means, all_widths, lr, steps), 2, kls)
    return numbers(batch, rows, lr, steps)


@wrong("further-4-d", "the sum of the states' KL instead of the mean")
def _(**case):
    *first, far, width = right_numbers(**case)
    return [*first, len(case["adv"]) * far, width]


@wrong("further-4-d", "each width goes on where the last one stopped")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch, theta, rows = (features, W, actions, adv), W, []
    for width in [*widths, np.inf]:
        theta = path(batch, width, lr, steps, theta)[-1]
        rows.append(row(batch, means, theta))
    return numbers(batch, rows, lr, steps)


@wrong("further-4-d", "the first two numbers are upside down")
def _(**case):
    gain, far, *rest = right_numbers(**case)
    return [1 / gain, 1 / far, *rest]


@wrong("further-4-d", "differences instead of quotients")
def _(features, W, means, actions, adv, widths, lr, steps):
    batch = features, W, actions, adv
    rows = curve(batch, means, [*widths, np.inf], lr, steps)
    (gain, _, far), rest = rows[1] - rows[0], numbers(batch, rows, lr, steps)[2:]
    return [gain, far, *rest]


@wrong("further-4-d", "exponents of the width instead of quotients")
def _(**case):
    gain, far, *rest = right_numbers(**case)
    ratio_of_widths = case["widths"][1] / case["widths"][0]
    return [np.log(gain) / np.log(ratio_of_widths), np.log(far) / np.log(ratio_of_widths), *rest]


@wrong("further-4-d", "the edge instead of the width")
def _(**case):
    *first, width = right_numbers(**case)
    return [*first, 1 + width]
