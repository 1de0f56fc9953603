"""Exercise 20.4: TRPO's step by Fisher-vector products, conjugate gradient and line search."""

from __future__ import annotations

import numpy as np

from companion.exercises import cases
from companion.exercises.part import Misconception, Part
from companion.exercises.softmax_linear import (
    assembled,
    conjugate_gradient,
    diagonal,
    first_fraction,
    fisher_vector_product,
    gain_and_kl,
    line_search,
    taken,
    trpo_numbers,
)
from companion.policy import kl, softmax

PARTS = (
    Part(
        id="20-4-a",
        points=3,
        title="Fisher-vector product",
        kind="function",
        name="fisher_vector_product",
        cases=cases.products,
        reference=fisher_vector_product,
        misconceptions=(
            Misconception(
                "the damping is left out",
                "The product is with F + damping I.",
                lambda damping, **c: fisher_vector_product(damping=0, **c),
            ),
            Misconception(
                "the damping is added twice",
                "Is it added in the mean over states, and again at the end?",
                lambda damping, **c: fisher_vector_product(damping=2 * damping, **c),
            ),
            Misconception(
                "the damping multiplies F instead of the identity",
                "What must a direction get that F maps to zero?",
                lambda damping, **c: (1 + damping) * fisher_vector_product(damping=0, **c),
            ),
            Misconception(
                "the mean of the logits' change is not subtracted",
                "The middle matrix is diag(p) - p p^T, and the second term is missing.",
                lambda features, p, v, damping: assembled(features, diagonal(p)) @ v + damping * v,
            ),
            Misconception(
                "the mean of the logits' change is taken without the policy",
                "In p p^T the change of each logit is weighted by its action's probability.",
                lambda features, p, v, damping: (
                    assembled(features, diagonal(p) - p[:, :, None] / p.shape[1]) @ v + damping * v
                ),
            ),
            Misconception(
                "the sum over states instead of the mean",
                "F is the Hessian of the mean KL.",
                lambda features, p, v, damping: (
                    len(p) * fisher_vector_product(features, p, v, 0) + damping * v
                ),
            ),
            Misconception(
                "the vector is reshaped in another order",
                "v is ordered like W.ravel(): it reshapes to one row a feature.",
                lambda features, p, v, damping: (
                    fisher_vector_product(features, p, v.reshape(p.shape[1], -1).T.ravel(), 0)
                    .reshape(-1, p.shape[1])
                    .T.ravel()
                    + damping * v
                ),
            ),
        ),
    ),
    Part(
        id="20-4-b",
        points=3,
        title="Conjugate gradient",
        kind="function",
        name="conjugate_gradient",
        cases=cases.linear_systems,
        reference=lambda **c: conjugate_gradient(**c)[0],
        misconceptions=(
            Misconception(
                "steepest descent: each search follows the residual",
                "The next search direction keeps a part of the last one, to be conjugate to it.",
                lambda **c: conjugate_gradient(coefficient=lambda new, old: 0, **c)[0],
            ),
            Misconception(
                "the coefficient of the old search direction is upside down",
                "Near the solution the residual shrinks: should the coefficient be large or small?",
                lambda **c: conjugate_gradient(coefficient=lambda new, old: old / new, **c)[0],
            ),
            Misconception(
                "the coefficient of the old search direction is the ratio of norms",
                "It is the ratio of the squared norms: check that p^T A p' is zero.",
                lambda **c: conjugate_gradient(
                    coefficient=lambda new, old: np.sqrt(new / old), **c
                )[0],
            ),
            Misconception(
                "one iteration too few",
                "The first iteration already moves x along b.",
                lambda A, b, iterations: conjugate_gradient(A, b, iterations - 1)[0],
            ),
            Misconception(
                "the exact solution, not the iterate asked for",
                "With fewer iterations than unknowns the two differ: return x after as many.",
                lambda A, b, iterations: np.linalg.solve(A, b),
            ),
            Misconception(
                "the residual is returned",
                "The solution is what the steps add up to.",
                lambda **c: conjugate_gradient(**c)[1],
            ),
            Misconception(
                "the rate is computed with the residual's curvature",
                "The minimum is sought along the search direction.",
                lambda **c: conjugate_gradient(own_rate=False, **c)[0],
            ),
        ),
    ),
    Part(
        id="20-4-c",
        points=2,
        title="Gain and KL of a move",
        kind="function",
        name="gain_and_kl",
        cases=cases.moves,
        reference=gain_and_kl,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                "The batch was collected by the old policy, and the mean is under its actions.",
                lambda features, W, new_W, actions, adv: [
                    gain_and_kl(features, W, new_W, actions, adv)[0],
                    kl(softmax(features @ new_W), softmax(features @ W)).mean(),
                ],
            ),
            Misconception(
                "the largest KL instead of the mean",
                "That is the constraint of the theory; TRPO's is on the mean over the states.",
                lambda features, W, new_W, actions, adv: [
                    gain_and_kl(features, W, new_W, actions, adv)[0],
                    kl(softmax(features @ W), softmax(features @ new_W)).max(),
                ],
            ),
            Misconception(
                "the KL is estimated from the actions taken",
                "All probabilities are known: sum over the actions.",
                lambda features, W, new_W, actions, adv: [
                    gain_and_kl(features, W, new_W, actions, adv)[0],
                    np.log(
                        taken(softmax(features @ W), actions)
                        / taken(softmax(features @ new_W), actions)
                    ).mean(),
                ],
            ),
            Misconception(
                "the ratio is upside down",
                "An action that the new policy takes more often must weigh more.",
                lambda features, W, new_W, actions, adv: [
                    gain_and_kl(features, new_W, W, actions, adv)[0],
                    gain_and_kl(features, W, new_W, actions, adv)[1],
                ],
            ),
            Misconception(
                "the old policy's surrogate is not subtracted",
                "At the old policy all ratios are 1, and the gain is 0.",
                lambda features, W, new_W, actions, adv: (
                    gain_and_kl(features, W, new_W, actions, adv) + [adv.mean(), 0]
                ),
            ),
            Misconception(
                "the logarithm of the ratio stands in place of the ratio",
                "It has the same gradient at the old policy, and another value everywhere.",
                lambda features, W, new_W, actions, adv: [
                    (
                        np.log(
                            taken(softmax(features @ new_W), actions)
                            / taken(softmax(features @ W), actions)
                        )
                        * adv
                    ).mean(),
                    gain_and_kl(features, W, new_W, actions, adv)[1],
                ],
            ),
            Misconception(
                "sums over the batch instead of means",
                "Both are averages over the batch.",
                lambda **c: len(c["adv"]) * gain_and_kl(**c),
            ),
        ),
    ),
    Part(
        id="20-4-d",
        points=2,
        title="Line search",
        kind="function",
        name="line_search",
        cases=cases.searches,
        reference=line_search,
        misconceptions=(
            Misconception(
                "a worse surrogate is accepted",
                "A small KL alone is no progress.",
                lambda gains, kls, delta: first_fraction(kls <= delta),
            ),
            Misconception(
                "a step outside the trust region is accepted",
                "A better surrogate says little about the return when the policy has moved far.",
                lambda gains, kls, delta: first_fraction(gains > 0),
            ),
            Misconception(
                "one of the two conditions is enough",
                "Both must hold at the same fraction.",
                lambda gains, kls, delta: first_fraction((kls <= delta) | (gains > 0)),
            ),
            Misconception(
                "the full step is taken when nothing passes",
                "Which parameters are safe then?",
                lambda gains, kls, delta: first_fraction((kls <= delta) & (gains > 0), 1.0),
            ),
            Misconception(
                "the smallest step is taken when nothing passes",
                "It did not pass either: which parameters are safe then?",
                lambda gains, kls, delta: first_fraction(
                    (kls <= delta) & (gains > 0), 0.5 ** (len(gains) - 1)
                ),
            ),
            Misconception(
                "the largest gain is taken, not the first fraction that passes",
                "A search stops where it first succeeds, and measures nothing beyond.",
                lambda gains, kls, delta: first_fraction(
                    (gains == np.where(kls <= delta, gains, 0).max()) & (gains > 0)
                ),
            ),
            Misconception(
                "a step that gains nothing is accepted",
                "The surrogate must have improved.",
                lambda gains, kls, delta: first_fraction((kls <= delta) & (gains >= 0)),
            ),
            Misconception(
                "a KL of exactly delta is refused",
                "The region is mean KL <= delta, its edge included.",
                lambda gains, kls, delta: first_fraction((kls < delta) & (gains > 0)),
            ),
            Misconception(
                "the number of halvings instead of the fraction",
                "After k halvings a fraction 2^-k of the step is left.",
                lambda gains, kls, delta: (
                    -np.log2(line_search(gains, kls, delta))
                    if line_search(gains, kls, delta)
                    else 0.0
                ),
            ),
        ),
    ),
    Part(
        id="20-4-e",
        points=4,
        title="The step on your batch",
        kind="numbers",
        name="numbers",
        cases=cases.own_batch,
        reference=trpo_numbers,
        misconceptions=(
            Misconception(
                "the damping is left out",
                "Solver and lengths use F + damping I; only the model KL does without.",
                lambda damping, **c: trpo_numbers(damping=0, **c),
            ),
            Misconception(
                "the model KL includes the damping",
                "The step was sized with the damped matrix, so that this is delta by construction."
                " The fourth number is the KL that F alone predicts.",
                lambda **c: trpo_numbers(model_damped=True, **c),
            ),
            Misconception(
                "a factor 2 is missing in the length of the steps",
                "The quadratic KL is half of d^T F d: solve for the length again.",
                lambda **c: trpo_numbers(size=np.sqrt(0.5), **c),
            ),
            Misconception(
                "the gradient step is scaled without the damping",
                "The two are compared at the same quadratic KL, that of F + damping I.",
                lambda **c: trpo_numbers(gradient_damped=False, **c),
            ),
            Misconception(
                "the iterations are counted from 0",
                "The question is after how many iterations the residual is small enough.",
                lambda **c: trpo_numbers(counted_from=0, **c),
            ),
            Misconception(
                "the largest KL instead of the mean",
                "TRPO's constraint is on the mean over the states.",
                lambda **c: trpo_numbers(overall=np.max, **c),
            ),
        ),
    ),
)
