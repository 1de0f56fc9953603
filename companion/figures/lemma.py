"""Section 02: the return and its surrogate along a line of policies."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.figures.greek import ALPHA
from companion.figures.style import BLUE, GREEN, INK, ORANGE, legend_above, panels
from companion.improvement import performance_difference, surrogate, surrogate_gain
from companion.mdp import TabularMDP, chain, evaluate, expected_return, random_mdp, two_state_trap
from companion.mirror_example import NEGLIGIBLE
from companion.policy import FloatArray, greedy, mixture, random_policy, uniform
from companion.sampling import effective_sample_share, trajectories

LINE = np.linspace(0, 1, 101)


@cache
def line(example: str) -> tuple[TabularMDP, FloatArray, FloatArray]:
    """Return the MDP of an example, the policy that its line starts from, and the one at its end.

    Raises:
        ValueError: example is none of trap, chain, random.
    """
    if example == "trap":
        careful = np.full((2, 2), [0.95, 0.05])
        return two_state_trap(), careful, 1 - careful
    if example not in ("chain", "random"):
        raise ValueError(f"example must be trap, chain or random; got {example!r}")
    mdp = chain() if example == "chain" else random_mdp(rng=np.random.default_rng(0))
    start = uniform(*mdp.shape)
    return mdp, start, greedy(evaluate(mdp, start).q)


def _draw_returns(ax: Any, example: str, alpha: float, gain: float, promised: float) -> None:
    mdp, old, new = line(example)
    policies = mixture(old, new, LINE)
    J = expected_return(mdp, policies)
    ax.plot(LINE, J, color=BLUE, label="return J")
    L = surrogate(mdp, old, policies)
    ax.plot(LINE, L, color=ORANGE, linestyle="--", label="surrogate L")
    ax.plot([alpha, alpha], [J[0] + gain, J[0] + promised], "o-", color=INK, markersize=4)
    ax.set(xlabel=f"distance {ALPHA} to the other policy", ylabel="return (reward units)")
    legend_above(ax)


def _draw_error(ax: Any, example: str, alpha: float, error_here: float) -> None:
    mdp, old, new = line(example)
    steps = np.geomspace(1e-3, 1, 61)
    along = mixture(old, new, steps)
    error = np.abs(surrogate(mdp, old, along) - expected_return(mdp, along))
    ax.plot(steps, error, color=BLUE, label="|L - J|")
    ax.plot(steps, error[0] * (steps / steps[0]) ** 2, ":", color=INK, label="slope 2")
    if alpha >= steps[0]:
        ax.plot(alpha, error_here, "o", color=INK, markersize=4)
    ax.set(xlabel=f"distance {ALPHA} (log)", ylabel="error of the surrogate (log)")
    ax.set(xscale="log", yscale="log")
    legend_above(ax)


def draw_line(alpha: float, example: str) -> Drawing:
    """Draw J and L along the line to another policy, and their difference on logarithmic axes.

    Args:
        alpha: distance along the line, in [0, 1]; the marker.
        example: trap, chain or random.
    """
    mdp, old, new = line(example)
    here = mixture(old, new, alpha)
    sides = performance_difference(mdp, old, here)
    gain, promised = float(sides.gain), float(surrogate_gain(mdp, old, here))
    figure, (left, right) = panels(2)
    _draw_returns(left, example, alpha, gain, promised)
    _draw_error(right, example, alpha, abs(promised - gain))
    numbers = {
        "J(new) - J(old)": gain,
        "lemma's right side": float(sides.advantage_sum),
        "residual of the lemma": float(sides.residual),
        "surrogate's promise L - J(old)": promised,
        "error L - J(new)": promised - gain,
    }
    promise, gained = (0.0 if abs(x) <= NEGLIGIBLE else x for x in (promised, gain))
    alt = (
        f"Left: return and surrogate against the distance to another policy in the {example} MDP;"
        f" at alpha = {alpha:.3g} the surrogate promises a gain of {promise:.3g} and the return"
        f" gains {gained:.3g}. Right: their difference grows with the square of the distance."
    )
    return Drawing(figure, numbers, alt)


LEMMA = LiveFigure(
    draw_line,
    {
        "alpha": Slider(ALPHA, "distance along the line", 0.5, 0.0, 1.0, 0.05),
        "example": Choice("MDP", "example", "trap", ("trap", "chain", "random")),
    },
)


HORIZONS = (1, 2, 3, 5, 10, 20, 30, 50, 100)


@cache
def _log_ratio_data() -> tuple[FloatArray, FloatArray]:
    """Return old and new probabilities of the actions of 1,000 episodes of the uniform policy."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng=rng)
    old, new = uniform(*mdp.shape), random_policy(*mdp.shape, rng=rng)
    states, actions = trajectories(mdp, old, 1000, HORIZONS[-1], rng=rng)
    return old[states, actions], new[states, actions]


def draw_effective_sample(alpha: float) -> Drawing:
    """Draw the effective sample size of three kinds of weights against the horizon.

    Args:
        alpha: distance of the new policy from the uniform one that drew the data, in [0, 1].
    """
    old, new = _log_ratio_data()
    log_ratio = np.log((1 - alpha) + alpha * new / old)
    total = log_ratio.cumsum(axis=1)
    kinds = {
        "product of ratios": [effective_sample_share(np.exp(total[:, T - 1])) for T in HORIZONS],
        "one ratio per step": [effective_sample_share(np.exp(log_ratio[:, :T])) for T in HORIZONS],
        "geometric mean": [effective_sample_share(np.exp(total[:, T - 1] / T)) for T in HORIZONS],
    }
    figure, ax = panels(1)
    for (name, share), color, marker in zip(
        kinds.items(), (ORANGE, BLUE, GREEN), "osv", strict=True
    ):
        ax.plot(HORIZONS, share, color=color, marker=marker, markersize=4, label=name)
    ax.set(xlabel="horizon (steps, log)", ylabel="effective share of the sample (log)")
    ax.set(xscale="log", yscale="log", ylim=(8e-4, 1.3))
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    numbers = {
        f"{name}, {T} steps": share[HORIZONS.index(T)]
        for T in (10, 100)
        for name, share in kinds.items()
    }
    alt = (
        "Effective share of 1,000 episodes against the horizon, both logarithmic, at distance"
        f" {alpha:.3g}: at 100 steps {kinds['product of ratios'][-1]:.2g} for the product of"
        f" ratios, {kinds['one ratio per step'][-1]:.2g} for one ratio per step and"
        f" {kinds['geometric mean'][-1]:.2g} for the geometric mean."
    )
    return Drawing(figure, numbers, alt)


EFFECTIVE_SAMPLE = LiveFigure(
    draw_effective_sample,
    {"alpha": Slider(ALPHA, "distance of the new policy", 0.3, 0.05, 1.0, 0.05)},
)
