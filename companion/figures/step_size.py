"""Section 01: what one step of the parameter does to a policy with two actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.greek import EPSILON, PI, STEP_OF_THETA, THETA
from companion.figures.style import BLUE, GREEN, INK, ORANGE, SKY, legend_above, panels
from companion.policy import FloatArray, kl, logit_bounds, softmax


def _draw_bars(ax: Any, old: FloatArray, new: FloatArray) -> None:
    for offset, pi, look in (
        (-0.2, old, {"color": SKY, "label": "before"}),
        (0.2, new, {"color": BLUE, "hatch": "//", "label": "after"}),
    ):
        bars = ax.bar([offset, 1 + offset], pi, 0.38, edgecolor="white", **look)
        ax.bar_label(bars, [f"{x:.4g}" if x > 0.01 else f"{x:.1g}" for x in pi], fontsize=7)
    ax.set(xticks=[0, 1], ylim=(0, 1.1), xlabel="action", ylabel="probability")
    legend_above(ax)


def _draw_curve(ax: Any, theta: float, step: float, slope: float) -> None:
    line, ends = np.linspace(-12, 12, 241), np.array([theta, theta + step])
    before, after = expit(ends)
    ax.plot(line, expit(line), color=INK, linewidth=1)
    ax.plot(ends, before + slope * (ends - theta), "--", color=ORANGE, label="slope")
    ax.plot(theta, before, "o", color=SKY, markersize=8, label="before")
    ax.plot(theta + step, after, "s", color=BLUE, markersize=6, label="after")
    ax.set(xlabel=f"parameter {THETA} (logit difference)", ylabel=f"{PI}(a = 1)")
    ax.set_ylim(-0.08, 1.08)
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def draw_sigmoid(theta: float, step: float) -> Drawing:
    """Draw the policy pi(a=1) = sigmoid(theta) before and after a step of theta.

    Args:
        theta: the parameter before the step.
        step: what is added to it.
    """
    old, new = softmax([0.0, theta]), softmax([0.0, theta + step])
    slope = float(old.prod())
    figure, (left, right) = panels(2, width_ratios=(1, 1.3))
    _draw_bars(left, old, new)
    _draw_curve(right, theta, step, slope)
    numbers = {
        f"{PI}(a = 1) before": float(old[1]),
        f"{PI}(a = 1) after": float(new[1]),
        f"change of {PI}(a = 1)": float(new[1] - old[1]),
        f"slope {PI}(1)(1 - {PI}(1))": slope,
        "predicted to first order, slope * step": slope * step,
        "KL(before, after), nats": float(kl([old], [new])[0]),
    }
    alt = (
        "Left: bars of the two action probabilities before and after the step. Right: the sigmoid"
        f" with both points. From theta = {theta:.3g} a step of {step:.3g} takes the probability of"
        f" action 1 from {old[1]:.4g} to {new[1]:.4g}; the slope there is {slope:.2g}."
    )
    return Drawing(figure, numbers, alt)


SIGMOID = LiveFigure(
    draw_sigmoid,
    {
        "theta": Slider(THETA, "parameter before the step", 0.0, -8.0, 8.0, 1.0),
        "step": Slider(STEP_OF_THETA, "step of the parameter", 2.0, -4.0, 4.0, 0.5),
    },
)


def _draw_bands(ax: Any, clip_range: float) -> None:
    p = np.append(np.linspace(0.5, 0.99, 197), 0.999)
    # The unlikely action's own logit falls where that of the likely one rises.
    unlikely = [-bound for bound in logit_bounds(1 - p, clip_range)][::-1]
    likely = [np.where(np.isfinite(x), x, np.nan) for x in logit_bounds(p, clip_range)]
    ax.fill_between(p, *unlikely, color=SKY, alpha=0.4, label="both ratios in the band")
    for bound, label in zip(unlikely, ("band of the unlikely action", None), strict=True):
        ax.plot(p, bound, color=BLUE, label=label)
    for bound, label in zip(likely, ("band of the likely action", None), strict=True):
        ax.plot(p, bound, "--", color=ORANGE, label=label)
    beyond = f"1 / (1 + {EPSILON}): no upper edge beyond"
    ax.axvline(1 / (1 + clip_range), color=GREEN, linestyle=":", label=beyond)
    ax.set(xlabel="probability of the likelier action", ylabel="change of the logit difference")
    ax.set_ylim(-4.2, 3)


def draw_logit_bounds(clip_range: float, p: float) -> Drawing:
    """Draw how far the logit difference may move inside the ratio band, against certainty.

    Args:
        clip_range: eps of the band |r - 1| <= eps, in (0, 1).
        p: probability of the likelier action; the marker, in [0.5, 1).
    """
    down, up = (-float(bound) for bound in logit_bounds(1 - p, clip_range)[::-1])
    alone = [float(bound) for bound in logit_bounds(p, clip_range)]
    figure, ax = panels(1, height=3.2)
    _draw_bands(ax, clip_range)
    ax.plot([p, p], [down, up], "o-", color=INK, markersize=4)
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    numbers = {
        "both ratios in the band, lowest change": down,
        "both ratios in the band, highest change": up,
        "width": up - down,
        "likely action alone, lowest change": alone[0],
        "likely action alone, highest change": alone[1] if np.isfinite(alone[1]) else "no bound",
    }
    alt = (
        f"Allowed change of the logit difference at eps = {clip_range:.3g} against the probability"
        f" of the likelier action: at {p:.3g} from {down:.3g} to {up:.3g} if both ratios must stay"
        " in the band, a range that narrows to the right; the band of the likely action alone"
        f" widens and has no upper edge beyond {1 / (1 + clip_range):.3g}."
    )
    return Drawing(figure, numbers, alt)


LOGIT_BOUNDS = LiveFigure(
    draw_logit_bounds,
    {
        "clip_range": Slider(EPSILON, "half-width of the ratio band", 0.2, 0.05, 0.5, 0.05),
        "p": Slider("p", "probability of the likelier action", 0.6, 0.5, 0.95, 0.05),
    },
)
