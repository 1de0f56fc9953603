"""Section 07: one mirror step, the gap to the optimum, and the regularized linear rate."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from companion.compiled.mirror import comparison
from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.figures.greek import ETA, TAU
from companion.figures.style import BLUE, GREEN, INK, KEPT, ORANGE, SKY, panels
from companion.mdp import TabularMDP, evaluate, random_mdp, solve_values
from companion.mirror import mirror_step, policy_gradient, tabular_fisher
from companion.mirror_example import (
    NEGLIGIBLE,
    gap_as_printed,
    npg_gap_bound,
    poor_start,
    sized_mdp,
)
from companion.policy import FloatArray, greedy, kl, softmax
from companion.regularized import SoftOptimum, late_factor, regularized_run, soft_optimum

OLD = np.array([[0.6, 0.25, 0.1, 0.05]])
Q = np.array([[1.0, 1.4, 1.2, 2.0]])
ETAS = np.geomspace(0.01, 100, 121)


def _draw_probabilities(ax: Any, new: FloatArray) -> None:
    place = np.arange(OLD.size)
    bars = {"old policy": (OLD, SKY, ""), "mirror step": (new, BLUE, "//")}
    bars["greedy"] = (greedy(Q), GREEN, "..")
    for i, (name, (pi, color, hatch)) in enumerate(bars.items()):
        ax.bar(place + 0.27 * (i - 1), pi[0], 0.25, color=color, hatch=hatch, label=name)
    ax.set_xticks(place, [f"a{a}\nq = {Q[0, a]:g}" for a in place])
    ax.set(xlabel="action", ylabel="probability", ylim=(0, 1.05))
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def _draw_gain_and_divergence(ax: Any, eta: float, gain: float, divergence: float) -> None:
    steps = np.concatenate([mirror_step(OLD, Q, x) for x in ETAS])
    ax.semilogx(ETAS, ((steps - OLD) * Q).sum(axis=1), color=BLUE, label="gain in mean q")
    ax.semilogx(ETAS, kl(steps[:, None], OLD)[:, 0], "--", color=ORANGE, label="KL(new, old)")
    ax.plot([eta, eta], [gain, divergence], "o", color=INK, markersize=4)
    ax.set(xlabel=f"step {ETA} (log)", ylabel="reward units; nats")
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def draw_step(eta: float) -> Drawing:
    """Draw one mirror step in one state: the probabilities, and gain and divergence against eta.

    Args:
        eta: step size, above 0.
    """
    new = mirror_step(OLD, Q, eta)
    gain, divergence = float(((new - OLD) * Q).sum()), kl(new, OLD).item()
    figure, (left, right) = panels(2)
    _draw_probabilities(left, new)
    _draw_gain_and_divergence(right, eta, gain, divergence)
    numbers = {
        "largest |new - old|": float(np.abs(new - OLD).max()),
        "largest |new - greedy|": float(np.abs(new - greedy(Q)).max()),
        "gain in mean q": gain,
        "KL(new, old), nats": divergence,
        f"{ETA} gain - KL, never negative": eta * gain - divergence,
    }
    alt = (
        f"Left: probabilities of four actions before and after a mirror step of {eta:.3g}, and of"
        f" the greedy policy; the best action goes from 0.05 to {new[0, 3]:.3g}. Right: the gain in"
        f" mean action value, here {gain:.3g}, and the divergence, here {divergence:.3g} nats, rise"
        " from 0 with the step and level off at those of the greedy policy."
    )
    return Drawing(figure, numbers, alt)


STEP = LiveFigure(draw_step, {"eta": Slider(ETA, "mirror step", 1.0, 0.01, 100.0, 0.125, log=True)})


ITERATIONS = 1000
SHOWN = np.unique(np.geomspace(1, ITERATIONS, 90).round().astype(int))
LOOKS: dict[str, dict[str, Any]] = {
    "policy gradient": {"color": ORANGE, "linestyle": "--"},
    "natural PG": {"color": BLUE},
    "policy iteration": {"color": GREEN, "marker": "o", "markersize": 3, "markevery": 4},
}


@cache
def example() -> TabularMDP:
    """Return the chapter's random MDP."""
    return random_mdp(rng=np.random.default_rng(0))


@lru_cache(KEPT)
def poor_logits(logit: float) -> FloatArray:
    """Return the logits of the poor start, whose worst action has this one."""
    return poor_start(example(), logit)


@lru_cache(KEPT)
def natural_directions(logit: float) -> FloatArray:
    """Return F^+ times the gradient at a poor start, solved with the dense Fisher matrix."""
    mdp, pi = example(), softmax(poor_logits(logit))
    gradient = policy_gradient(mdp, pi, solve_values(mdp, pi))
    solved: FloatArray = np.linalg.lstsq(tabular_fisher(mdp, pi), gradient.ravel())[0]
    return solved.reshape(mdp.shape)


def step_residual(logit: float, eta: float) -> float:
    """Return the largest difference in probability of the first natural and mirror step."""
    mdp, logits = example(), poor_logits(logit)
    natural = softmax(logits + eta * natural_directions(logit))
    pi = softmax(logits)
    mirror = mirror_step(pi, evaluate(mdp, pi).q, eta / (1 - mdp.gamma))
    return float(np.abs(natural - mirror).max())


def _draw_start(ax: Any, start: str, gaps: dict[str, FloatArray], bound: FloatArray | None) -> None:
    for name, look in LOOKS.items():
        ax.loglog(SHOWN, np.maximum(gaps[name][SHOWN], NEGLIGIBLE), label=name, **look)
        if name == "natural PG" and bound is not None:
            ax.loglog(SHOWN, bound[SHOWN], ":", color=INK, label="bound, natural PG")
    ax.set(xlabel="updates k (log)", ylim=(NEGLIGIBLE / 3, 200))
    ax.set_title(f"{start} start", fontsize=9)


def draw_gaps(eta: float, logit: float, steps: str) -> Drawing:
    """Draw the gap to the optimum against the number of updates, from both starts.

    Args:
        eta: step size of both gradients, above 0.
        logit: of the worst action in the poor start, at least 0; all others have 0.
        steps: "constant", or "growing" by the factor 1/gamma after each update.
    """
    mdp = example()
    growth = 1.0 if steps == "constant" else 1 / mdp.gamma
    runs = comparison(mdp, (eta,), (eta,), ITERATIONS, growth, logit)
    figure, axes = panels(2, sharey=True)
    numbers: dict[str, float | str] = {}
    for ax, start, at in zip(axes, ("uniform", "poor"), (0.0, logit), strict=True):
        gaps = {run.split(",")[0]: gap for (run, s), gap in runs.items() if s == start}
        bound = npg_gap_bound(mdp, poor_logits(at), eta, ITERATIONS) if growth == 1 else None
        _draw_start(ax, start, gaps, bound)
        for name in LOOKS:
            shown = "  ".join(gap_as_printed(gaps[name][k]) for k in (1, 10, 100, 1000))
            numbers[f"{name}, {start}: gap at k = 1, 10, 100, 1000"] = shown
            if name == "natural PG" and bound is not None:
                numbers[f"{name}, {start}: largest gap / bound"] = float((gaps[name] / bound).max())
        numbers[f"{start}: |natural step - mirror step|"] = step_residual(at, eta)
    axes[0].set_ylabel("gap J* - J (reward units, log)")
    axes[0].legend(frameon=False, fontsize=8, loc="lower left")
    k100 = {key: gap_as_printed(gap[100]) for key, gap in runs.items()}
    alt = (
        "Gap to the optimal return against the number of updates, both logarithmic, from a uniform"
        f" and from a poor start (logit {logit:.3g} on the worst action), {steps} steps from"
        f" eta = {eta:.3g}. After 100 updates: "
        + ", ".join(f"{run} from the {start} start {gap}" for (run, start), gap in k100.items())
        + "."
    )
    return Drawing(figure, numbers, alt)


GAPS = LiveFigure(
    draw_gaps,
    {
        "eta": Slider(ETA, "step of both gradients", 1.0, 0.01, 100.0, 0.25, log=True),
        "logit": Slider("logit", "of the worst action, poor start", 8.0, 0.0, 12.0, 4.0),
        "steps": Choice("steps", "size over time", "constant", ("constant", "growing")),
    },
)


SIZES = (5, 20, 80)
SOFT_ITERATIONS = 120


@cache
def sized(n_states: int) -> TabularMDP:
    """Return one MDP of each size."""
    return sized_mdp(n_states, rng=np.random.default_rng(n_states))


@lru_cache(KEPT)
def soft_optima(tau: float) -> tuple[SoftOptimum, ...]:
    """Return the soft optimum of each of the sized MDPs."""
    return tuple(soft_optimum(sized(n), tau) for n in SIZES)


def draw_regularized(tau: float, keep: float) -> Drawing:
    """Draw the distance to the soft optimal policy against updates, at several state counts.

    Args:
        tau: temperature, above 0, in reward units.
        keep: 1 - eta tau, the power of the old policy in the step, in [0, 1).
    """
    figure, ax = panels(1)
    numbers: dict[str, float | str] = {f"predicted factor 1 - {ETA}{TAU}": keep or 0}
    updates = np.arange(SOFT_ITERATIONS + 1)
    lines = zip(SIZES, soft_optima(tau), (ORANGE, BLUE, GREEN), "osv", strict=True)
    for i, (n, optimum, color, marker) in enumerate(lines):
        logits = np.zeros(sized(n).shape)
        run = regularized_run(sized(n), logits, tau, (1 - keep) / tau, SOFT_ITERATIONS)
        error = np.abs(run.logp - optimum.logp).max(axis=(1, 2))
        shown = error > NEGLIGIBLE * 100
        look = {"color": color, "marker": marker, "markersize": 4, "markevery": (2 * i, 6)}
        ax.semilogy(updates[shown], error[shown], label=f"{n} states", **look)
        factor = late_factor(error)
        late = factor if np.isfinite(factor) else "too few updates"
        numbers[f"{n} states: measured factor, late"] = late
    first = np.abs(optimum.logp - np.log(1 / 4)).max()
    ax.semilogy(
        updates, np.maximum(first * keep**updates, NEGLIGIBLE), ":", color=INK, label="predicted"
    )
    ax.set(xlabel="updates k", ylabel="largest error of log p (nats, log)", ylim=(1e-11, 1e4))
    ax.legend(frameon=False, fontsize=8)
    measured = ", ".join(f"{x:.3g}" for x in list(numbers.values())[1:] if isinstance(x, float))
    late = f"straight parallel lines; late factors per update {measured}, predicted {keep:.3g}"
    alt = (
        "Largest error of the log-probabilities against the number of updates, logarithmic, for 5,"
        f" 20 and 80 states at temperature {tau:.3g}:"
        f" {late if measured else 'curves that end in a few updates'}."
    )
    return Drawing(figure, numbers, alt)


REGULARIZED = LiveFigure(
    draw_regularized,
    {
        "tau": Slider(TAU, "temperature (reward units)", 0.1, 0.01, 1.0, 0.25, log=True),
        "keep": Slider(f"1 - {ETA}{TAU}", "power of the old policy", 0.7, 0.0, 0.9, 0.05),
    },
)
