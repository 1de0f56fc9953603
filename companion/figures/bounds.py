"""Section 03: two lower bounds on the gain along a line of policies."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from companion.bounds import (
    LargestSteps,
    cpi_best_alpha,
    cpi_bound,
    kl_bound,
    largest_steps,
)
from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.figures.greek import ALPHA, GAMMA, PI
from companion.figures.lemma import LINE, line
from companion.figures.style import BLUE, GREEN, INK, KEPT, ORANGE, PURPLE, SHADE, panels, rung
from companion.improvement import performance_difference, surrogate_gain
from companion.mdp import TabularMDP, evaluate, one_way_street
from companion.policy import FloatArray, greedy, mixture

EXAMPLES = ("random", "chain", "trap", "one-way street")
LOG_LINE = np.geomspace(1e-5, 1, 161)


@lru_cache(KEPT)
def line_to_target(example: str, gamma: float) -> tuple[TabularMDP, FloatArray, FloatArray]:
    """Return an MDP with this discount, the policy that is improved, and its target.

    The target is the greedy policy in the random MDP and in the chain, the bold one in the trap,
    and the one that always takes action 1 in the one-way street.

    Raises:
        ValueError: example is none of `EXAMPLES`, or gamma lies outside [0, 1).
    """
    if example == "one-way street":
        stay = np.array([[1.0, 0.0], [1.0, 0.0]])
        return one_way_street(gamma), stay, 1 - stay
    if example not in EXAMPLES:
        raise ValueError(f"example must be one of {EXAMPLES}; got {example!r}")
    mdp, start, target = line(example)
    mdp = replace(mdp, gamma=gamma)
    return mdp, start, target if example == "trap" else greedy(evaluate(mdp, start).q)


@lru_cache(KEPT)
def steps_to_target(example: str, gamma: float) -> LargestSteps:
    """Return the certified steps, and the safe one, along that line."""
    return largest_steps(*line_to_target(example, gamma))


STYLES: dict[str, dict[str, Any]] = {
    "return J": {"color": BLUE, "linestyle": "-"},
    "surrogate L": {"color": ORANGE, "linestyle": "--"},
    "CPI bound": {"color": GREEN, "linestyle": "-."},
    "KL bound": {"color": PURPLE, "linestyle": ":", "linewidth": 2.2},
}
MARKER_LINE: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 3))}


def _gains(example: str, gamma: float, alpha: FloatArray) -> dict[str, FloatArray]:
    """Return the true gain, the promised one and both bounds at every alpha."""
    mdp, start, target = line_to_target(example, gamma)
    policies = mixture(start, target, alpha)
    gains = (
        performance_difference(mdp, start, policies).gain,
        surrogate_gain(mdp, start, policies),
        cpi_bound(mdp, start, target, alpha),
        kl_bound(mdp, start, policies),
    )
    return dict(zip(STYLES, gains, strict=True))


@lru_cache(KEPT)
def _curves(example: str, gamma: float) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    linear, log = (_gains(example, gamma, alpha) for alpha in (LINE, LOG_LINE))
    # At alpha = 1 the KL bound is -inf, which cannot be plotted.
    for curves in (linear, log):
        curves["KL bound"][np.isinf(curves["KL bound"])] = np.nan
    return linear, log


def _draw_gains(ax: Any, curves: dict[str, FloatArray]) -> None:
    for name, gain in curves.items():
        ax.plot(LINE, gain, label=name, **STYLES[name])
    exact = np.array([curves["return J"], curves["surrogate L"]])
    low, high = exact.min(), exact.max()
    ax.set_ylim(-rung(0.35 * (high - low) - low), rung(1.02 * high))
    ax.axhline(0, color=INK, linewidth=0.6)
    ax.set(xlabel=f"weight {ALPHA} of the target", ylabel=f"gain over J({PI}) (reward units)")


def _draw_shares(ax: Any, curves: dict[str, FloatArray], steps: LargestSteps, best: float) -> None:
    for name, gain in curves.items():
        ax.plot(LOG_LINE, gain / curves["surrogate L"], label=name, **STYLES[name])
    for step, color in ((steps.cpi, GREEN), (steps.kl, PURPLE), (steps.safe, BLUE)):
        if LOG_LINE[0] <= step < 1:
            ax.plot(step, 0, "o", color=color, markersize=5)
    # Half the promise is subtracted at the maximum of a parabola through 0.
    ax.plot(best, 0.5, "D", color=GREEN, markersize=5)
    ax.axhspan(-1, 0, color=SHADE, zorder=0)
    ax.text(1.3e-5, -0.9, "nothing is certified", fontsize=8, color=INK)
    ax.set(xlabel=f"weight {ALPHA} (log)", ylabel="share of the promised gain")
    ax.set(xscale="log", ylim=(-1, 1.9))
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)


def draw_bounds(alpha: float, gamma: float, example: str) -> Drawing:
    """Draw the true gain, the surrogate's and both bounds, in reward units and as a share of L.

    Args:
        alpha: weight of the target, in [0, 1]; the marker.
        gamma: discount in [0, 1).
        example: one of `EXAMPLES`.
    """
    steps = steps_to_target(example, gamma)
    best = cpi_best_alpha(*line_to_target(example, gamma))
    linear, log = _curves(example, gamma)
    figure, (left, right) = panels(2)
    _draw_gains(left, linear)
    _draw_shares(right, log, steps, best)
    for ax in (left, right):
        ax.axvline(alpha, **MARKER_LINE)
    gained, promised, cpi, kl = map(float, _gains(example, gamma, np.array(alpha)).values())
    numbers = {
        "gain promised, L - J(old)": promised,
        "true gain, J(new) - J(old)": gained,
        "CPI bound on it": cpi,
        "KL bound on it": kl,
        f"{ALPHA}: best by the CPI bound": best,
        f"{ALPHA}: largest certified, CPI": steps.cpi,
        f"{ALPHA}: largest certified, KL": steps.kl,
        f"{ALPHA}: largest truly safe": steps.safe,
    }
    alt = (
        f"Left: gain against the weight of the target, {example} MDP, gamma {gamma:.3g}. Right: the"
        " same as a share of the gain that the surrogate promises, the weight on a log scale. The"
        f" CPI bound falls through 0 at {steps.cpi:.2g}, the KL bound at {steps.kl:.2g}; the true"
        f" gain stays at least 0 up to {steps.safe:.2g}. At weight {alpha:.2g}, {promised:.3g} is"
        f" promised and {gained:.3g} gained; the bounds are {cpi:.3g} and {kl:.3g}."
    )
    return Drawing(figure, numbers, alt)


BOUNDS = LiveFigure(
    draw_bounds,
    {
        "alpha": Slider(ALPHA, "weight of the target", 0.1, 1e-5, 1.0, 0.25, log=True),
        "gamma": Slider(GAMMA, "discount", 0.9, 0.6, 0.99, 0.03),
        "example": Choice("MDP", "example", "random", EXAMPLES),
    },
)
