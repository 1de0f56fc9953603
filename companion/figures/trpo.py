"""Section 04: conjugate gradient against its bound, the step it makes, and the other directions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures import greek
from companion.figures.style import BLUE, GREEN, INK, KEPT, ORANGE, RED, panels, rung
from companion.trpo_spectrum import (
    MOST_ITERATIONS,
    FloatArray,
    Solution,
    measure,
    measure_one,
    solve,
    spectrum,
)
from companion.trust_region import LineSearch, line_search, natural_step

FRACTIONS = np.linspace(0.05, 1.25, 25)
TURNS = np.linspace(-90, 90, 37)  # degrees from the natural direction
DELTA = 0.01  # nats, where no slider moves it
COLORS = INK, GREEN, ORANGE  # of the chosen direction, the natural one and the gradient


class Proposal(NamedTuple):
    """The step of damped quadratic KL delta along a direction, and what it is worth."""

    step: FloatArray  # in the eigenvectors' coordinates
    predicted: float  # gain, to first order
    damped: float  # quadratic KL in nats, of the damped F
    quadratic: float  # the same of F
    gain: float  # of the surrogate
    mean_kl: float
    search: LineSearch


def propose(direction: FloatArray, damping: float, delta: float) -> Proposal:
    """Scale a direction to the radius and measure the step."""
    _, eigenvalues, _, g = spectrum()
    F = eigenvalues + damping
    d = natural_step(direction, float(F @ direction**2), delta)
    gain, mean_kl = measure_one(torch.from_numpy(d))
    search = line_search(measure_one, torch.from_numpy(d), delta=delta)
    quadratic = float(eigenvalues @ d**2) / 2
    return Proposal(d, float(g @ d), float(F @ d**2) / 2, quadratic, gain, mean_kl, search)


def _draw_error(ax: Any, found: Solution, iterations: int) -> None:
    ax.plot(found.error, "o-", color=BLUE, markersize=3, label="error")
    ax.plot(found.bound, "--", color=ORANGE, label="bound")
    ax.plot(iterations, found.error[iterations], "o", color=INK, markersize=5)
    ax.set(xlabel="CG iterations", ylabel="relative error, F-norm (log)", ylim=(1e-10, 5))
    ax.set(yscale="log", xlim=(-1, MOST_ITERATIONS + 1))
    ax.legend(frameon=False, fontsize=7, loc="lower left")


def _draw_along(middle: Any, right: Any, proposal: Proposal, delta: float) -> None:
    """Draw KL and gain in units of the radius and of the prediction: both axes hold still."""
    gains, kls = measure(FRACTIONS[:, None] * proposal.step)
    squares, search = FRACTIONS**2, proposal.search
    middle.plot(FRACTIONS, kls / delta, color=BLUE, label="mean KL")
    model = proposal.quadratic / delta * squares
    middle.plot(FRACTIONS, model, ":", color=INK, label="model, F")
    model = proposal.damped / delta * squares
    middle.plot(FRACTIONS, model, "--", color=GREEN, label="model, damped F")
    middle.axhline(1, color=RED, linewidth=1, label=greek.DELTA)
    middle.set(xlabel="part of the step", ylabel=f"mean KL / {greek.DELTA}", ylim=(0, 3))
    right.plot(FRACTIONS, gains / proposal.predicted, color=BLUE, label="surrogate")
    right.plot(FRACTIONS, FRACTIONS, "--", color=ORANGE, label="predicted")
    right.set(xlabel="part of the step", ylabel="gain / predicted gain", ylim=(0, 1.7))
    if search.accepted:
        middle.plot(search.fraction, search.kl / delta, "o", color=INK, markersize=4)
        right.plot(search.fraction, search.gain / proposal.predicted, "o", color=INK, markersize=4)
    for ax in (middle, right):
        ax.legend(frameon=False, fontsize=7, loc="upper left")


def draw_step(delta: float, damping: float, iterations: int) -> Drawing:
    """Draw the error of conjugate gradient, and mean KL and gain along the step that it makes.

    Args:
        delta: KL radius in nats.
        damping: added to the Fisher matrix's diagonal.
        iterations: of conjugate gradient, 1 to 20.
    """
    found = solve(damping, iterations)
    made = propose(found.direction, damping, delta)
    fraction = f"fraction {made.search.fraction:.3g} passed"
    outcome = fraction if made.search.accepted else "nothing passed"
    figure, (left, middle, right) = panels(3, height=2.7)
    _draw_error(left, found, iterations)
    _draw_along(middle, right, made, delta)
    numbers = {
        "relative error of CG, F-norm": found.error[iterations],
        "its bound": found.bound[iterations],
        "residual |F x - g| / |g|": found.residual,
        "predicted gain": made.predicted,
        "gain of the full step": made.gain,
        "quadratic KL, damped": made.damped,
        "quadratic KL": made.quadratic,
        "mean KL of the full step": made.mean_kl,
        "line search": outcome,
        "halvings": made.search.halvings,
    }
    alt = (
        f"Left: after iteration {iterations} the relative error of conjugate gradient is"
        f" {found.error[iterations]:.2g}, its bound {found.bound[iterations]:.2g}. Middle: the"
        f" full step has mean KL {made.mean_kl:.3g}, the radius is {delta:.3g}. Right: it gains"
        f" {made.gain:.3g}, predicted were {made.predicted:.3g}. Line search: {outcome}."
    )
    return Drawing(figure, numbers, alt)


STEP = LiveFigure(
    draw_step,
    {
        "delta": Slider(greek.DELTA, "KL radius (nats)", 0.01, 1e-3, 10.0, 0.5, log=True),
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


@lru_cache(KEPT)
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


def _draw_plane(ax: Any, here: Plane, steps: dict[str, FloatArray]) -> None:
    label = f"quadratic KL, damped = {greek.DELTA}"
    ax.plot(*here.ellipse.T, "--", color=GREEN, label=label)
    ax.plot(*here.contour.T, color=BLUE, label=f"mean KL = {greek.DELTA}")
    for (name, step), color in zip(steps.items(), COLORS, strict=True):
        ax.plot([0, step[0]], [0, step[1]], color=color)
        ax.plot(*step, "o" if name == "chosen" else "^", color=color, markersize=5)
    ax.set(xlabel="along the natural direction", ylabel="across it, towards g")
    reach = rung(float(np.abs(here.contour).max()))
    ax.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
    ax.legend(frameon=False, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _draw_gains(ax: Any, here: Plane, turns: dict[str, float], predicted: dict[str, float]) -> None:
    """Draw gains against the angle, in units of the predicted gain of the natural step."""
    unit = predicted["natural"]
    cosines = scaled(here.F, TURNS) @ here.g / unit
    ax.plot(TURNS, cosines, "--", color=ORANGE, label="predicted")
    ax.plot(TURNS, here.gain / unit, color=BLUE, label="surrogate")
    for name, color in zip(("natural", "gradient"), COLORS[1:], strict=True):
        ax.plot(turns[name], predicted[name] / unit, "^", color=color, markersize=5, label=name)
    ax.plot(turns["chosen"], predicted["chosen"] / unit, "o", color=INK, markersize=4)
    ax.set(xlabel="angle to the natural direction (degrees)", ylim=(-0.75, 1.1))
    ax.set_ylabel("gain / predicted natural gain")
    ax.legend(frameon=False, fontsize=7, loc="lower center")


def draw_direction(turn: float, damping: float) -> Drawing:
    """Draw the steps of one quadratic KL in the plane of two directions, and what they gain.

    Args:
        turn: angle of the step from the natural direction, towards the gradient, in degrees.
        damping: added to the Fisher matrix's diagonal.
    """
    here = plane(damping)
    toward_g = float(np.degrees(np.arctan2(here.g[1], here.g[0])))
    turns = {"chosen": turn, "natural": 0.0, "gradient": toward_g}
    steps = {name: scaled(here.F, angle) for name, angle in turns.items()}
    predicted = {name: float(here.g @ step) for name, step in steps.items()}
    cosine = float(steps["chosen"] @ here.F @ steps["natural"]) / (2 * DELTA)
    gain, mean_kl = measure_one(torch.from_numpy(steps["chosen"] @ here.frame))
    figure, (left, right) = panels(2, height=3.0)
    _draw_plane(left, here, steps)
    _draw_gains(right, here, turns, predicted)
    numbers = {
        "predicted gain of the chosen step": predicted["chosen"],
        "cosine (F) times the natural step's": cosine * predicted["natural"],
        "difference of these two": predicted["chosen"] - cosine * predicted["natural"],
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
