"""Exercise 20.2: the surrogate agrees with the return to first order, and errs at second."""

from __future__ import annotations

import numpy as np

from companion.exercises import cases, exact
from companion.exercises.exact import contributions, expected_return
from companion.exercises.part import Misconception, Part
from companion.exercises.surrogates import (
    along_line,
    along_logits,
    ratio_estimate,
    return_change,
    sampled_gain,
    slope_and_error,
    surrogate_gradient,
)
from companion.policy import softmax

PARTS = (
    Part(
        id="20-2-a",
        points=2,
        title="The surrogate",
        kind="function",
        name="surrogate",
        cases=cases.two_policies,
        reference=exact.surrogate,
        misconceptions=(
            Misconception(
                "the old policy's return is left out",
                "What is left is the gain that the surrogate promises; the surrogate itself"
                " approximates a return.",
                lambda old, new, **w: exact.surrogate(old, new, **w) - expected_return(pi=old, **w),
            ),
            Misconception(
                "the states are weighted by the new policy's visitation",
                "That is the lemma, and so the new policy's return. Which visitation do the old"
                " data give?",
                lambda old, new, **w: expected_return(pi=new, **w),
            ),
            Misconception(
                "the visitation is normalized to sum 1",
                "rho is no distribution: its mass is gamma^0 + gamma^1 + ...",
                lambda old, new, **w: (
                    w["gamma"] * expected_return(pi=old, **w)
                    + (1 - w["gamma"]) * exact.surrogate(old, new, **w)
                ),
            ),
            Misconception(
                "the advantages are averaged over the old policy's actions",
                "What is the mean of a policy's advantages under its own actions?",
                lambda old, new, **w: expected_return(pi=old, **w),
            ),
            Misconception(
                "the ratio is summed without the old policy's probabilities",
                "The ratio makes up for samples that the old policy took; a sum over all actions"
                " needs their weights, or no ratio.",
                lambda old, new, **w: exact.surrogate(old, new / old, **w),
            ),
            Misconception(
                "the advantages are the new policy's",
                "The surrogate needs nothing of the new policy but its probabilities.",
                lambda old, new, **w: (
                    expected_return(pi=old, **w)
                    + contributions(states=old, actions=old, compared=new, **w).sum()
                ),
            ),
        ),
    ),
    Part(
        id="20-2-b",
        points=2,
        title="The surrogate's gain from samples",
        kind="function",
        name="sampled_gain",
        cases=cases.samples,
        reference=ratio_estimate,
        misconceptions=(
            Misconception(
                "the factor 1/(1 - gamma) is missing",
                "Samples come from the normalized visitation, the gain is a sum over the other.",
                lambda **c: (1 - c["gamma"]) * ratio_estimate(**c),
            ),
            Misconception(
                "the ratio is upside down",
                "An action that the new policy takes more often must weigh more.",
                sampled_gain(lambda new, old: old / new),
            ),
            Misconception(
                "the samples are not weighted by the ratio",
                "Without it the mean estimates what the old policy gains over itself.",
                sampled_gain(lambda new, old: np.ones_like(new)),
            ),
            Misconception(
                "the new policy's probability stands in place of the ratio",
                "The sampled actions already occur as often as the old policy takes them.",
                sampled_gain(lambda new, old: new),
            ),
            Misconception(
                "the logarithm of the ratio stands in place of the ratio",
                "It has the same gradient at the old policy, and another value everywhere.",
                sampled_gain(lambda new, old: np.log(new / old)),
            ),
            Misconception(
                "the standard deviation is the biased one",
                "The mean was estimated from the same samples: which number divides the squares?",
                sampled_gain(np.divide, ddof=0),
            ),
            Misconception(
                "the standard deviation of one sample, not of the mean",
                "The mean of many samples scatters less than one of them.",
                sampled_gain(np.divide, root=0.0),
            ),
            Misconception(
                "the standard error falls with the number of samples, not with its root",
                "Variances of independent samples add up, standard deviations do not.",
                sampled_gain(np.divide, root=1.0),
            ),
        ),
    ),
    Part(
        id="20-2-c",
        points=3,
        title="The surrogate's gradient",
        kind="function",
        name="surrogate_gradient",
        cases=cases.logits,
        reference=surrogate_gradient,
        misconceptions=(
            Misconception(
                "the mean under the new policy is not subtracted",
                "It vanishes at the old policy, not elsewhere: a logit that rises lowers the"
                " probabilities of all other actions.",
                lambda rho, adv, logits: rho[:, None] * softmax(logits) * adv,
            ),
            Misconception(
                "the mean is taken over the actions without the policy",
                "Differentiate the softmax: with which weights do the other actions enter?",
                lambda rho, adv, logits: (
                    rho[:, None] * softmax(logits) * (adv - adv.mean(axis=1, keepdims=True))
                ),
            ),
            Misconception(
                "only the diagonal of the softmax's derivative is used",
                "A logit changes the probability of every action in its state.",
                lambda rho, adv, logits: (
                    rho[:, None] * softmax(logits) * (1 - softmax(logits)) * adv
                ),
            ),
            Misconception(
                "the derivative is with respect to the probabilities",
                "The parameters are the logits: the chain rule has one more factor.",
                lambda rho, adv, logits: rho[:, None] * adv,
            ),
            Misconception(
                "the states are not weighted",
                "A state counts in proportion to how often the old policy visits it.",
                lambda rho, adv, logits: surrogate_gradient(np.ones_like(rho), adv, logits),
            ),
            Misconception(
                "the visitation is normalized to sum 1",
                "Take rho as it is given.",
                lambda rho, adv, logits: surrogate_gradient(rho / rho.sum(), adv, logits),
            ),
            Misconception(
                "the sign is that of a loss",
                "The surrogate is maximized, its gradient leads upwards.",
                lambda **c: -surrogate_gradient(**c),
            ),
        ),
    ),
    Part(
        id="20-2-d",
        points=2,
        title="The surrogate's error along a line",
        kind="function",
        name="surrogate_error",
        cases=cases.lines,
        reference=along_line,
        misconceptions=(
            Misconception(
                "the sign is reversed",
                "The error of an approximation is the approximation minus the truth.",
                lambda **c: -along_line(**c),
            ),
            Misconception(
                "the weights of the two policies are interchanged",
                "At alpha = 0 the policy is the old one, and the error 0.",
                lambda alphas, **c: along_line(alphas=1 - alphas, **c),
            ),
            Misconception(
                "the old policy's return is missing in the surrogate",
                "Surrogate and return must be equal at alpha = 0.",
                lambda old, **c: (
                    along_line(old, **c) - expected_return(c["P"], c["r"], c["gamma"], c["mu"], old)
                ),
            ),
            Misconception(
                "the surrogate is taken at the mixed policy, not at the old one",
                "Its visitation and advantages stay those of the old policy all along the line.",
                lambda old, new, alphas, **w: np.zeros(len(alphas)),
            ),
            Misconception(
                "logits are mixed instead of probabilities",
                "The line is that of conservative policy iteration: probabilities are averaged.",
                along_logits,
            ),
            Misconception(
                "the surrogate promises nothing",
                "Its gain is averaged over the mixed policy's actions, not over the old one's.",
                return_change,
            ),
        ),
    ),
    Part(
        id="20-2-e",
        points=2,
        title="The order of the error",
        kind="numbers",
        name="slope_and_error",
        cases=cases.own_line,
        reference=slope_and_error(),
        misconceptions=(
            Misconception(
                "the line is fitted without logarithms",
                "A power becomes a straight line when both axes are logarithmic.",
                slope_and_error(lambda x, error: np.polyfit(x, np.abs(error), 1)[0]),
            ),
            Misconception(
                "only the error is logarithmic",
                "A power becomes a straight line when both axes are logarithmic.",
                slope_and_error(lambda x, error: np.polyfit(x, np.log(np.abs(error)), 1)[0]),
            ),
            Misconception(
                "the intercept stands in place of the slope",
                "numpy.polyfit gives the highest power first.",
                slope_and_error(
                    lambda x, error: np.polyfit(np.log(x), np.log(np.abs(error)), 1)[1]
                ),
            ),
            Misconception(
                "the axes are interchanged",
                "The slope says how the error changes with alpha.",
                slope_and_error(
                    lambda x, error: np.polyfit(np.log(np.abs(error)), np.log(x), 1)[0]
                ),
            ),
            Misconception(
                "the surrogate's gain is left out of the error",
                "What is left is J(old) - J, which is of first order.",
                slope_and_error(error=return_change),
            ),
            Misconception(
                "the sign of the error is reversed",
                "The error of an approximation is the approximation minus the truth.",
                slope_and_error(error=lambda **c: -along_line(**c)),
            ),
        ),
    ),
)
