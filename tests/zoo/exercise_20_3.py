"""Answers to exercise 20.3."""

import numpy as np
import torch

from tests.zoo import right, wrong


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]


# a


@right("20-3-a", "torch's autograd in float32")
def _(old, logits):
    z = torch.tensor(logits, dtype=torch.float32, requires_grad=True)
    p = torch.tensor(old)
    (p * (p.log() - z.log_softmax(1))).sum(1).mean().backward()
    return z.grad


@right("20-3-a", "central differences of the KL")
def _(old, logits):
    def mean_kl(z):
        return (old * np.log(old / softmax(z))).sum(axis=1).mean()

    gradient = np.zeros_like(logits)
    for i in np.ndindex(*logits.shape):
        step = np.zeros_like(logits)
        step[i] = 1e-5
        gradient[i] = (mean_kl(logits + step) - mean_kl(logits - step)) / 2e-5
    return gradient


@wrong("20-3-a", "the arguments of the KL are swapped")
def _(old, logits):
    new = softmax(logits)
    rows = []
    for p, q in zip(new, old, strict=True):
        divergence = p @ np.log(p / q)
        rows.append(p * (np.log(p / q) - divergence) / len(new))
    return rows


@wrong("20-3-a", "the sign is reversed")
def _(old, logits):
    return (old - softmax(logits)) / len(old)


@wrong("20-3-a", "the sum over states instead of the mean")
def _(old, logits):
    return softmax(logits) - old


@wrong("20-3-a", "the derivative is with respect to the probabilities")
def _(old, logits):
    return -(old / softmax(logits)) / len(old)


@wrong("20-3-a", "the logits are taken for probabilities")
def _(old, logits):
    return (logits - old) / logits.shape[0]


@wrong("20-3-a", "the difference of the log probabilities")
def _(old, logits):
    return (np.log(softmax(logits)) - np.log(old)) / len(old)


# b


def score(phi, p, action):
    """The gradient of log p(action) in W, flat."""
    return np.outer(phi, np.eye(len(p))[action] - p).ravel()


@right("20-3-b", "scores, action by action")
def _(features, p):
    F = 0
    for phi, row in zip(features, p, strict=True):
        for action, probability in enumerate(row):
            s = score(phi, row, action)
            F = F + probability * np.outer(s, s) / len(p)
    return F


@right("20-3-b", "torch's Hessian of the mean KL")
def _(features, p):
    phi, p = torch.tensor(features, dtype=torch.float32), torch.tensor(p, dtype=torch.float32)
    W = torch.zeros(phi.shape[1], p.shape[1])

    def mean_kl(move):  # the logits of p do not matter, only what is added to them
        logits = p.log() + phi @ (W + move)
        return (p * (p.log() - logits.log_softmax(1))).sum(1).mean()

    return torch.autograd.functional.hessian(mean_kl, W).reshape(W.numel(), W.numel())


def blocks(features, metrics):
    return sum(
        np.kron(np.outer(phi, phi), M) for phi, M in zip(features, metrics, strict=True)
    ) / len(features)


@wrong("20-3-b", "the outer product of the probabilities is left out")
def _(features, p):
    return blocks(features, [np.diag(row) for row in p])


@wrong("20-3-b", "the outer product of the probabilities is added")
def _(features, p):
    return blocks(features, [np.diag(row) + np.outer(row, row) for row in p])


@wrong("20-3-b", "the sum over states instead of the mean")
def _(features, p):
    return len(p) * blocks(features, [np.diag(row) - np.outer(row, row) for row in p])


@wrong("20-3-b", "the actions are averaged without the policy")
def _(features, p):
    F = 0
    for phi, row in zip(features, p, strict=True):
        for action in range(len(row)):
            s = score(phi, row, action)
            F = F + np.outer(s, s) / len(row) / len(p)
    return F


@wrong("20-3-b", "the parameters are in another order")
def _(features, p):
    return sum(
        np.kron(np.diag(row) - np.outer(row, row), np.outer(phi, phi))
        for phi, row in zip(features, p, strict=True)
    ) / len(p)


@wrong("20-3-b", "the features are averaged before they are multiplied")
def _(features, p):
    phi = features.mean(axis=0)
    M = sum(np.diag(row) - np.outer(row, row) for row in p) / len(p)
    return np.kron(np.outer(phi, phi), M)


# c


@right("20-3-c", "explicit inverse, Lagrange multiplier")
def _(F, g, delta):
    inverse = np.linalg.inv(F)
    multiplier = np.sqrt(g @ inverse @ g / (2 * delta))
    return (inverse @ g / multiplier).tolist()


@right("20-3-c", "torch in float32")
def _(F, g, delta):
    F, g = torch.tensor(F, dtype=torch.float32), torch.tensor(g, dtype=torch.float32)
    x = torch.cholesky_solve(g[:, None], torch.linalg.cholesky(F))[:, 0]
    return x * (2 * delta / (x @ F @ x)) ** 0.5


@wrong("20-3-c", "a factor 2 is missing")
def _(F, g, delta):
    x = np.linalg.solve(F, g)
    return np.sqrt(delta / (g @ x)) * x


@wrong("20-3-c", "the square root is missing")
def _(F, g, delta):
    x = np.linalg.solve(F, g)
    return 2 * delta / (g @ x) * x


@wrong("20-3-c", "a gradient step instead of the natural step")
def _(F, g, delta):
    return np.sqrt(2 * delta / (g @ F @ g)) * g


@wrong("20-3-c", "a gradient step of a Euclidean length")
def _(F, g, delta):
    return np.sqrt(2 * delta) * g / np.linalg.norm(g)


@wrong("20-3-c", "the natural direction with a Euclidean length")
def _(F, g, delta):
    x = np.linalg.solve(F, g)
    return np.sqrt(2 * delta) * x / np.linalg.norm(x)


@wrong("20-3-c", "the natural direction is not scaled")
def _(F, g, delta):
    return np.linalg.inv(F) @ g


@wrong("20-3-c", "the length is computed with F instead of its inverse")
def _(F, g, delta):
    return np.sqrt(2 * delta / (g @ F @ g)) * np.linalg.inv(F) @ g


@wrong("20-3-c", "the gradient is multiplied by F, not by its inverse")
def _(F, g, delta):
    x = F @ g
    return np.sqrt(2 * delta / (x @ F @ x)) * x


# d


@right("20-3-d", "all directions at once")
def _(F, g, directions, delta):
    curvature = np.einsum("ki,ij,kj->k", directions, F, directions)
    return (directions @ g * np.sqrt(2 * delta / curvature)).astype(np.float32)


@right("20-3-d", "cosines with the natural step")
def _(F, g, directions, delta):
    natural = np.linalg.solve(F, g)
    largest = np.sqrt(2 * delta * (g @ natural))

    def product(x, y):
        return x @ F @ y

    return tuple(
        largest * product(natural, d) / np.sqrt(product(natural, natural) * product(d, d))
        for d in directions
    )


@wrong("20-3-d", "a factor 2 is missing")
def _(F, g, directions, delta):
    return [g @ d * np.sqrt(delta / (d @ F @ d)) for d in directions]


@wrong("20-3-d", "the square root is missing")
def _(F, g, directions, delta):
    return [g @ d * 2 * delta / (d @ F @ d) for d in directions]


@wrong("20-3-d", "the directions have a Euclidean length")
def _(F, g, directions, delta):
    return [g @ d * np.sqrt(2 * delta) / np.linalg.norm(d) for d in directions]


@wrong("20-3-d", "the directions are not scaled")
def _(F, g, directions, delta):
    return directions @ g


@wrong("20-3-d", "the curvature is computed with the inverse of F")
def _(F, g, directions, delta):
    return [g @ d * np.sqrt(2 * delta / (d @ np.linalg.inv(F) @ d)) for d in directions]


@wrong("20-3-d", "every direction gets the natural step's gain")
def _(F, g, directions, delta):
    return [np.sqrt(2 * delta * (g @ np.linalg.inv(F) @ g))] * len(directions)


# e


@right("20-3-e", "closed forms")
def _(F, g, delta):
    inverse = np.linalg.inv(F)
    natural = np.sqrt(2 * delta * g @ inverse @ g)
    share = g @ g / np.sqrt((g @ inverse @ g) * (g @ F @ g))
    return [float(natural), float(share * natural), float(share)]


@right("20-3-e", "torch in float32")
def _(F, g, delta):
    F, g = torch.tensor(F, dtype=torch.float32), torch.tensor(g, dtype=torch.float32)
    natural = (2 * delta * g @ torch.linalg.solve(F, g)) ** 0.5
    gradient = (2 * delta / (g @ F @ g)) ** 0.5 * g @ g
    return torch.stack([natural, gradient, gradient / natural])


def gain_along(F, g, d, delta):
    return g @ d * np.sqrt(2 * delta / (d @ F @ d))


@wrong("20-3-e", "a factor 2 is missing")
def _(F, g, delta):
    natural = gain_along(F, g, np.linalg.inv(F) @ g, delta) * 0.5**0.5
    gradient = gain_along(F, g, g, delta) * 0.5**0.5
    return [natural, gradient, gradient / natural]


@wrong("20-3-e", "the gradient step has the natural step's Euclidean length")
def _(F, g, delta):
    x = np.linalg.inv(F) @ g
    step = np.sqrt(2 * delta / (g @ x)) * x
    gradient_step = g / np.linalg.norm(g) * np.linalg.norm(step)
    return [g @ step, g @ gradient_step, g @ gradient_step / (g @ step)]


@wrong("20-3-e", "the share is upside down")
def _(F, g, delta):
    natural = gain_along(F, g, np.linalg.inv(F) @ g, delta)
    gradient = gain_along(F, g, g, delta)
    return [natural, gradient, natural / gradient]


@wrong("20-3-e", "the square root is missing")
def _(F, g, delta):
    natural, gradient = (g @ (2 * delta / (d @ F @ d) * d) for d in (np.linalg.inv(F) @ g, g))
    return [natural, gradient, gradient / natural]


@wrong("20-3-e", "the gradient is multiplied by F, not by its inverse")
def _(F, g, delta):
    natural, gradient = gain_along(F, g, F @ g, delta), gain_along(F, g, g, delta)
    return [natural, gradient, gradient / natural]
