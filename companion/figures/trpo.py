"""Section 04: conjugate gradient against its bound, the step it makes, and the other directions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from companion import trpo_example
from companion.conjugate_gradient import cg_error_bound, conjugate_gradient_iterates
from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.style import BLUE, GREEN, INK, ORANGE, RED, panels, rung
from companion.fisher import fisher_matrix
from companion.policy import kl, softmax
from companion.trust_region import Surrogate, line_search, natural_step, surrogate

FloatArray = NDArray[np.float64]

MOST_ITERATIONS = 20
FRACTIONS = np.linspace(0.05, 1.25, 25)
TURNS = np.linspace(-90, 90, 37)  # degrees from the natural direction
DELTA = 0.01  # nats, where no slider moves it


class Spectrum(NamedTuple):
    """The printed batch in float64: the surrogate, and the Fisher matrix F = basis diag basis^T."""

    surrogate: Surrogate
    eigenvalues: FloatArray  # of F without damping, ascending
    basis: FloatArray  # one eigenvector a column
    g: FloatArray  # the surrogate's gradient in that basis


@cache
def spectrum() -> Spectrum:
    """Return what no slider changes."""
    policy, obs, actions, adv = trpo_example.problem()
    policy, obs, adv = policy.double(), obs.double(), adv.double()
    batch = surrogate(policy, obs, actions, adv)
    eigenvalues, basis = np.linalg.eigh(fisher_matrix(policy, obs).numpy())
    # F is positive semidefinite; rounding leaves its zeros on either side.
    return Spectrum(batch, eigenvalues.clip(min=0.0), basis, basis.T @ batch.g.numpy())


@cache
def _arrays() -> tuple[Any, ...]:
    """Return the batch, its actions as a mask, and the network's transposed weights and biases."""
    policy, obs, actions, adv = trpo_example.problem()
    weights = [w.detach().double().numpy().T for w in policy.parameters()]
    taken = np.eye(3, dtype=bool)[actions.numpy()]
    return obs.double().numpy(), taken, adv.double().numpy(), *weights


def measure(steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return gain and mean KL of many steps, as `spectrum().surrogate.evaluate` does of one.

    Args:
        steps: (K, P), in the eigenvectors' coordinates.

    Returns:
        Gain of the surrogate and mean KL(old, new) in nats, each (K,).
    """
    obs, taken, adv, *old = _arrays()
    ends = np.cumsum([w.size for w in old])[:-1]
    moves = np.split(steps @ spectrum().basis.T, ends, axis=1)
    W, b, V, c = (
        w + move.reshape(-1, *w.shape[::-1]).swapaxes(1, -1)
        for w, move in zip(old, moves, strict=True)
    )
    pi_old = softmax(np.tanh(obs @ old[0] + old[1]) @ old[2] + old[3])
    pi = softmax(np.tanh(obs @ W + b[:, None]) @ V + c[:, None])
    ratio = (pi / pi_old)[:, taken]
    return ((ratio - 1) * adv).mean(axis=-1), kl(pi_old, pi).mean(axis=-1)


def measure_one(step: torch.Tensor) -> tuple[float, float]:
    """Return gain and mean KL of one step, for the line search."""
    gain, mean_kl = measure(step.numpy()[None])
    return float(gain[0]), float(mean_kl[0])


class Solution(NamedTuple):
    """What conjugate gradient made of F x = g, in the eigenvectors' coordinates."""

    error: FloatArray  # |x_j - x*| / |x*| in the norm of the damped F, j = 0, 1, ...
    bound: FloatArray  # on the same, for the same j
    direction: FloatArray  # the iterate asked for
    residual: float  # |F x - g| / |g| there


def solve(damping: float, iterations: int) -> Solution:
    """Run conjugate gradient and compare every iterate with the exact solution."""
    _, eigenvalues, _, g = spectrum()
    F = eigenvalues + damping
    iterates = [0 * g, *conjugate_gradient_iterates(lambda v: F * v, g, MOST_ITERATIONS, 1e-15)]
    iterates += iterates[-1:] * (MOST_ITERATIONS + 1 - len(iterates))  # where it converged
    error = np.sqrt((F * (np.array(iterates) - g / F) ** 2).sum(axis=1))
    bound = cg_error_bound(F[-1] / F[0], np.arange(len(iterates)))
    direction = iterates[iterations]
    residual = float(np.linalg.norm(F * direction - g) / np.linalg.norm(g))
    return Solution(error / error[0], bound, direction, residual)


def draw_step(delta: float, damping: float, iterations: int) -> Drawing:
    """Draw the error of conjugate gradient, and mean KL and gain along the step that it makes.

    Args:
        delta: KL radius in nats.
        damping: added to the Fisher matrix's diagonal.
        iterations: of conjugate gradient, 1 to 20.
    """
    _, eigenvalues, _, g = spectrum()
    found = solve(damping, iterations)
    F, x = eigenvalues + damping, found.direction
    d = natural_step(x, float(F @ x**2), delta)
    predicted = float(g @ d)
    damped, quadratic = float(F @ d**2) / 2, float(eigenvalues @ d**2) / 2
    gain, mean_kl = measure_one(torch.from_numpy(d))
    search = line_search(measure_one, torch.from_numpy(d), delta=delta)
    outcome = "nothing passed" if not search.accepted else f"fraction {search.fraction:.3g} passed"
    figure, (left, middle, right) = panels(3, height=2.7)
    left.plot(found.error, "o-", color=BLUE, markersize=3, label="error")
    left.plot(found.bound, "--", color=ORANGE, label="bound")
    left.plot(iterations, found.error[iterations], "o", color=INK, markersize=5)
    left.set(xlabel="CG iterations", ylabel="relative error, F-norm (log)", ylim=(1e-10, 5))
    left.set(yscale="log", xlim=(-1, MOST_ITERATIONS + 1))
    gains, kls = measure(FRACTIONS[:, None] * d)
    # In units of the radius and of the prediction both axes hold still.
    middle.plot(FRACTIONS, kls / delta, color=BLUE, label="mean KL")
    middle.plot(FRACTIONS, quadratic / delta * FRACTIONS**2, ":", color=INK, label="model, F")
    model = damped / delta * FRACTIONS**2
    middle.plot(FRACTIONS, model, "--", color=GREEN, label="model, damped F")
    middle.axhline(1, color=RED, linewidth=1, label="delta")
    middle.set(xlabel="part of the step", ylabel="mean KL / delta", ylim=(0, 3))
    right.plot(FRACTIONS, gains / predicted, color=BLUE, label="surrogate")
    right.plot(FRACTIONS, FRACTIONS, "--", color=ORANGE, label="predicted")
    right.set(xlabel="part of the step", ylabel="gain / predicted gain", ylim=(0, 1.7))
    if search.accepted:
        middle.plot(search.fraction, search.kl / delta, "o", color=INK, markersize=4)
        right.plot(search.fraction, search.gain / predicted, "o", color=INK, markersize=4)
    for ax, place in ((left, "lower left"), (middle, "upper left"), (right, "upper left")):
        ax.legend(frameon=False, fontsize=7, loc=place)
    numbers = {
        "relative error of CG, F-norm": found.error[iterations],
        "its bound": found.bound[iterations],
        "residual |F x - g| / |g|": found.residual,
        "predicted gain": predicted,
        "gain of the full step": gain,
        "quadratic KL, damped": damped,
        "quadratic KL": quadratic,
        "mean KL of the full step": mean_kl,
        "line search": outcome,
        "halvings": search.halvings,
    }
    alt = (
        f"Left: after {iterations} iterations the relative error of conjugate gradient is"
        f" {found.error[iterations]:.2g}, its bound {found.bound[iterations]:.2g}. Middle: the"
        f" full step has mean KL {mean_kl:.3g}, the radius is {delta:.3g}. Right: it gains"
        f" {gain:.3g}, predicted were {predicted:.3g}. Line search: {outcome}."
    )
    return Drawing(figure, numbers, alt)


STEP = LiveFigure(
    draw_step,
    {
        "delta": Slider("\u03b4", "KL radius (nats)", 0.01, 1e-3, 10.0, 0.5, log=True),
        "damping": Slider("damping", "added to F", 0.1, 1e-5, 1.0, 0.5, log=True),
        "iterations": Slider("CG", "iterations", 10, 1, MOST_ITERATIONS, 1, whole=True),
    },
)


class Plane(NamedTuple):
    """The plane of the natural direction and the gradient, and what its directions are worth.

    frame: (2, P), orthonormal in parameter space: the natural direction, and the rest of g.
    F: (2, 2), the damped Fisher matrix there. g: (2,), the gradient there.
    ellipse: (M, 2), where the damped quadratic KL is DELTA.
    contour: (M, 2), where the mean KL itself is DELTA.
    gain: of the surrogate, for each of TURNS, at the damped quadratic KL DELTA.
    """

    frame: FloatArray
    F: FloatArray
    g: FloatArray
    ellipse: FloatArray
    contour: FloatArray
    gain: FloatArray


@cache
def plane(damping: float) -> Plane:
    """Return what the angle does not change."""
    _, eigenvalues, _, g = spectrum()
    frame = np.linalg.qr(np.stack([g / (eigenvalues + damping), g]).T)[0].T
    frame *= np.sign(frame @ g)[:, None]
    F = frame * (eigenvalues + damping) @ frame.T
    circle = np.linspace(0, 2 * np.pi, 37)
    ellipse = np.linalg.solve(
        np.linalg.cholesky(F).T, np.sqrt(2 * DELTA) * np.stack([np.cos(circle), np.sin(circle)])
    ).T

    contour = ellipse
    for _ in range(3):  # the KL is nearly quadratic along a ray
        contour = contour * np.sqrt(DELTA / measure(contour @ frame)[1])[:, None]
    gain = measure(scaled(F, TURNS) @ frame)[0]
    return Plane(frame, F, frame @ g, ellipse, contour, gain)


def scaled(F: FloatArray, turns: float | FloatArray) -> FloatArray:
    """Return the steps of quadratic KL DELTA in directions given by their angles in degrees."""
    angle = np.radians(turns)
    u = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    curvature = ((u @ F) * u).sum(axis=-1, keepdims=True)
    return np.asarray(np.sqrt(2 * DELTA / curvature) * u)


def draw_direction(turn: float, damping: float) -> Drawing:
    """Draw the steps of one quadratic KL in the plane of two directions, and what they gain.

    Args:
        turn: angle of the step from the natural direction, towards the gradient, in degrees.
        damping: added to the Fisher matrix's diagonal.
    """
    here = plane(damping)
    toward_g = float(np.degrees(np.arctan2(here.g[1], here.g[0])))
    steps = {"chosen": scaled(here.F, turn), "natural": scaled(here.F, 0.0)}
    steps["gradient"] = scaled(here.F, toward_g)
    predicted = {name: float(here.g @ step) for name, step in steps.items()}
    best, d = steps["natural"], steps["chosen"]
    cosine = float(d @ here.F @ best) / (2 * DELTA)
    gain, mean_kl = measure_one(torch.from_numpy(d @ here.frame))
    most = predicted["natural"]
    figure, (left, right) = panels(2, height=3.0)
    left.plot(*here.ellipse.T, "--", color=GREEN, label="quadratic KL, damped = delta")
    left.plot(*here.contour.T, color=BLUE, label="mean KL = delta")
    for (name, step), color in zip(steps.items(), (INK, GREEN, ORANGE), strict=True):
        left.plot([0, step[0]], [0, step[1]], color=color)
        left.plot(*step, "o" if name == "chosen" else "^", color=color, markersize=5)
    left.set(xlabel="along the natural direction", ylabel="across it, towards g")
    reach = rung(float(np.abs(here.contour).max()))
    left.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
    cosines = scaled(here.F, TURNS) @ here.g / most
    right.plot(TURNS, cosines, "--", color=ORANGE, label="predicted")
    right.plot(TURNS, here.gain / most, color=BLUE, label="surrogate")
    for name, at, color in (("natural", 0.0, GREEN), ("gradient", toward_g, ORANGE)):
        right.plot(at, predicted[name] / most, "^", color=color, markersize=5, label=name)
    right.plot(turn, predicted["chosen"] / most, "o", color=INK, markersize=4)
    right.set(xlabel="angle to the natural direction (degrees)", ylim=(-0.75, 1.1))
    right.set_ylabel("gain / predicted natural gain")
    left.legend(frameon=False, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    right.legend(frameon=False, fontsize=7, loc="lower center")
    numbers = {
        "predicted gain of the chosen step": predicted["chosen"],
        "cosine (F) times the natural step's": cosine * predicted["natural"],
        "residual": predicted["chosen"] - cosine * predicted["natural"],
        "predicted gain, natural step": predicted["natural"],
        "predicted gain, gradient": predicted["gradient"],
        "gain of the chosen step": gain,
        "mean KL of the chosen step": mean_kl,
    }
    alt = (
        "Left: the ellipse of steps with damped quadratic KL 0.01 in the plane of natural direction"
        f" and gradient, and the contour of mean KL 0.01. Right: gain against angle; at"
        f" {turn:.3g} degrees {predicted['chosen']:.3g}, at 0, the natural direction,"
        f" {predicted['natural']:.3g}, along the gradient {predicted['gradient']:.3g}."
    )
    return Drawing(figure, numbers, alt)


DIRECTION = LiveFigure(
    draw_direction,
    {
        "turn": Slider("angle", "from the natural direction (degrees)", 60, -90, 90, 5),
        "damping": Slider("damping", "added to F", 0.1, 1e-2, 10.0, 0.5, log=True),
    },
)
