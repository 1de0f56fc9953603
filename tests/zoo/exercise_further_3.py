"""Answers to further exercise 3."""

from itertools import chain

import numpy as np
import torch

from tests.zoo import right, wrong


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]


def ratios(features, W, new_W, actions):
    old, new = softmax(features @ W), softmax(features @ new_W)
    return np.array([new[n, a] / old[n, a] for n, a in enumerate(actions)])


# a


def objective(features, W, new_W, actions, adv, clip_range, minimum=torch.min):
    """The mean clipped objective as a tensor; new_W is one already."""
    X, n = torch.tensor(features), np.arange(len(actions))
    logp = (X @ new_W).log_softmax(1) - (X @ torch.tensor(W)).log_softmax(1)
    r, A = logp[n, actions].exp(), torch.tensor(adv)
    return minimum(r * A, r.clamp(1 - clip_range, 1 + clip_range) * A).mean()


def by_autograd(features, W, new_W, *rest, **options):
    theta = torch.tensor(new_W, requires_grad=True)
    objective(features, W, theta, *rest, **options).backward()
    return theta.grad.numpy()


@right("further-3-a", "torch's autograd")
def _(features, W, new_W, actions, adv, clip_range):
    return torch.tensor(by_autograd(features, W, new_W, actions, adv, clip_range)).float()


@right("further-3-a", "central differences of the objective")
def _(features, W, new_W, actions, adv, clip_range):
    gradient = np.zeros_like(W)
    for i in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[i] = 1e-6
        ends = [
            objective(features, W, torch.tensor(new_W + s * step), actions, adv, clip_range).item()
            for s in (1, -1)
        ]
        gradient[i] = (ends[0] - ends[1]) / 2e-6
    return gradient


def summed(features, new_W, actions, slopes, probabilities=None):
    """Sum slope times score over the samples, one by one."""
    p = softmax(features @ new_W) if probabilities is None else probabilities
    gradient = np.zeros_like(new_W)
    for phi, a, slope, row in zip(features, actions, slopes, p, strict=True):
        gradient += slope * np.outer(phi, np.eye(len(row))[a] - row)
    return gradient / len(actions)


def slopes(r, adv, clip_range):
    lost = ((adv > 0) & (r > 1 + clip_range)) | ((adv < 0) & (r < 1 - clip_range))
    return np.where(lost, 0.0, adv)


@right("further-3-a", "a loop over the samples")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    return summed(features, new_W, actions, r * slopes(r, adv, clip_range))


@wrong("further-3-a", "the clip is left out")
def _(features, W, new_W, actions, adv, clip_range):
    return summed(features, new_W, actions, ratios(features, W, new_W, actions) * adv)


@wrong("further-3-a", "no gradient on either side of the band")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    outside = (r > 1 + clip_range) | (r < 1 - clip_range)
    return summed(features, new_W, actions, np.where(outside, 0, r * adv))


@wrong("further-3-a", "the maximum for the minimum")
def _(features, W, new_W, actions, adv, clip_range):
    return by_autograd(features, W, new_W, actions, adv, clip_range, minimum=torch.max)


@wrong("further-3-a", "the ratio is missing")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    return summed(features, new_W, actions, slopes(r, adv, clip_range))


@wrong("further-3-a", "the policy is not subtracted in the score")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    none = np.zeros((len(features), W.shape[1]))
    return summed(features, new_W, actions, r * slopes(r, adv, clip_range), none)


@wrong("further-3-a", "the old policy's probabilities in the score")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    return summed(features, W, actions, r * slopes(r, adv, clip_range))


@wrong("further-3-a", "the sum over samples instead of the mean")
def _(features, W, new_W, actions, adv, clip_range):
    r = ratios(features, W, new_W, actions)
    return summed(features, new_W, actions, r * slopes(r, adv, clip_range)) * len(adv)


@wrong("further-3-a", "the sign is that of a loss")
def _(features, W, new_W, actions, adv, clip_range):
    return -by_autograd(features, W, new_W, actions, adv, clip_range)


# b


def mean_kl(features, W, new_W):
    old, new = softmax(features @ W), softmax(features @ new_W)
    return np.mean([p @ np.log(p / q) for p, q in zip(old, new, strict=True)])


def outside(r, clip_range):
    return np.mean((r > 1 + clip_range) | (r < 1 - clip_range))


def effective(r):
    return r.mean() ** 2 / np.mean(r**2)


@right("further-3-b", "means of the ratios and of their squares")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    return [mean_kl(features, W, new_W), outside(r, clip_range), effective(r)]


@right("further-3-b", "torch's KL in float32, counted in a loop")
def _(features, W, new_W, actions, clip_range):
    X, W, new_W = (torch.tensor(x, dtype=torch.float32) for x in (features, W, new_W))
    old, new = (X @ W).log_softmax(1), (X @ new_W).log_softmax(1)
    far = torch.nn.functional.kl_div(new, old, log_target=True, reduction="batchmean")
    r = [float((new - old)[n, a].exp()) for n, a in enumerate(actions)]
    count = sum(not 1 - clip_range <= x <= 1 + clip_range for x in r)
    size = sum(r) ** 2 / sum(x * x for x in r)
    return [far, count / len(r), size / len(r)]


@wrong("further-3-b", "the arguments of the KL are swapped")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    return [mean_kl(features, new_W, W), outside(r, clip_range), effective(r)]


@wrong("further-3-b", "the sum of the states' KL instead of the mean")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    return [len(r) * mean_kl(features, W, new_W), outside(r, clip_range), effective(r)]


@wrong("further-3-b", "only ratios above the band are counted")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    return [mean_kl(features, W, new_W), (r > 1 + clip_range).mean(), effective(r)]


@wrong("further-3-b", "the band is on the log of the ratio")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    return [mean_kl(features, W, new_W), outside(1 + np.log(r), clip_range), effective(r)]


@wrong("further-3-b", "the ratio is upside down")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, new_W, W, actions)
    return [mean_kl(features, W, new_W), outside(r, clip_range), effective(r)]


@wrong("further-3-b", "the effective sample size is not divided by the size of the batch")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    w = r / r.sum()
    return [mean_kl(features, W, new_W), outside(r, clip_range), 1 / (w @ w)]


@wrong("further-3-b", "the weights are not normalized")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    return [mean_kl(features, W, new_W), outside(r, clip_range), 1 / (r @ r) / len(r)]


@wrong("further-3-b", "a square root is taken of the effective share")
def _(features, W, new_W, actions, clip_range):
    r = ratios(features, W, new_W, actions)
    share = r.sum() / np.linalg.norm(r) / np.sqrt(len(r))
    return [mean_kl(features, W, new_W), outside(r, clip_range), share]


# c


def ascend(batch, clip_range, lr, minibatches, renew="never"):
    """Steps of gradient ascent over a list of passes, each a list of slices."""
    features, W, actions, adv = batch
    old_W = new_W = W
    for one_pass in minibatches:
        old_W = new_W if renew == "pass" else old_W
        for part in one_pass:
            old_W = new_W if renew == "step" else old_W
            X, a, A = features[part], actions[part], adv[part]
            r = ratios(X, old_W, new_W, a)
            new_W = new_W + lr * summed(X, new_W, a, r * slopes(r, A, clip_range))
    return new_W


def parts(n, size, passes):
    return [[slice(i, i + size) for i in range(0, n, size)]] * passes


@right("further-3-c", "a loop over the samples of each minibatch")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    batch = features, W, actions, adv
    return ascend(batch, clip_range, lr, parts(len(adv), size, passes))


@right("further-3-c", "torch's SGD, which maximizes")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    theta = torch.tensor(W, requires_grad=True)
    optimizer = torch.optim.SGD([theta], lr=lr, maximize=True)
    for _ in range(passes):
        for index in np.arange(len(adv)).reshape(-1, size):
            optimizer.zero_grad()
            objective(features[index], W, theta, actions[index], adv[index], clip_range).backward()
            optimizer.step()
    return theta.detach().float()


@wrong("further-3-c", "the old policy is renewed before each pass")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    batch = features, W, actions, adv
    return ascend(batch, clip_range, lr, parts(len(adv), size, passes), renew="pass")


@wrong("further-3-c", "the old policy is renewed before each step")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    new_W = W
    for part in chain(*parts(len(adv), size, passes)):
        new_W = new_W + lr * summed(features[part], new_W, actions[part], adv[part])
    return new_W


@wrong("further-3-c", "the whole batch in each step")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return ascend((features, W, actions, adv), clip_range, lr, parts(len(adv), len(adv), passes))


@wrong("further-3-c", "the mean is over the batch instead of the minibatch")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    minibatches = parts(len(adv), size, passes)
    return ascend((features, W, actions, adv), clip_range, lr * size / len(adv), minibatches)


@wrong("further-3-c", "the sum over a minibatch instead of the mean")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    minibatches = parts(len(adv), size, passes)
    return ascend((features, W, actions, adv), clip_range, lr * size, minibatches)


@wrong("further-3-c", "a single pass")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return ascend((features, W, actions, adv), clip_range, lr, parts(len(adv), size, 1))


@wrong("further-3-c", "the clip is left out")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return ascend((features, W, actions, adv), np.inf, lr, parts(len(adv), size, passes))


@wrong("further-3-c", "steps downhill")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return ascend((features, W, actions, adv), clip_range, -lr, parts(len(adv), size, passes))


# d


def numbers(batch, clip_range, lr, passes, size, far=mean_kl, **options):
    """The right numbers, by runs that the options change."""
    features, W, actions, adv = batch

    def run(width, count):
        return ascend(batch, width, lr, parts(len(adv), size, count), **options)

    once, free, clipped = run(np.inf, 1), run(np.inf, passes), run(clip_range, passes)
    early = ratios(features, W, run(clip_range, 3), actions)
    gone = slopes(early, adv, clip_range) == 0
    late = ratios(features, W, clipped, actions)
    return [
        *(far(features, W, new_W) for new_W in (once, free, clipped)),
        outside(late, clip_range),
        effective(ratios(features, W, free, actions)),
        outside(late[gone], clip_range),
    ]


@right("further-3-d", "loops over the samples")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return numbers((features, W, actions, adv), clip_range, lr, passes, size)


@right("further-3-d", "torch's gradients")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    def run(width, count):
        theta = torch.tensor(W, requires_grad=True)
        for part in chain(*parts(len(adv), size, count)):
            data = features[part], W, theta, actions[part], adv[part], width
            (gradient,) = torch.autograd.grad(objective(*data), theta)
            theta = (theta + lr * gradient).detach().requires_grad_()
        return theta.detach()

    X, n = torch.tensor(features), np.arange(len(adv))
    old = (X @ torch.tensor(W)).log_softmax(1)

    def change(theta):
        return (X @ theta).log_softmax(1) - old

    runs = run(1e9, 1), run(1e9, passes), run(clip_range, passes), run(clip_range, 3)
    kls = [-(old.exp() * change(theta)).sum(1).mean() for theta in runs[:3]]
    free, late, early = (change(theta)[n, actions].exp() for theta in runs[1:])
    A = torch.tensor(adv)
    gone = torch.where(A > 0, early > 1 + clip_range, (early < 1 - clip_range) & (A < 0))
    far = ((late - 1).abs() > clip_range).double()
    share = free.sum() ** 2 / (free**2).sum() / len(free)
    return torch.stack([*kls, far.mean(), share, far[gone].mean()])


@wrong("further-3-d", "the arguments of the KL are swapped")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    def swapped(features, W, new_W):
        return mean_kl(features, new_W, W)

    return numbers((features, W, actions, adv), clip_range, lr, passes, size, far=swapped)


@wrong("further-3-d", "the old policy is renewed before each pass")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return numbers((features, W, actions, adv), clip_range, lr, passes, size, renew="pass")


@wrong("further-3-d", "the whole batch in each step")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    return numbers((features, W, actions, adv), clip_range, lr, passes, len(adv))


@wrong("further-3-d", "the second and the third number are interchanged")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    x = numbers((features, W, actions, adv), clip_range, lr, passes, size)
    return [x[0], x[2], x[1], *x[3:]]


@wrong("further-3-d", "the effective sample size is not divided by the size of the batch")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    x = numbers((features, W, actions, adv), clip_range, lr, passes, size)
    return [*x[:4], x[4] * len(adv), x[5]]


@wrong("further-3-d", "the last share is one of the whole batch")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    batch = features, W, actions, adv
    early, late = (
        ratios(features, W, ascend(batch, clip_range, lr, parts(len(adv), size, k)), actions)
        for k in (3, passes)
    )
    gone = slopes(early, adv, clip_range) == 0
    share = np.mean(gone & (np.abs(late - 1) > clip_range))
    return [*numbers(batch, clip_range, lr, passes, size)[:5], share]


@wrong("further-3-d", "the number of samples outside instead of their share")
def _(features, W, actions, adv, clip_range, lr, passes, size):
    x = numbers((features, W, actions, adv), clip_range, lr, passes, size)
    return [*x[:3], round(x[3] * len(adv)), *x[4:]]
