"""Section 05: the clipped objective against the ratio; a fixed and an adaptive KL penalty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.style import BLUE, INK, ORANGE, SHADE, panels
from companion.objective import adapt_beta, band, clipped_derivative, clipped_objective
from companion.policy import FloatArray, check_policy, kl, uniform


def draw_clip(ratio: float, clip_range: float, clip_range_high: float) -> Drawing:
    """Draw the clipped objective of one sample against its ratio, for A = 1 and for A = -1.

    Args:
        ratio: the marker, at least 0.
        clip_range, clip_range_high: eps_low and eps_high of the band.
    """
    low, high = band(clip_range, clip_range_high)
    figure, axes = panels(2)
    numbers: dict[str, float | str] = {"band": f"[{low:.2f}, {high:.2f}]"}
    for ax, adv, dead in zip(axes, (1.0, -1.0), ((high, 2.0), (0.0, low)), strict=True):
        grid = np.array([0.0, low, 1.0, high, 2.0])
        here = clipped_objective(np.array([ratio]), adv, clip_range, clip_range_high)
        slope = clipped_derivative(np.array([ratio]), adv, clip_range, clip_range_high)
        beside = np.array([ratio - 1e-6, ratio + 1e-6]).clip(0)
        ends = clipped_objective(beside, adv, clip_range, clip_range_high)
        ax.axvspan(*dead, color=SHADE, label="no gradient")
        ax.plot(grid, grid * adv, "--", color=ORANGE, label="r A, not clipped")
        objective = clipped_objective(grid, adv, clip_range, clip_range_high)
        ax.plot(grid, objective, color=BLUE, label="clipped")
        ax.plot(1, adv, "s", color=INK, markersize=5, fillstyle="none", label="r = 1, old policy")
        ax.plot(ratio, here, "o", color=INK, markersize=6, clip_on=False)
        ax.set(xlabel="ratio r", xlim=(0, 2), ylabel="objective / |A|")
        ax.set_title("A > 0" if adv > 0 else "A < 0", fontsize=9)
        numbers |= {
            f"A = {adv:+.0f}: objective at the marker": float(here[0]),
            f"A = {adv:+.0f}: derivative by the rule": f"{slope[0]:.4g}",
            f"A = {adv:+.0f}: by differences": f"{np.diff(ends)[0] / np.diff(beside)[0]:.4g}",
        }
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
        "clip_range": Slider("\u03b5 low", "band below 1", 0.2, 0.08, 0.48, 0.04),
        "clip_range_high": Slider("\u03b5 high", "band above 1", 0.2, 0.08, 0.48, 0.04),
    },
)


TARGET_KL = 0.01  # nats; the middle one of the three targets that the PPO paper tries
ITERATIONS = 60


def penalized_policy(old: ArrayLike, adv: ArrayLike, beta: ArrayLike) -> FloatArray:
    """Maximize the penalized objective over all policies, exactly, state by state.

    argmax_pi sum_a pi(a|s) A(s,a) - beta KL(old || pi)(s) = beta old / (x + max_a A - A)

    where x > 0 makes the row sum to 1  (chapter, section 5)

    Args:
        old: (..., S, A) policy, every probability above 0.
        adv: (..., S, A) advantages; a constant added to a row changes nothing.
        beta: penalty coefficient above 0; broadcasts against `adv`.

    Returns:
        (..., S, A) policy.

    Raises:
        ValueError: shapes that do not match, a probability of 0, or beta not above 0.

    >>> penalized_policy([[0.5, 0.5]], [[1.0, -1.0]], 10.0).round(3)
    array([[0.55, 0.45]])
    """
    policy = check_policy(old, name="old")
    behind = validation.finite_array("adv", adv)
    weight = validation.finite_array("beta", beta) * policy
    if behind.shape != policy.shape or not (weight > 0).all():
        raise ValueError(
            "adv must have old's shape, and beta and old's probabilities must be above 0;"
            f" got shapes {behind.shape} and {policy.shape}, smallest beta old {weight.min()}"
        )
    behind = behind.max(axis=-1, keepdims=True) - behind
    # At this x a single action has probability 1 and the row sums to more. The sum is convex and
    # falls in x, so Newton's method goes up from here to the root without passing it.
    x = (weight - behind).max(axis=-1, keepdims=True)
    for _ in range(100):
        new = weight / (x + behind)
        excess = new.sum(axis=-1, keepdims=True) - 1
        if excess.max() < 1e-13:
            break
        x = x + excess / (new / (x + behind)).sum(axis=-1, keepdims=True)
    normalized: FloatArray = new / new.sum(axis=-1, keepdims=True)
    return normalized


def penalty_loop(
    drift: float,
    beta: float,
    *,
    adaptive: bool,
    rng: np.random.Generator,
    runs: int = 1,
    n_states: int = 100,
    n_actions: int = 4,
) -> tuple[FloatArray, FloatArray]:
    """Improve a policy again and again under a KL penalty while the advantages change scale.

    Every iteration moves the action values a little, takes their exact advantages under the present
    policy times a scale that goes from 1 to `drift` geometrically, and maximizes exactly.

    Args:
        drift: scale of the last iteration over that of the first, above 0.
        beta: penalty coefficient, of the first iteration if it is adaptive.
        adaptive: whether the coefficient follows the measured KL.
        rng: the source of the values.
        runs: independent runs.
        n_states, n_actions: shape of each policy.

    Returns:
        Mean KL(old, new) of each iteration, nats, and its coefficient, each (ITERATIONS, runs).
    """
    shape = (runs, n_states, n_actions)
    pi = np.broadcast_to(uniform(n_states, n_actions), shape)
    q = rng.standard_normal(shape)
    betas = np.full((ITERATIONS, runs), beta)
    measured = np.empty((ITERATIONS, runs))
    for k in range(ITERATIONS):
        q = 0.9 * q + np.sqrt(1 - 0.9**2) * rng.standard_normal(shape)
        adv = drift ** (k / (ITERATIONS - 1)) * (q - (pi * q).sum(axis=-1, keepdims=True))
        new = penalized_policy(pi, adv, betas[k][:, None, None])
        measured[k] = kl(pi, new).mean(axis=-1)
        if adaptive and k + 1 < ITERATIONS:
            pairs = zip(betas[k], measured[k], strict=True)
            betas[k + 1] = [adapt_beta(float(b), float(x), TARGET_KL) for b, x in pairs]
        pi = new
    return measured, betas


def share_on_target(measured: FloatArray) -> FloatArray:
    """Return the share of iterations whose KL is within a factor of 4 of the target, per run."""
    share: FloatArray = (np.abs(np.log(measured / TARGET_KL)) <= np.log(4)).mean(axis=0)
    return share


def draw_penalty(drift: float, start: float) -> Drawing:
    """Draw the KL of each iteration, and its coefficient, for a fixed and for an adaptive beta.

    Args:
        drift: scale of the advantages in the last iteration over that in the first.
        start: first beta over 1 / sqrt(2 target), which is right for advantages of variance 1.
    """
    beta = start / np.sqrt(2 * TARGET_KL)
    figure, (left, right) = panels(2)
    numbers: dict[str, float | str] = {}
    for adaptive, color, style in ((False, ORANGE, "--"), (True, BLUE, "-")):
        name = "adaptive beta" if adaptive else "fixed beta"
        rng = np.random.default_rng(0)
        measured, betas = penalty_loop(drift, beta, adaptive=adaptive, rng=rng)
        left.semilogy(measured[:, 0], style, color=color, label=name)
        right.semilogy(betas[:, 0], style, color=color, drawstyle="steps-mid", label=name)
        numbers |= {
            f"{name}: iterations within a factor 4": f"{share_on_target(measured)[0]:.0%}",
            f"{name}: KL of the last iteration": f"{measured[-1, 0]:.2g}",
            f"{name}: beta of the last iteration": f"{betas[-1, 0]:.3g}",
        }
    left.axhline(TARGET_KL, color=INK, linestyle=":", label="target")
    left.axhspan(TARGET_KL / 1.5, 1.5 * TARGET_KL, color=SHADE, label="beta left alone")
    left.set(xlabel="iteration", ylabel="mean KL(old, new), nats (log)")
    right.set(xlabel="iteration", ylabel="penalty coefficient beta (log)")
    left.legend(frameon=False, fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    alt = (
        f"Left: KL of each of {ITERATIONS} iterations, with the target {TARGET_KL} and the zone in"
        f" which beta is left alone, while the advantages change their scale by {drift:.3g}; within"
        f" a factor of 4 of the target are {numbers['fixed beta: iterations within a factor 4']} of"
        " the iterations with a fixed beta and"
        f" {numbers['adaptive beta: iterations within a factor 4']} with an adaptive one. Right:"
        " the coefficients."
    )
    return Drawing(figure, numbers, alt)


PENALTY = LiveFigure(
    draw_penalty,
    {
        "drift": Slider("drift", "of the advantages' scale", 100.0, 0.01, 100.0, 0.5, log=True),
        "start": Slider("\u03b2 start", "over the right one", 1.0, 0.1, 10.0, 0.5, log=True),
    },
)
