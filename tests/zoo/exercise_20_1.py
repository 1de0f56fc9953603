"""Answers to exercise 20.1."""

import numpy as np
import torch

from tests.zoo import right, wrong

SERIES = 400


def state_transitions(P, pi):
    return (pi[:, :, None] * P).sum(axis=1)


def series(P, gamma, start, pi):
    """The sum of gamma^t Pr(S_t), term by term."""
    P_pi, term, total = state_transitions(P, pi), start, 0
    for _ in range(SERIES):
        total = total + term
        term = gamma * term @ P_pi
    return total


def value_sweeps(P, r, gamma, pi):
    v = np.zeros(len(r))
    for _ in range(SERIES):
        v = (pi * (r + gamma * P @ v)).sum(axis=1)
    return v


def adv_of(P, r, gamma, pi):
    v = value_sweeps(P, r, gamma, pi)
    return r + gamma * P @ v - v[:, None]


def J(P, r, gamma, mu, pi):
    return (mu * value_sweeps(P, r, gamma, pi)).sum()


# a


@right("20-1-a", "loops and lists")
def _(P, gamma, mu, pi):
    n_states, n_actions = len(mu), len(pi[0])
    now, rho = [float(m) for m in mu], [0.0] * n_states
    for _ in range(SERIES):
        after = [0.0] * n_states
        for s in range(n_states):
            rho[s] += now[s]
            for a in range(n_actions):
                for t in range(n_states):
                    after[t] += gamma * now[s] * float(pi[s, a] * P[s, a, t])
        now = after
    return rho


@right("20-1-a", "NumPy, explicit inverse")
def _(P, gamma, mu, pi):
    return mu @ np.linalg.inv(np.eye(len(mu)) - gamma * state_transitions(P, pi))


@right("20-1-a", "torch in float32")
def _(P, gamma, mu, pi):
    P, mu, pi = (torch.tensor(x, dtype=torch.float32) for x in (P, mu, pi))
    return torch.linalg.solve(torch.eye(len(mu)) - gamma * torch.einsum("sa,sat->ts", pi, P), mu)


@right("20-1-a", "changes its inputs")
def _(P, gamma, mu, pi):
    P *= pi[:, :, None]
    mu *= 2
    return np.linalg.solve(np.eye(len(mu)) - gamma * P.sum(axis=1).T, mu) / 2


@wrong("20-1-a", "the visitation is normalized to sum 1")
def _(P, gamma, mu, pi):
    rho = series(P, gamma, mu, pi)
    return rho / rho.sum()


@wrong("20-1-a", "the transition matrix is not transposed")
def _(P, gamma, mu, pi):
    rho = mu
    for _ in range(SERIES):
        rho = mu + gamma * state_transitions(P, pi) @ rho
    return rho


@wrong("20-1-a", "the sum starts at the first transition")
def _(P, gamma, mu, pi):
    return gamma * series(P, gamma, mu @ state_transitions(P, pi), pi)


@wrong("20-1-a", "the discount is one power too high")
def _(P, gamma, mu, pi):
    return series(P, gamma, gamma * mu, pi)


@wrong("20-1-a", "the actions are averaged without the policy")
def _(P, gamma, mu, pi):
    return np.linalg.solve(np.eye(len(mu)) - gamma * P.mean(axis=1).T, mu)


@wrong("20-1-a", "the start distribution is not used")
def _(P, gamma, mu, pi):
    return series(P, gamma, np.ones(len(mu)) / len(mu), pi)


# b


@right("20-1-b", "value iteration by sweeps")
def _(P, r, gamma, pi):
    return adv_of(P, r, gamma, pi)


@right("20-1-b", "loops and lists of NumPy scalars")
def _(P, r, gamma, pi):
    v = value_sweeps(P, r, gamma, pi)
    q = [[r[s, a] + gamma * P[s, a] @ v for a in range(len(r[0]))] for s in range(len(r))]
    return [[q_sa - v[s] for q_sa in q[s]] for s in range(len(r))]


@right("20-1-b", "float32")
def _(P, r, gamma, pi):
    P, r, pi = (x.astype(np.float32) for x in (P, r, pi))
    eye = np.eye(len(r), dtype=np.float32)
    v = np.linalg.solve(eye - np.float32(gamma) * state_transitions(P, pi), (pi * r).sum(1))
    return r + np.float32(gamma) * P @ v - v[:, None]


@wrong("20-1-b", "action values instead of advantages")
def _(P, r, gamma, pi):
    return r + gamma * P @ value_sweeps(P, r, gamma, pi)


@wrong("20-1-b", "the sign is reversed")
def _(P, r, gamma, pi):
    v = value_sweeps(P, r, gamma, pi)
    return v[:, None] - (r + gamma * P @ v)


@wrong("20-1-b", "the step's own reward is left out")
def _(P, r, gamma, pi):
    v = value_sweeps(P, r, gamma, pi)
    return gamma * P @ v - v[:, None]


@wrong("20-1-b", "the next value is not discounted")
def _(P, r, gamma, pi):
    v = value_sweeps(P, r, gamma, pi)
    return r + P @ v - v[:, None]


@wrong("20-1-b", "the baseline averages the actions without the policy")
def _(P, r, gamma, pi):
    q = r + gamma * P @ value_sweeps(P, r, gamma, pi)
    return q - np.mean(q, axis=1)[:, None]


@wrong("20-1-b", "the baseline is the best action's value")
def _(P, r, gamma, pi):
    q = r + gamma * P @ value_sweeps(P, r, gamma, pi)
    return q - np.max(q, axis=1)[:, None]


# c


@right("20-1-c", "sums over states and actions")
def _(P, r, gamma, mu, old, new):
    adv, rho = adv_of(P, r, gamma, old), series(P, gamma, mu, new)
    right_side = 0.0
    for s in range(len(mu)):
        for a in range(len(r[0])):
            right_side += rho[s] * new[s, a] * adv[s, a]
    return (J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old), right_side)


@right("20-1-c", "torch")
def _(P, r, gamma, mu, old, new):
    P, r, mu, old, new = (torch.from_numpy(x) for x in (P, r, mu, old, new))

    def solve(pi):
        matrix = torch.eye(len(mu)) - gamma * torch.einsum("sa,sat->st", pi, P)
        return torch.linalg.solve(matrix, (pi * r).sum(1)), torch.linalg.solve(matrix.T, mu)

    (v_old, _), (v_new, rho_new) = solve(old), solve(new)
    adv = r + gamma * P @ v_old - v_old[:, None]
    return torch.stack([mu @ (v_new - v_old), rho_new @ (new * adv).sum(1)])


@wrong("20-1-c", "the right side takes the old policy's visitation")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old)
    inner = (new * adv_of(P, r, gamma, old)).sum(axis=1)
    return [left, series(P, gamma, mu, old) @ inner]


@wrong("20-1-c", "the right side averages a policy's advantages over its own actions")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old)
    inner = (old * adv_of(P, r, gamma, old)).sum(axis=1)
    return [left, series(P, gamma, mu, new) @ inner]


@wrong("20-1-c", "the right side averages a policy's advantages over its own actions")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old)
    inner = (new * adv_of(P, r, gamma, new)).sum(axis=1)
    return [left, series(P, gamma, mu, new) @ inner]


@wrong("20-1-c", "the right side takes the new policy's advantages")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old)
    inner = (old * adv_of(P, r, gamma, new)).sum(axis=1)
    return [left, series(P, gamma, mu, new) @ inner]


@wrong("20-1-c", "the policies are interchanged on the right side")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old)
    inner = (old * adv_of(P, r, gamma, new)).sum(axis=1)
    return [left, series(P, gamma, mu, old) @ inner]


@wrong("20-1-c", "the policies are interchanged on the left side")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, old) - J(P, r, gamma, mu, new)
    inner = (new * adv_of(P, r, gamma, old)).sum(axis=1)
    return [left, series(P, gamma, mu, new) @ inner]


@wrong("20-1-c", "the visitation is normalized to sum 1")
def _(P, r, gamma, mu, old, new):
    left = J(P, r, gamma, mu, new) - J(P, r, gamma, mu, old)
    rho = series(P, gamma, mu, new)
    return [left, rho / rho.sum() @ (new * adv_of(P, r, gamma, old)).sum(axis=1)]


@wrong("20-1-c", "the start distribution is not used in the returns")
def _(P, r, gamma, mu, old, new):
    left = (value_sweeps(P, r, gamma, new) - value_sweeps(P, r, gamma, old)).mean()
    inner = (new * adv_of(P, r, gamma, old)).sum(axis=1)
    return [left, series(P, gamma, mu, new) @ inner]


# d


@right("20-1-d", "a list of floats")
def _(P, r, gamma, mu, old, new):
    adv, rho = adv_of(P, r, gamma, old), series(P, gamma, mu, new)
    return [float(rho[s] * (new[s] @ adv[s])) for s in range(len(mu))]


@right("20-1-d", "float32")
def _(P, r, gamma, mu, old, new):
    adv, rho = adv_of(P, r, gamma, old), series(P, gamma, mu, new)
    return (rho * (new * adv).sum(axis=1)).astype(np.float32)


@wrong("20-1-d", "the states are weighted by the old policy's visitation")
def _(P, r, gamma, mu, old, new):
    return series(P, gamma, mu, old) * (new * adv_of(P, r, gamma, old)).sum(axis=1)


@wrong("20-1-d", "a policy's advantages are averaged over its own actions")
def _(P, r, gamma, mu, old, new):
    return series(P, gamma, mu, new) * (old * adv_of(P, r, gamma, old)).sum(axis=1)


@wrong("20-1-d", "the policies are interchanged")
def _(P, r, gamma, mu, old, new):
    return series(P, gamma, mu, old) * (old * adv_of(P, r, gamma, new)).sum(axis=1)


@wrong("20-1-d", "the visitation is normalized to sum 1")
def _(P, r, gamma, mu, old, new):
    rho = series(P, gamma, mu, new)
    return rho / rho.sum() * (new * adv_of(P, r, gamma, old)).sum(axis=1)


@wrong("20-1-d", "the states are not weighted")
def _(P, r, gamma, mu, old, new):
    return (new * adv_of(P, r, gamma, old)).sum(axis=1)


@wrong("20-1-d", "the best action is taken instead of the new policy's")
def _(P, r, gamma, mu, old, new):
    return series(P, gamma, mu, new) * adv_of(P, r, gamma, old).max(axis=1)
