"""KL, Fisher matrix and TRPO's step of a softmax-linear policy, for exercises 20.3 and 20.4.

The logits are features @ W. Flat vectors of parameters are W.ravel(): all actions of the first
feature, then those of the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.policy import FloatArray, kl, softmax


def kl_gradient(old: FloatArray, logits: FloatArray) -> FloatArray:
    """Return the gradient in the logits of mean_n KL(old_n || softmax(logits_n))."""
    return (softmax(logits) - old) / len(old)


def reversed_kl_gradient(old: FloatArray, logits: FloatArray) -> FloatArray:
    """Return the gradient in the logits of mean_n KL(softmax(logits_n) || old_n)."""
    new = softmax(logits)
    gradient: FloatArray = new * (np.log(new / old) - kl(new, old)[:, None]) / len(old)
    return gradient


def fisher(features: FloatArray, p: FloatArray) -> FloatArray:
    """Return mean_n phi_n phi_n^T x (diag(p_n) - p_n p_n^T), shape (d A, d A)."""
    return assembled(features, diagonal(p) - p[:, :, None] * p[:, None, :])


def diagonal(p: FloatArray) -> FloatArray:
    """Return diag(p_n) for each row, shape (N, A, A)."""
    return np.eye(p.shape[1]) * p[:, None, :]


def assembled(features: FloatArray, metric: FloatArray, order: str = "iajb") -> FloatArray:
    """Return the mean over n of phi_n phi_n^T x metric_n, with parameters in an order."""
    size = features.shape[1] * metric.shape[1]
    matrix = np.einsum(f"ni,nj,nab->{order}", features, features, metric) / len(features)
    reshaped: FloatArray = matrix.reshape(size, size)
    return reshaped


def length_at(curvature: Any, delta: float) -> float:
    """Return the factor at which a direction d of curvature d^T F d has the quadratic KL delta."""
    return float(np.sqrt(2 * delta / curvature))


def scaled(direction: FloatArray, F: FloatArray, delta: float) -> FloatArray:
    """Return the multiple of a direction whose quadratic KL is delta."""
    return length_at(direction @ F @ direction, delta) * direction


def natural_step(F: FloatArray, g: FloatArray, delta: float) -> FloatArray:
    """Return sqrt(2 delta / (g^T F^-1 g)) F^-1 g."""
    return scaled(np.linalg.solve(F, g), F, delta)


def predicted_gains(
    F: FloatArray, g: FloatArray, directions: FloatArray, delta: float
) -> FloatArray:
    """Return the gain g . d of each direction, scaled to the quadratic KL delta."""
    return np.array([g @ scaled(d, F, delta) for d in directions])


def compared(F: FloatArray, g: FloatArray, delta: float) -> FloatArray:
    """Return the predicted gains of natural and gradient step, and the second over the first."""
    return beside(*predicted_gains(F, g, np.array([np.linalg.solve(F, g), g]), delta))


def beside(natural: Any, gradient: Any) -> FloatArray:
    """Return two gains, and the second over the first."""
    return np.array([natural, gradient, gradient / natural])


def fisher_vector_product(
    features: FloatArray, p: FloatArray, v: FloatArray, damping: float
) -> FloatArray:
    """Return F v + damping v."""
    product: FloatArray = fisher(features, p) @ v + damping * v
    return product


def conjugate_gradient(
    A: FloatArray,
    b: FloatArray,
    iterations: int,
    *,
    coefficient: Callable[[Any, Any], Any] = lambda new, old: new / old,
    own_rate: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Return the iterate and its residual; with other coefficients or rates, what comes of them."""
    x, residual, search = 0 * b, b, b
    for _ in range(iterations):
        steepness = residual @ residual
        along = search if own_rate else residual
        rate = steepness / (along @ A @ along)
        x = x + rate * search
        residual = residual - rate * (A @ search)
        search = residual + coefficient(residual @ residual, steepness) * search
    return x, residual


def gain_and_kl(
    features: FloatArray, W: FloatArray, new_W: FloatArray, actions: Any, adv: FloatArray
) -> FloatArray:
    """Return mean_n (ratio_n - 1) adv_n, and mean_n KL(old || new)."""
    old, new = softmax(features @ W), softmax(features @ new_W)
    ratio = taken(new, actions) / taken(old, actions)
    return np.array([((ratio - 1) * adv).mean(), kl(old, new).mean()])


def taken(pi: FloatArray, actions: Any) -> FloatArray:
    """Return the probabilities of the actions taken."""
    probabilities: FloatArray = pi[np.arange(len(actions)), actions]
    return probabilities


def surrogate_gradient(
    features: FloatArray, W: FloatArray, actions: Any, adv: FloatArray
) -> FloatArray:
    """Return the gradient of the sampled surrogate at the old parameters, flat."""
    p = softmax(features @ W)
    score = np.eye(p.shape[1])[actions] - p
    gradient: FloatArray = (features.T @ (adv[:, None] * score) / len(adv)).ravel()
    return gradient


def iterations_needed(A: FloatArray, b: FloatArray, share: float = 1e-3) -> int:
    """Return after how many iterations the residual is at most this share of b."""
    limit = share * np.linalg.norm(b)
    for count in range(1, len(b) + 1):
        if np.linalg.norm(conjugate_gradient(A, b, count)[1]) <= limit:
            return count
    return len(b)


def trpo_numbers(
    features: FloatArray,
    W: FloatArray,
    actions: Any,
    adv: FloatArray,
    delta: float,
    damping: float,
    *,
    size: float = 1.0,
    gradient_damped: bool = True,
    model_damped: bool = False,
    counted_from: int = 1,
    overall: Callable[..., Any] = np.mean,
) -> FloatArray:
    """Return the numbers of TRPO's step on a batch, or what a change in one of them makes.

    These are the iterations needed, the predicted gains of the natural and the gradient step, and
    the natural step's KL over delta: by the model without damping, and in truth.
    """
    p = softmax(features @ W)
    F = fisher(features, p)
    damped = F + damping * np.eye(len(F))
    g = surrogate_gradient(features, W, actions, adv)
    step = size * scaled(conjugate_gradient(damped, g, 10)[0], damped, delta)
    gradient = size * scaled(g, damped if gradient_damped else F, delta)
    model = step @ (damped if model_damped else F) @ step / 2
    true_kl = overall(kl(p, softmax(features @ (W + step.reshape(W.shape)))))
    needed = iterations_needed(damped, g) - 1 + counted_from
    return np.array([needed, g @ step, g @ gradient, model / delta, true_kl / delta])


def line_search(gains: FloatArray, kls: FloatArray, delta: float) -> float:
    """Return the first fraction 1, 1/2, 1/4, ... with kl <= delta and gain > 0, or 0."""
    return first_fraction((kls <= delta) & (gains > 0))


def first_fraction(passes: Any, otherwise: float = 0.0) -> float:
    """Return 2^-k for the first k that passes."""
    return float(0.5 ** passes.argmax()) if passes.any() else otherwise
