"""Answers to exercise 20.5."""

import numpy as np
import torch

from tests.zoo import right, wrong


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]


# a


@right("20-5-a", "a loop over the regions")
def _(ratio, adv, clip_range):
    slopes = []
    for r, A in zip(ratio, adv, strict=True):
        too_high, too_low = r > 1 + clip_range, r < 1 - clip_range
        slopes.append(0.0 if (A > 0 and too_high) or (A < 0 and too_low) else A)
    return slopes


@right("20-5-a", "torch's autograd in float32")
def _(ratio, adv, clip_range):
    r = torch.tensor(ratio, dtype=torch.float32, requires_grad=True)
    A = torch.tensor(adv, dtype=torch.float32)
    torch.min(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A).sum().backward()
    return r.grad


@wrong("20-5-a", "the maximum for the minimum")
def _(ratio, adv, clip_range):
    r, A = torch.tensor(ratio, requires_grad=True), torch.tensor(adv)
    torch.max(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A).sum().backward()
    return r.grad


@wrong("20-5-a", "no gradient on either side of the band")
def _(ratio, adv, clip_range):
    return np.where((ratio > 1 + clip_range) | (ratio < 1 - clip_range), 0.0, adv)


@wrong("20-5-a", "a one-sided clip: the sign of the advantage is ignored")
def _(ratio, adv, clip_range):
    return np.where(ratio > 1 + clip_range, 0, adv)


@wrong("20-5-a", "the gradient is zero inside instead of outside")
def _(ratio, adv, clip_range):
    return np.where(np.where(adv > 0, ratio > 1 + clip_range, ratio < 1 - clip_range), adv, 0.0)


@wrong("20-5-a", "the band is around 0 instead of 1")
def _(ratio, adv, clip_range):
    return np.where(adv > 0, ratio < clip_range, ratio > -clip_range) * adv


@wrong("20-5-a", "the derivative is in the log of the ratio")
def _(ratio, adv, clip_range):
    logr, A = torch.tensor(np.log(ratio), requires_grad=True), torch.tensor(adv)
    r = logr.exp()
    torch.min(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A).sum().backward()
    return logr.grad


@wrong("20-5-a", "the advantage is missing in the derivative")
def _(ratio, adv, clip_range):
    lost = ((adv > 0) & (ratio > 1 + clip_range)) | ((adv < 0) & (ratio < 1 - clip_range))
    return 1.0 - lost


@wrong("20-5-a", "the product is clipped instead of the ratio")
def _(ratio, adv, clip_range):
    r, A = torch.tensor(ratio, requires_grad=True), torch.tensor(adv)
    torch.min(r * A, (r * A).clamp(1 - clip_range, 1 + clip_range)).sum().backward()
    return r.grad


# b


@right("20-5-b", "the clip by maximum and minimum")
def _(ratio, adv, clip_range):
    clipped = np.minimum(np.maximum(ratio, 1 - clip_range), 1 + clip_range)
    return np.stack([ratio * adv, clipped * adv]).min(axis=0)


@right("20-5-b", "one edge for each sign, torch float32")
def _(ratio, adv, clip_range):
    r, A = torch.tensor(ratio).float(), torch.tensor(adv).float()
    return torch.where(A > 0, r.clamp(max=1 + clip_range), r.clamp(min=1 - clip_range)) * A


@wrong("20-5-b", "the maximum for the minimum")
def _(ratio, adv, clip_range):
    return np.maximum(ratio * adv, np.clip(ratio, 1 - clip_range, 1 + clip_range) * adv)


@wrong("20-5-b", "the clip without the minimum")
def _(ratio, adv, clip_range):
    return ratio.clip(1 - clip_range, 1 + clip_range) * adv


@wrong("20-5-b", "the minimum is taken before the advantage is multiplied")
def _(ratio, adv, clip_range):
    return np.minimum(ratio, ratio.clip(1 - clip_range, 1 + clip_range)) * adv


@wrong("20-5-b", "the band is around 0 instead of 1")
def _(ratio, adv, clip_range):
    return np.minimum(ratio * adv, np.clip(ratio, -clip_range, clip_range) * adv)


@wrong("20-5-b", "the product is clipped instead of the ratio")
def _(ratio, adv, clip_range):
    product = ratio * adv
    return np.minimum(product, product.clip(1 - clip_range, 1 + clip_range))


@wrong("20-5-b", "the advantage is clipped instead of the ratio")
def _(ratio, adv, clip_range):
    return np.minimum(ratio * adv, ratio * adv.clip(1 - clip_range, 1 + clip_range))


@wrong("20-5-b", "the objective is measured from the old policy's")
def _(ratio, adv, clip_range):
    clipped = ratio.clip(1 - clip_range, 1 + clip_range)
    return np.minimum(ratio * adv, clipped * adv) - adv


# c


def objective(logits, old, states, actions, adv, clip_range, minimum=torch.min):
    """The mean clipped objective as a tensor."""
    taken = logits.log_softmax(1)[states, actions]
    r, A = taken.exp() / torch.tensor(old)[states, actions], torch.tensor(adv)
    return minimum(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A).mean()


def by_autograd(logits, *arguments, **options):
    z = torch.tensor(logits, requires_grad=True)
    objective(z, *arguments, **options).backward()
    return z.grad


@right("20-5-c", "torch's autograd")
def _(logits, old, states, actions, adv, clip_range):
    return by_autograd(logits, old, states, actions, adv, clip_range).float()


@right("20-5-c", "central differences of the objective")
def _(logits, old, states, actions, adv, clip_range):
    def value(z):
        return objective(torch.tensor(z), old, states, actions, adv, clip_range).item()

    gradient = np.zeros_like(logits)
    for i in np.ndindex(*logits.shape):
        step = np.zeros_like(logits)
        step[i] = 1e-6
        gradient[i] = (value(logits + step) - value(logits - step)) / 2e-6
    return gradient


def gradient_of(logits, states, actions, slopes, probabilities=None):
    """Sum slope times score over the samples, one by one."""
    p = softmax(logits) if probabilities is None else probabilities
    gradient = np.zeros_like(logits)
    for s, a, slope in zip(states, actions, slopes, strict=True):
        gradient[s] += slope * (np.eye(len(p[s]))[a] - p[s]) / len(states)
    return gradient


def ratio_and_slopes(logits, old, states, actions, adv, clip_range):
    """The ratios, and the derivative of each sample's objective in its ratio."""
    r = softmax(logits)[states, actions] / old[states, actions]
    lost = ((adv > 0) & (r > 1 + clip_range)) | ((adv < 0) & (r < 1 - clip_range))
    return r, np.where(lost, 0.0, adv)


@wrong("20-5-c", "the clip is left out")
def _(logits, old, states, actions, adv, clip_range):
    r = softmax(logits)[states, actions] / old[states, actions]
    return gradient_of(logits, states, actions, r * adv)


@wrong("20-5-c", "no gradient on either side of the band")
def _(logits, old, states, actions, adv, clip_range):
    r = softmax(logits)[states, actions] / old[states, actions]
    outside = (r > 1 + clip_range) | (r < 1 - clip_range)
    return gradient_of(logits, states, actions, np.where(outside, 0, r * adv))


@wrong("20-5-c", "the maximum for the minimum")
def _(logits, old, states, actions, adv, clip_range):
    return by_autograd(logits, old, states, actions, adv, clip_range, minimum=torch.max)


@wrong("20-5-c", "the ratio is missing")
def _(logits, old, states, actions, adv, clip_range):
    _, slopes = ratio_and_slopes(logits, old, states, actions, adv, clip_range)
    return gradient_of(logits, states, actions, slopes)


@wrong("20-5-c", "the policy is not subtracted in the score")
def _(logits, old, states, actions, adv, clip_range):
    r, slopes = ratio_and_slopes(logits, old, states, actions, adv, clip_range)
    return gradient_of(logits, states, actions, r * slopes, np.zeros_like(old))


@wrong("20-5-c", "the old policy's probabilities in the score")
def _(logits, old, states, actions, adv, clip_range):
    r, slopes = ratio_and_slopes(logits, old, states, actions, adv, clip_range)
    return gradient_of(logits, states, actions, r * slopes, old)


@wrong("20-5-c", "the sum over samples instead of the mean")
def _(logits, old, states, actions, adv, clip_range):
    r, slopes = ratio_and_slopes(logits, old, states, actions, adv, clip_range)
    return gradient_of(logits, states, actions, r * slopes) * len(states)


@wrong("20-5-c", "the sign is that of a loss")
def _(logits, old, states, actions, adv, clip_range):
    return -by_autograd(logits, old, states, actions, adv, clip_range)


# d


def ratios(features, W, new_W, actions):
    n = np.arange(len(actions))
    return softmax(features @ new_W)[n, actions] / softmax(features @ W)[n, actions]


@right("20-5-d", "counted in a loop")
def _(features, W, new_W, actions, adv, clip_range):
    above = below = back = gap = 0.0
    for r, A in zip(ratios(features, W, new_W, actions), adv, strict=True):
        above += A > 0 and r > 1 + clip_range
        below += A < 0 and r < 1 - clip_range
        back += (A > 0 and r < 1 - clip_range) or (A < 0 and r > 1 + clip_range)
        gap += r * A - min(r * A, np.clip(r, 1 - clip_range, 1 + clip_range) * A)
    return [float(x) / len(adv) for x in (above, below, back, gap)]


@right("20-5-d", "torch's gradients in float32")
def _(features, W, new_W, actions, adv, clip_range):
    r = torch.tensor(ratios(features, W, new_W, actions)).float().requires_grad_()
    A = torch.tensor(adv).float()
    clipped = torch.min(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A)
    clipped.sum().backward()
    lost, outside = (r.grad == 0) & (A != 0), (r - 1).abs() > clip_range
    shares = [lost & (A > 0), lost & (A < 0), outside & ~lost & (A != 0)]
    return torch.stack([x.float().mean() for x in shares] + [(r * A - clipped).mean()]).detach()


def numbers(r, adv, clip_range):
    """The right numbers from the ratios."""
    high, low = r > 1 + clip_range, r < 1 - clip_range
    plus, minus = adv > 0, adv < 0
    pessimism = r * adv - np.minimum(r * adv, r.clip(1 - clip_range, 1 + clip_range) * adv)
    return [
        np.mean(plus & high),
        np.mean(minus & low),
        np.mean((plus & low) | (minus & high)),
        pessimism.mean(),
    ]


@wrong("20-5-d", "every sample outside the band counts as lost")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    outside = (r > 1 + clip_range) | (r < 1 - clip_range)
    pessimism = numbers(r, adv, clip_range)[3]
    return [np.mean(outside & (adv > 0)), np.mean(outside & (adv < 0)), 0, pessimism]


@wrong("20-5-d", "the maximum for the minimum")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    high, low = r > 1 + clip_range, r < 1 - clip_range
    optimism = np.maximum(r * adv, r.clip(1 - clip_range, 1 + clip_range) * adv) - r * adv
    return [
        np.mean((adv > 0) & low),
        np.mean((adv < 0) & high),
        np.mean(((adv > 0) & high) | ((adv < 0) & low)),
        -optimism.mean(),
    ]


@wrong("20-5-d", "the ratio is upside down")
def _(features, W, new_W, actions, adv, clip_range):
    return numbers(1 / ratios(features, W, new_W, actions), adv, clip_range)


@wrong("20-5-d", "shares of the samples outside the band instead of the batch")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    outside = ((r > 1 + clip_range) | (r < 1 - clip_range)) & (adv != 0)
    *_, pessimism = numbers(r, adv, clip_range)
    *shares, _ = numbers(r[outside], adv[outside], clip_range)
    return [*shares, pessimism]


@wrong("20-5-d", "numbers of samples instead of shares")
def _(features, W, new_W, actions, adv, clip_range):
    *shares, gap = numbers(ratios(features, W, new_W, actions), adv, clip_range)
    return [*(round(share * len(adv)) for share in shares), gap]


@wrong("20-5-d", "the pessimism has the opposite sign")
def _(features, W, new_W, actions, adv, clip_range):
    *shares, gap = numbers(ratios(features, W, new_W, actions), adv, clip_range)
    return [*shares, -gap]
