"""The companion's own functions as answers: the references are not the only way to compute."""

import numpy as np
import torch
from torch import nn

from companion.conjugate_gradient import conjugate_gradient
from companion.fisher import fisher_matrix, fisher_vector_product
from companion.improvement import performance_difference, surrogate
from companion.mdp import TabularMDP, evaluate, expected_return
from companion.policy import mixture
from companion.trust_region import line_search, natural_step
from companion.trust_region import local_surrogate as sampled_surrogate
from tests.zoo import right

STYLE = "the companion's function"


@right("20-1-a", STYLE)
def _(P, gamma, mu, pi):
    return evaluate(TabularMDP(P, np.zeros(P.shape[:2]), gamma, mu), pi).rho


@right("20-1-b", STYLE)
def _(P, r, gamma, pi):
    return evaluate(TabularMDP(P, r, gamma, np.eye(len(r))[0]), pi).adv


@right("20-1-c", STYLE)
def _(P, r, gamma, mu, old, new):
    return list(performance_difference(TabularMDP(P, r, gamma, mu), old, new))


@right("20-2-a", STYLE)
def _(P, r, gamma, mu, old, new):
    return surrogate(TabularMDP(P, r, gamma, mu), old, new)


@right("20-2-d", STYLE)
def _(P, r, gamma, mu, old, new, alphas):
    mdp, mixed = TabularMDP(P, r, gamma, mu), mixture(old, new, alphas)
    return surrogate(mdp, old, mixed) - expected_return(mdp, mixed)


class SoftmaxLinear(nn.Module):
    """Logits phi @ W plus what else an observation holds: its logits at W = 0."""

    def __init__(self, W):
        super().__init__()
        self.W = nn.Parameter(torch.tensor(W))

    def forward(self, obs):
        d = self.W.shape[0]
        return obs[:, :d] @ self.W + obs[:, d:]


def policy_and_observations(features, p):
    W = np.zeros((features.shape[1], p.shape[1]))
    return SoftmaxLinear(W), torch.tensor(np.hstack([features, np.log(p)]))


@right("20-3-b", STYLE)
def _(features, p):
    return fisher_matrix(*policy_and_observations(features, p))


@right("20-3-c", STYLE)
def _(F, g, delta):
    return natural_step(np.linalg.solve(F, g), g @ np.linalg.solve(F, g), delta)


@right("20-4-a", STYLE)
def _(features, p, v, damping):
    return fisher_vector_product(*policy_and_observations(features, p), damping)(torch.tensor(v))


@right("20-4-b", STYLE)
def _(A, b, iterations):
    return conjugate_gradient(lambda v: A @ v, b, iterations)


@right("20-4-c", STYLE)
def _(features, W, new_W, actions, adv):
    obs = torch.tensor(np.hstack([features, np.zeros((len(adv), W.shape[1]))]))
    batch = obs, torch.tensor(actions), torch.tensor(adv)
    return sampled_surrogate(SoftmaxLinear(W), *batch).evaluate(torch.tensor(new_W - W).flatten())


@right("20-4-d", STYLE)
def _(gains, kls, delta):
    def evaluate(fraction):
        halved = round(-np.log2(float(fraction)))
        return gains[halved], kls[halved]

    full = torch.tensor(1.0)
    return line_search(evaluate, full, delta=delta, halvings=len(gains) - 1).fraction
