"""Section 03: how loose the two bounds are, against the horizon."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion.bounds import upper_bounds
from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.figures.bounds import EXAMPLES, STYLES, line_to_target, steps_to_target
from companion.figures.greek import ALPHA, GAMMA
from companion.figures.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, panels
from companion.policy import FloatArray

# Effective horizons 1/(1 - gamma) from 2 to 1,000 steps.
HORIZONS = np.geomspace(2, 1000, 10)
HORIZON_LABEL = f"horizon 1/(1\u2212{GAMMA}) (steps, log)"
PASSAGES = {
    "worst sign in every state": SKY,
    "walkers never meet again": ORANGE,
    "CPI bound": GREEN,
    "KL bound": PURPLE,
}


def _draw_steps(ax: Any, cpi: FloatArray, kl: FloatArray, safe: FloatArray) -> None:
    ax.plot(HORIZONS, safe, color=BLUE, marker="v", markersize=4, label="truly safe")
    for name, step, marker in (("CPI", cpi, "o"), ("KL", kl, "s")):
        if (step > 0).all():
            look = {"marker": marker, "markersize": 4, **STYLES[f"{name} bound"]}
            ax.plot(HORIZONS, step, label=f"certified, {name}", **look)
    ceiling = 1 / (2 * (HORIZONS - 1))
    ax.plot(HORIZONS, ceiling, color=INK, linewidth=0.8, label="ceiling of CPI")
    ax.set(xlabel=HORIZON_LABEL, ylabel=f"largest weight {ALPHA} (log)")
    ax.set(xscale="log", yscale="log", ylim=(1e-6, 2))
    ax.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_costs(ax: Any, costs: FloatArray) -> None:
    for (name, color), cost, marker in zip(PASSAGES.items(), costs, "^Dos", strict=True):
        ax.plot(HORIZONS, cost, color=color, marker=marker, markersize=4, label=name)
    ax.set(xlabel=HORIZON_LABEL, ylabel="bound / surrogate's error (log)")
    ax.set(xscale="log", yscale="log", ylim=(0.5, 1e6))
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def draw_looseness(alpha: float, example: str) -> Drawing:
    """Draw certified and safe steps against the horizon, and what each step of the proofs costs.

    Args:
        alpha: weight of the target at which the proofs are followed, in (0, 1).
        example: one of `EXAMPLES`.
    """
    discounts = [1 - 1 / float(horizon) for horizon in HORIZONS]
    cpi, kl, safe = np.array([steps_to_target(example, gamma) for gamma in discounts]).T
    proofs = np.array([upper_bounds(*line_to_target(example, g), alpha) for g in discounts]).T
    costs = proofs[1:] / proofs[0]
    figure, (left, right) = panels(2)
    _draw_steps(left, cpi, kl, safe)
    _draw_costs(right, costs)
    numbers = {
        f"certified / safe, {name}, horizon {HORIZONS[i]:,.0f}": step[i] / safe[i]
        for name, step in (("CPI", cpi), ("KL", kl))
        for i in (0, -1)
    }
    for name, cost in zip(PASSAGES, costs, strict=True):
        numbers[f"{name} / error, horizon 1,000"] = cost[-1]
    alt = (
        f"Against the horizon, 2 to 1,000 steps, {example} MDP, both axes on a log scale. Left: at"
        f" 1,000 steps weight {safe[-1]:.2g} is safe, {cpi[-1]:.2g} is certified by the CPI bound"
        f" and {kl[-1]:.2g} by the KL bound. Right, at weight {alpha:.2g}: from 2 to 1,000 steps"
        f" the CPI bound's penalty goes from {costs[2, 0]:.2g} to {costs[2, -1]:.2g} times"
        f" the surrogate's error and the KL bound's from {costs[3, 0]:.2g} to {costs[3, -1]:.2g}."
    )
    return Drawing(figure, numbers, alt)


LOOSENESS = LiveFigure(
    draw_looseness,
    {
        "alpha": Slider(ALPHA, "weight of the target", 0.01, 1e-4, 0.1, 0.25, log=True),
        "example": Choice("MDP", "example", "random", EXAMPLES),
    },
)
