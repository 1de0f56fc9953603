"""Answers to exercise 20.4."""

import numpy as np
import torch

from tests.zoo import right, wrong


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]


# a


def dense_fisher(features, p):
    return sum(
        np.kron(np.outer(phi, phi), np.diag(row) - np.outer(row, row))
        for phi, row in zip(features, p, strict=True)
    ) / len(p)


@right("20-4-a", "the dense matrix")
def _(features, p, v, damping):
    return dense_fisher(features, p) @ v + damping * v


@right("20-4-a", "torch, the gradient of the KL's gradient")
def _(features, p, v, damping):
    phi, p, v = (torch.tensor(x, dtype=torch.float32) for x in (features, p, v))
    theta = torch.zeros(len(v), requires_grad=True)
    logits = p.log() + phi @ theta.reshape(phi.shape[1], -1)
    mean_kl = (p * (p.log() - logits.log_softmax(1))).sum(1).mean()
    (gradient,) = torch.autograd.grad(mean_kl, theta, create_graph=True)
    (product,) = torch.autograd.grad(gradient @ v, theta)
    return product + damping * v


def pulled_back(features, changed):
    return sum(np.outer(phi, row).ravel() for phi, row in zip(features, changed, strict=True))


@wrong("20-4-a", "the damping is left out")
def _(features, p, v, damping):
    change = features @ v.reshape(features.shape[1], -1)
    return pulled_back(features, p * (change - (p * change).sum(1)[:, None])) / len(p)


@wrong("20-4-a", "the damping is added twice")
def _(features, p, v, damping):
    change = features @ v.reshape(features.shape[1], -1)
    product = pulled_back(features, p * (change - (p * change).sum(1)[:, None])) / len(p)
    return (product + damping * v) + damping * v


@wrong("20-4-a", "the damping multiplies F instead of the identity")
def _(features, p, v, damping):
    return (1 + damping) * dense_fisher(features, p) @ v


@wrong("20-4-a", "the mean of the logits' change is not subtracted")
def _(features, p, v, damping):
    change = features @ v.reshape(features.shape[1], -1)
    return pulled_back(features, p * change) / len(p) + damping * v


@wrong("20-4-a", "the mean of the logits' change is taken without the policy")
def _(features, p, v, damping):
    change = features @ v.reshape(features.shape[1], -1)
    centred = change - change.mean(axis=1)[:, None]
    return pulled_back(features, p * centred) / len(p) + damping * v


@wrong("20-4-a", "the sum over states instead of the mean")
def _(features, p, v, damping):
    change = features @ v.reshape(features.shape[1], -1)
    return pulled_back(features, p * (change - (p * change).sum(1)[:, None])) + damping * v


@wrong("20-4-a", "the vector is reshaped in another order")
def _(features, p, v, damping):
    change = features @ v.reshape(p.shape[1], -1).T
    centred = p * (change - (p * change).sum(1)[:, None])
    return (features.T @ centred).T.ravel() / len(p) + damping * v


# b


@right("20-4-b", "minimum over the Krylov space")
def _(A, b, iterations):
    columns = [b]
    for _ in range(iterations - 1):
        columns.append(A @ columns[-1])
    Q, _ = np.linalg.qr(np.stack(columns, axis=1))
    return Q @ np.linalg.solve(Q.T @ A @ Q, Q.T @ b)


@right("20-4-b", "torch, float32, in place")
def _(A, b, iterations):
    A, b = torch.tensor(A, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)
    x, r, p = torch.zeros_like(b), b.clone(), b.clone()
    rr = r.dot(r)
    for _ in range(iterations):
        z = A.mv(p)
        alpha = rr / p.dot(z)
        x += alpha * p
        r -= alpha * z
        rr_new = r.dot(r)
        p.mul_(rr_new / rr).add_(r)
        rr = rr_new
    return x


@wrong("20-4-b", "steepest descent: each search follows the residual")
def _(A, b, iterations):
    x = np.zeros(len(b))
    for _ in range(iterations):
        r = b - A @ x
        x = x + (r @ r) / (r @ A @ r) * r
    return x


@wrong("20-4-b", "the coefficient of the old search direction is upside down")
def _(A, b, iterations):
    x, r, p = 0 * b, b, b
    for _ in range(iterations):
        rate = r @ r / (p @ A @ p)
        x, left = x + rate * p, r - rate * A @ p
        p, r = left + (r @ r) / (left @ left) * p, left
    return x


@wrong("20-4-b", "the coefficient of the old search direction is the ratio of norms")
def _(A, b, iterations):
    x, r, p = 0 * b, b, b
    for _ in range(iterations):
        rate = r @ r / (p @ A @ p)
        x, left = x + rate * p, r - rate * A @ p
        p, r = left + np.linalg.norm(left) / np.linalg.norm(r) * p, left
    return x


def solve(A, b, iterations):
    x, r, p = 0 * b, b, b
    for _ in range(iterations):
        rate = r @ r / (p @ A @ p)
        x, left = x + rate * p, r - rate * A @ p
        p, r = left + (left @ left) / (r @ r) * p, left
    return x


@wrong("20-4-b", "one iteration too few")
def _(A, b, iterations):
    x, r, p = 0 * b, b, b
    for _ in range(1, iterations):
        rate = r @ r / (p @ A @ p)
        x, left = x + rate * p, r - rate * A @ p
        p, r = left + (left @ left) / (r @ r) * p, left
    return x


@wrong("20-4-b", "the exact solution, not the iterate asked for")
def _(A, b, iterations):
    return solve(A, b, len(b))


@wrong("20-4-b", "the residual is returned")
def _(A, b, iterations):
    return b - A @ solve(A, b, iterations)


@wrong("20-4-b", "the rate is computed with the residual's curvature")
def _(A, b, iterations):
    x, r, p = 0 * b, b, b
    for _ in range(iterations):
        rate = r @ r / (r @ A @ r)
        x, left = x + rate * p, r - rate * A @ p
        p, r = left + (left @ left) / (r @ r) * p, left
    return x


# c


@right("20-4-c", "loop over the batch")
def _(features, W, new_W, actions, adv):
    gain = divergence = 0.0
    for phi, action, advantage in zip(features, actions, adv, strict=True):
        p, q = softmax((phi @ W)[None])[0], softmax((phi @ new_W)[None])[0]
        gain += (q[action] / p[action] - 1) * advantage / len(adv)
        divergence += sum(p[a] * (np.log(p[a]) - np.log(q[a])) for a in range(len(p))) / len(adv)
    return gain, divergence


@right("20-4-c", "torch.distributions in float32")
def _(features, W, new_W, actions, adv):
    phi, W, new_W, adv = (torch.tensor(x, dtype=torch.float32) for x in (features, W, new_W, adv))
    old = torch.distributions.Categorical(logits=phi @ W)
    new = torch.distributions.Categorical(logits=phi @ new_W)
    taken = torch.tensor(actions)
    ratio = (new.log_prob(taken) - old.log_prob(taken)).exp()
    gain = (ratio * adv).mean() - adv.mean()
    return torch.stack([gain, torch.distributions.kl_divergence(old, new).mean()])


def batch(features, W, new_W, actions):
    """Both policies, and the ratio of the actions taken."""
    old, new = softmax(features @ W), softmax(features @ new_W)
    n = np.arange(len(actions))
    return old, new, new[n, actions] / old[n, actions]


@wrong("20-4-c", "the arguments of the KL are swapped")
def _(features, W, new_W, actions, adv):
    old, new, ratio = batch(features, W, new_W, actions)
    return [np.mean(ratio * adv - adv), (new * np.log(new / old)).sum(axis=1).mean()]


@wrong("20-4-c", "the largest KL instead of the mean")
def _(features, W, new_W, actions, adv):
    old, new, ratio = batch(features, W, new_W, actions)
    return [np.mean(ratio * adv - adv), (old * np.log(old / new)).sum(axis=1).max()]


@wrong("20-4-c", "the KL is estimated from the actions taken")
def _(features, W, new_W, actions, adv):
    _, _, ratio = batch(features, W, new_W, actions)
    return [np.mean(ratio * adv - adv), -np.log(ratio).mean()]


@wrong("20-4-c", "the ratio is upside down")
def _(features, W, new_W, actions, adv):
    old, new, ratio = batch(features, W, new_W, actions)
    return [np.mean(adv / ratio - adv), (old * np.log(old / new)).sum(axis=1).mean()]


@wrong("20-4-c", "the old policy's surrogate is not subtracted")
def _(features, W, new_W, actions, adv):
    old, new, ratio = batch(features, W, new_W, actions)
    return [np.mean(ratio * adv), (old * np.log(old / new)).sum(axis=1).mean()]


@wrong("20-4-c", "the logarithm of the ratio stands in place of the ratio")
def _(features, W, new_W, actions, adv):
    old, new, ratio = batch(features, W, new_W, actions)
    return [np.mean(np.log(ratio) * adv), (old * np.log(old / new)).sum(axis=1).mean()]


@wrong("20-4-c", "sums over the batch instead of means")
def _(features, W, new_W, actions, adv):
    old, new, ratio = batch(features, W, new_W, actions)
    return [np.sum(ratio * adv - adv), (old * np.log(old / new)).sum()]


# d


@right("20-4-d", "halving a float")
def _(gains, kls, delta):
    fraction = 1.0
    for gain, divergence in zip(gains, kls, strict=True):
        if gain > 0 and divergence <= delta:
            return fraction
        fraction /= 2
    return 0


@right("20-4-d", "torch, a 0-d tensor")
def _(gains, kls, delta):
    passes = torch.tensor((gains > 0) & (kls <= delta))
    fractions = 0.5 ** torch.arange(len(gains), dtype=torch.float32)
    return (fractions * passes).max()


@wrong("20-4-d", "a worse surrogate is accepted")
def _(gains, kls, delta):
    for k in range(len(kls)):
        if kls[k] <= delta:
            return 0.5**k
    return 0.0


@wrong("20-4-d", "a step outside the trust region is accepted")
def _(gains, kls, delta):
    for k in range(len(gains)):
        if gains[k] > 0:
            return 0.5**k
    return 0.0


@wrong("20-4-d", "one of the two conditions is enough")
def _(gains, kls, delta):
    for k in range(len(gains)):
        if gains[k] > 0 or kls[k] <= delta:
            return 0.5**k
    return 0.0


@wrong("20-4-d", "the full step is taken when nothing passes")
def _(gains, kls, delta):
    for k in range(len(gains)):
        if gains[k] > 0 and kls[k] <= delta:
            return 0.5**k
    return 1.0


@wrong("20-4-d", "the smallest step is taken when nothing passes")
def _(gains, kls, delta):
    fraction = 1.0
    for k in range(len(gains)):
        fraction = 0.5**k
        if gains[k] > 0 and kls[k] <= delta:
            break
    return fraction


@wrong("20-4-d", "the largest gain is taken, not the first fraction that passes")
def _(gains, kls, delta):
    best, fraction = 0.0, 0.0
    for k in range(len(gains)):
        if kls[k] <= delta and gains[k] > best:
            best, fraction = gains[k], 0.5**k
    return fraction


@wrong("20-4-d", "a step that gains nothing is accepted")
def _(gains, kls, delta):
    for k in range(len(gains)):
        if not (gains[k] < 0 or kls[k] > delta):
            return 0.5**k
    return 0.0


@wrong("20-4-d", "a KL of exactly delta is refused")
def _(gains, kls, delta):
    for k in range(len(gains)):
        if gains[k] > 0 and kls[k] < delta:
            return 0.5**k
    return 0.0


@wrong("20-4-d", "the number of halvings instead of the fraction")
def _(gains, kls, delta):
    for k in range(len(gains)):
        if gains[k] > 0 and kls[k] <= delta:
            return k
    return 0


# e


def pieces(features, W, actions, adv):
    """The old policy, its Fisher matrix, and the surrogate's gradient."""
    p = softmax(features @ W)
    g = 0
    for phi, row, action, advantage in zip(features, p, actions, adv, strict=True):
        g = g + advantage * np.outer(phi, np.eye(len(row))[action] - row).ravel() / len(adv)
    return p, dense_fisher(features, p), g


def count(A, b, limit):
    for iterations in range(1, len(b) + 1):
        if np.linalg.norm(b - A @ solve(A, b, iterations)) <= limit:
            return iterations
    return len(b)


def divergences(features, W, p, step):
    q = softmax(features @ (W + step.reshape(W.shape)))
    return (p * np.log(p / q)).sum(axis=1)


@right("20-4-e", "the dense matrix and its exact solution")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    A = F + damping * np.eye(len(g))
    x = np.linalg.solve(A, g)
    step = x * (2 * delta / (x @ g)) ** 0.5
    return [
        count(A, g, 1e-3 * np.linalg.norm(g)),
        (2 * delta * (x @ g)) ** 0.5,
        g @ g * (2 * delta / (g @ A @ g)) ** 0.5,
        1 - damping * step @ step / 2 / delta,
        divergences(features, W, p, step).mean() / delta,
    ]


@right("20-4-e", "torch's Hessian, float32 numbers")
def _(features, W, actions, adv, delta, damping):
    phi, theta = torch.tensor(features), torch.tensor(W).flatten()
    logp = (phi @ torch.tensor(W)).log_softmax(1)
    n = torch.arange(len(actions))

    def new_logp(theta):
        return (phi @ theta.reshape(W.shape)).log_softmax(1)

    def mean_kl(theta):
        return (logp.exp() * (logp - new_logp(theta))).sum(1).mean()

    def surrogate(theta):
        ratio = (new_logp(theta)[n, actions] - logp[n, actions]).exp()
        return (ratio * torch.tensor(adv)).mean()

    F = torch.autograd.functional.hessian(mean_kl, theta)
    g = torch.autograd.functional.jacobian(surrogate, theta)
    A = F + damping * torch.eye(len(g))
    x = torch.linalg.solve(A, g)
    step = x * (2 * delta / (x @ A @ x)) ** 0.5
    needed = count(A.numpy(), g.numpy(), 1e-3 * float(g.norm()))
    numbers = [g @ step, g @ g * (2 * delta / (g @ A @ g)) ** 0.5, step @ F @ step / 2 / delta]
    return torch.stack([torch.tensor(needed), *numbers, mean_kl(theta + step) / delta]).float()


def report(F, A, gradient_A, g, p, delta, features, W, half=2.0):
    x = solve(A, g, 10)
    step = np.sqrt(half * delta / (x @ A @ x)) * x
    gradient = np.sqrt(half * delta / (g @ gradient_A @ g)) * g
    return [
        count(A, g, 1e-3 * np.linalg.norm(g)),
        g @ step,
        g @ gradient,
        step @ F @ step / 2 / delta,
        divergences(features, W, p, step).mean() / delta,
    ]


@wrong("20-4-e", "the damping is left out")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    return report(F, F, F, g, p, delta, features, W)


@wrong("20-4-e", "the model KL includes the damping")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    A = F + damping * np.eye(len(g))
    return report(A, A, A, g, p, delta, features, W)


@wrong("20-4-e", "a factor 2 is missing in the length of the steps")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    A = F + damping * np.eye(len(g))
    return report(F, A, A, g, p, delta, features, W, half=1.0)


@wrong("20-4-e", "the gradient step is scaled without the damping")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    A = F + damping * np.eye(len(g))
    return report(F, A, F, g, p, delta, features, W)


@wrong("20-4-e", "the iterations are counted from 0")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    A = F + damping * np.eye(len(g))
    iterations, *others = report(F, A, A, g, p, delta, features, W)
    return [list(range(20)).index(iterations - 1), *others]


@wrong("20-4-e", "the largest KL instead of the mean")
def _(features, W, actions, adv, delta, damping):
    p, F, g = pieces(features, W, actions, adv)
    A = F + damping * np.eye(len(g))
    x = solve(A, g, 10)
    step = np.sqrt(2 * delta / (x @ A @ x)) * x
    *others, _ = report(F, A, A, g, p, delta, features, W)
    return [*others, divergences(features, W, p, step).max() / delta]
