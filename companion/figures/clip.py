"""Section 05: the clipped objective against the ratio; a fixed and an adaptive KL penalty."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.greek import BETA, EPSILON
from companion.figures.style import BLUE, INK, KEPT, ORANGE, SHADE, legend_above, panels
from companion.objective import band, clipped_derivative, clipped_objective
from companion.penalty import ITERATIONS, TARGET_KL, penalty_loop, share_on_target
from companion.policy import FloatArray


def _draw_objective(ax: Any, ratio: float, adv: float, clip_range: float, high: float) -> None:
    low_edge, high_edge = band(clip_range, high)
    dead = (high_edge, 2.0) if adv > 0 else (0.0, low_edge)
    kinks = np.array([0.0, low_edge, 1.0, high_edge, 2.0])
    ax.axvspan(*dead, color=SHADE, label="no gradient")
    ax.plot(kinks, kinks * adv, "--", color=ORANGE, label="r A, not clipped")
    objective = clipped_objective(kinks, adv, clip_range, high)
    ax.plot(kinks, objective, color=BLUE, label="clipped")
    ax.plot(1, adv, "s", color=INK, markersize=5, fillstyle="none", label="r = 1, old policy")
    here = clipped_objective(np.array([ratio]), adv, clip_range, high)
    ax.plot(ratio, here, "o", color=INK, markersize=6, clip_on=False)
    ax.set(xlabel="ratio r", xlim=(0, 2), ylabel="objective / |A|")
    ax.set_title("A > 0" if adv > 0 else "A < 0", fontsize=9)


def _slopes(ratio: float, adv: float, clip_range: float, high: float) -> dict[str, float | str]:
    """Return the objective and its derivative, by the rule and by differences."""
    at = np.array([ratio])
    beside = np.array([ratio - 1e-6, ratio + 1e-6]).clip(0)
    difference = np.diff(clipped_objective(beside, adv, clip_range, high)) / np.diff(beside)
    rule = clipped_derivative(at, adv, clip_range, high)
    return {
        f"A = {adv:+.0f}: objective at the marker": clipped_objective(at, adv, clip_range, high)[0],
        f"A = {adv:+.0f}: derivative by the rule": f"{rule[0]:.4g}",
        f"A = {adv:+.0f}: by differences": f"{difference[0]:.4g}",
    }


def draw_clip(ratio: float, clip_range: float, clip_range_high: float) -> Drawing:
    """Draw the clipped objective of one sample against its ratio, for A = 1 and for A = -1.

    Args:
        ratio: the marker, at least 0.
        clip_range, clip_range_high: eps_low and eps_high of the band.
    """
    low, high = band(clip_range, clip_range_high)
    figure, axes = panels(2)
    numbers: dict[str, float | str] = {"band": f"[{low:.2f}, {high:.2f}]"}
    for ax, adv in zip(axes, (1.0, -1.0), strict=True):
        _draw_objective(ax, ratio, adv, clip_range, clip_range_high)
        numbers |= _slopes(ratio, adv, clip_range, clip_range_high)
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    alt = (
        f"Clipped objective against the ratio. A > 0: rises with r up to {high:.2f} and is flat"
        f" beyond. A < 0: flat up to {low:.2f} and falls with r beyond. The flat parts are shaded:"
        f" no gradient. At r = {ratio:.2f} the derivative is"
        f" {numbers['A = +1: derivative by the rule']} for A = 1 and"
        f" {numbers['A = -1: derivative by the rule']} for A = -1."
    )
    return Drawing(figure, numbers, alt)


CLIP = LiveFigure(
    draw_clip,
    {
        "ratio": Slider("r", "ratio, the marker", 1.5, 0.0, 2.0, 0.25),
        "clip_range": Slider(f"{EPSILON} low", "band below 1", 0.2, 0.08, 0.48, 0.04),
        "clip_range_high": Slider(f"{EPSILON} high", "band above 1", 0.2, 0.08, 0.48, 0.04),
    },
)


@lru_cache(KEPT)
def _loop(drift: float, beta: float, adaptive: bool) -> tuple[FloatArray, FloatArray]:
    return penalty_loop(drift, beta, adaptive=adaptive, rng=np.random.default_rng(0))


def _draw_loops(left: Any, right: Any, loops: dict[str, tuple[FloatArray, FloatArray]]) -> None:
    looks = zip(loops.items(), (ORANGE, BLUE), ("--", "-"), strict=True)
    for (kind, (measured, betas)), color, style in looks:
        label = f"{kind} {BETA}"
        left.plot(measured[:, 0], style, color=color, label=label)
        right.plot(betas[:, 0], style, color=color, drawstyle="steps-mid", label=label)
    left.axhline(TARGET_KL, color=INK, linestyle=":", label="target")
    left.axhspan(TARGET_KL / 1.5, 1.5 * TARGET_KL, color=SHADE, label=f"{BETA} left alone")
    left.set(xlabel="iteration", ylabel="mean KL(old, new), nats (log)")
    left.set(yscale="log", ylim=(3e-7, 3))
    right.set(xlabel="iteration", ylabel=f"penalty coefficient {BETA} (log)")
    right.set(yscale="log", ylim=(0.01, 1000))
    legend_above(left)


def draw_penalty(drift: float, start: float) -> Drawing:
    """Draw the KL of each iteration, and its coefficient, for a fixed and for an adaptive beta.

    Args:
        drift: scale of the advantages in the last iteration over that in the first.
        start: first beta over 1 / sqrt(2 target), which is right for advantages of variance 1.
    """
    beta = start / np.sqrt(2 * TARGET_KL)
    loops = {kind: _loop(drift, beta, kind == "adaptive") for kind in ("fixed", "adaptive")}
    figure, (left, right) = panels(2)
    _draw_loops(left, right, loops)
    numbers: dict[str, float | str] = {}
    for kind, (measured, betas) in loops.items():
        numbers |= {
            f"{kind} {BETA}: iterations within a factor 4": f"{share_on_target(measured)[0]:.0%}",
            f"{kind} {BETA}: KL of the last iteration": f"{measured[-1, 0]:.2g}",
            f"{kind} {BETA}: {BETA} of the last iteration": f"{betas[-1, 0]:.3g}",
        }
    within = {kind: f"{share_on_target(measured)[0]:.0%}" for kind, (measured, _) in loops.items()}
    alt = (
        f"Left: KL of each of {ITERATIONS} iterations, with the target {TARGET_KL} and the zone in"
        f" which beta is left alone, while the advantages change their scale by {drift:.3g}; within"
        f" a factor of 4 of the target are {within['fixed']} of the iterations with a fixed beta"
        f" and {within['adaptive']} with an adaptive one. Right: the coefficients."
    )
    return Drawing(figure, numbers, alt)


PENALTY = LiveFigure(
    draw_penalty,
    {
        "drift": Slider("drift", "of the advantages' scale", 100.0, 0.01, 100.0, 0.5, log=True),
        "start": Slider(
            f"first {BETA}", "relative to the right one", 1.0, 0.1, 10.0, 0.5, log=True
        ),
    },
)
