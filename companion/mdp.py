"""Finite Markov decision processes and their exact evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.policy import FloatArray, check_policy, greedy


@dataclass(frozen=True, eq=False)
class TabularMDP:
    """A finite MDP, checked when it is made; its arrays are copies and read-only.

    Args:
        P: (S, A, S) transition probabilities P[s, a, s'] = P(s'|s,a).
        r: (S, A) expected rewards.
        gamma: discount in [0, 1).
        mu: (S,) start distribution.

    Raises:
        ValueError: shapes that do not fit, rows of P or mu that are negative or do not sum to 1,
            a reward that is not finite, gamma outside [0, 1).

    >>> coin = TabularMDP(P=np.ones((1, 2, 1)), r=[[0.0, 1.0]], gamma=0.5, mu=[1.0])
    >>> expected_return(coin, [[0.0, 1.0]]).item()
    2.0
    """

    P: FloatArray
    r: FloatArray
    gamma: float
    mu: FloatArray

    def __post_init__(self) -> None:
        P = validation.numbers("P", self.P)
        if P.ndim != 3 or P.shape[0] != P.shape[2]:
            raise ValueError(f"P must have shape (states, actions, states); got {P.shape}")
        r = validation.finite_array("r", self.r)
        if r.shape != P.shape[:2]:
            raise ValueError(f"r must have shape {P.shape[:2]}, as P has; got {r.shape}")
        mu = validation.probabilities("mu", self.mu)
        if mu.shape != P.shape[:1]:
            raise ValueError(f"mu must have shape {P.shape[:1]}, as P has; got {mu.shape}")
        gamma = validation.number_between("gamma", self.gamma, 0, 1, "[)")
        object.__setattr__(self, "gamma", gamma)
        for name, array in (("P", validation.probabilities("P", self.P)), ("r", r), ("mu", mu)):
            # A copy that nobody can write to: what was checked stays true.
            own = array.copy()
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (S, A) of a policy for this MDP."""
        return self.r.shape[0], self.r.shape[1]


class Evaluation(NamedTuple):
    """What a policy is worth, exactly: v (..., S), q and adv (..., S, A), rho (..., S)."""

    v: FloatArray
    q: FloatArray
    adv: FloatArray
    rho: FloatArray


def evaluate(mdp: TabularMDP, pi: ArrayLike) -> Evaluation:
    """Evaluate a policy exactly, by one linear solve for its values and one for its visitation.

    v = (I - gamma P_pi)^-1 r_pi,  q = r + gamma P v,  adv = q - v,
    rho = (I - gamma P_pi^T)^-1 mu, of total mass 1/(1 - gamma)  (notation)

    Args:
        mdp: the MDP.
        pi: (..., S, A) policy or batch of policies.

    Returns:
        Evaluation of float64 arrays with the leading axes of pi.

    Raises:
        ValueError: pi has the wrong shape or is not a policy.
    """
    values = solve_values(mdp, check_policy(pi, mdp.shape))
    return Evaluation(values.v, values.q, values.adv, discounted_visits(mdp, values.matrix))


class Values(NamedTuple):
    """v (..., S), q and adv (..., S, A) of a policy, and the matrix that was solved for them."""

    v: FloatArray
    q: FloatArray
    adv: FloatArray
    matrix: FloatArray  # (..., S, S), I - gamma P_pi: its transpose gives the visitation


def solve_values(mdp: TabularMDP, pi: FloatArray) -> Values:
    """Evaluate a policy without its visitation, which costs a second solve.

    Args:
        mdp: the MDP.
        pi: (..., S, A) policy that the caller has checked or made; its rows are not checked again.

    Returns:
        Values of float64 arrays with the leading axes of pi.
    """
    matrix = bellman_matrix(mdp, pi)
    v: FloatArray = np.linalg.solve(matrix, np.vecdot(pi, mdp.r)[..., None])[..., 0]
    q = backup(mdp, v)
    return Values(v, q, q - v[..., None], matrix)


def backup(mdp: TabularMDP, v: FloatArray) -> FloatArray:
    """Return q = r + gamma P v, shape (..., S, A), of values v (..., S)."""
    expected_v = (v @ mdp.P.reshape(-1, mdp.shape[0]).T).reshape(*v.shape[:-1], *mdp.shape)
    q: FloatArray = mdp.r + mdp.gamma * expected_v
    return q


def visitation(mdp: TabularMDP, pi: FloatArray) -> FloatArray:
    """Return rho(s) = sum_t gamma^t Pr(S_t = s | pi), shape (..., S), mass 1/(1 - gamma)."""
    return discounted_visits(mdp, bellman_matrix(mdp, pi))


def discounted_visits(mdp: TabularMDP, matrix: FloatArray) -> FloatArray:
    """Return the `visitation` of a policy whose matrix I - gamma P_pi is at hand."""
    rho: FloatArray = np.linalg.solve(np.swapaxes(matrix, -1, -2), mdp.mu[:, None])[..., 0]
    return rho


def bellman_matrix(mdp: TabularMDP, pi: FloatArray) -> FloatArray:
    """Return I - gamma P_pi, shape (..., S, S)."""
    # State by state, one product serves the whole batch of policies.
    batch = pi.reshape(-1, *mdp.shape).swapaxes(0, 1)
    P_pi = (batch @ mdp.P).swapaxes(0, 1).reshape(*pi.shape[:-1], mdp.shape[0])
    matrix: FloatArray = np.eye(mdp.shape[0]) - mdp.gamma * P_pi
    return matrix


def expected_return(mdp: TabularMDP, pi: ArrayLike) -> FloatArray:
    """Return J(pi) = sum_s mu(s) v_pi(s), with the leading axes of pi (a 0-d array for one)."""
    return np.asarray(solve_values(mdp, check_policy(pi, mdp.shape)).v @ mdp.mu)


def optimal_action_values(mdp: TabularMDP) -> FloatArray:
    """Find the action values that solve Bellman's optimality equation, by policy iteration.

    q(s,a) = r(s,a) + gamma sum_s' P(s'|s,a) max_b q(s',b)  (chapter, section 9)

    Args:
        mdp: the MDP; the optimal return is mdp.mu @ q.max(axis=1).

    Returns:
        (S, A) float64; both sides of the equation agree to rounding.

    Reference: Howard 1960.
    """
    q = mdp.r
    while True:
        pi = greedy(q)
        v, q, _, _ = solve_values(mdp, pi)
        # Actions of equal value differ by rounding, and may take turns as the largest for ever.
        if (q.max(axis=1) - v).max() <= 1e-14 * np.abs(v).max():
            return q


def random_mdp(
    n_states: int = 20,
    n_actions: int = 4,
    gamma: float = 0.9,
    concentration: float = 0.1,
    *,
    rng: np.random.Generator,
) -> TabularMDP:
    """Draw the chapter's random MDP: sparse Dirichlet transitions, cubed uniform rewards.

    Args:
        n_states, n_actions, gamma: sizes and discount.
        concentration: of the Dirichlet rows; 0.1 makes most transitions go to few states.
        rng: the source; `np.random.default_rng(0)` with the defaults is the printed MDP.

    Raises:
        ValueError: a size below 1, concentration not above 0, gamma outside [0, 1), rng no
            generator.
    """
    states = validation.whole("n_states", n_states, 1)
    actions = validation.whole("n_actions", n_actions, 1)
    weights = np.full(states, validation.positive("concentration", concentration))
    P = validation.generator(rng).dirichlet(weights, size=(states, actions))
    r = rng.random((states, actions)) ** 3
    return TabularMDP(P, r, gamma, np.full(states, 1 / states))


def chain(n_states: int = 6, gamma: float = 0.9, slip: float = 0.1) -> TabularMDP:
    """Build a corridor in which the better policy visits other states than the worse one.

    Action 0 walks left, action 1 right; with probability slip the step goes the other way, and the
    ends hold. Walking left at the left end pays 0.1, walking right at the right end pays 1. A walk
    starts at the left end: a policy that turns right spends its time where the old one never was.

    Raises:
        ValueError: n_states below 2, slip outside [0, 1], gamma outside [0, 1).
    """
    states = validation.whole("n_states", n_states, 2)
    validation.number_between("slip", slip, 0, 1)
    P = np.zeros((states, 2, states))
    for s in range(states):
        left, right = max(s - 1, 0), min(s + 1, states - 1)
        for action, (there, back) in enumerate([(left, right), (right, left)]):
            P[s, action, there] += 1 - slip
            P[s, action, back] += slip
    r = np.zeros((states, 2))
    r[0, 0], r[-1, 1] = 0.1, 1.0
    return TabularMDP(P, r, gamma, np.eye(states)[0])


def two_state_trap(gamma: float = 0.9) -> TabularMDP:
    """Build the smallest MDP in which the surrogate praises a policy that ruins the return.

    State 0 is a ledge, state 1 a pit. Action 0 (careful) pays nothing and leads to the ledge from
    both. Action 1 (bold) pays 0.2 on the ledge and leads into the pit; in the pit it pays -1 and
    stays there. A careful policy hardly sees the pit, so its data say little against being bold.

    Raises:
        ValueError: gamma outside [0, 1).
    """
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = 1
    P[:, 1, 1] = 1
    return TabularMDP(P, np.array([[0.0, 0.2], [0.0, -1.0]]), gamma, np.array([1.0, 0.0]))


def one_way_street(gamma: float = 0.9) -> TabularMDP:
    """Build the MDP in which the bound of conservative policy iteration is attained.

    State 0 is the street, state 1 the dead end that nobody leaves. Action 0 pays nothing and stays.
    Action 1 pays 1 in the street and leads into the dead end, where it pays -1. For a policy that
    always stays its advantages are 1 and -1: after one turn every step is as bad as can be.

    Raises:
        ValueError: gamma outside [0, 1).
    """
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = 1
    P[1, :, 1] = 1
    return TabularMDP(P, np.array([[0.0, 1.0], [0.0, -1.0]]), gamma, np.array([1.0, 0.0]))
