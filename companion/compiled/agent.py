"""One agent of the ablation from its first step to its last: CartPole, critic and policy, compiled.

The last axis of every array of samples is the sample. Samples go through a network in blocks that
stay in the fastest cache, from the end of the batch to its beginning, so that the advantages are
there when the critic's slopes are needed: one pass gives values, advantages and slopes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion.compiled.jit import lockless

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Scalar = np.float32

FEATURES, HIDDEN = 4, 64
INNER = HIDDEN * (FEATURES + 1)
BLOCK = 128  # samples that go through a network together: 32 kB of hidden outputs
TIME_LIMIT = 500
ZERO, ONE, TWO = np.float32(0), np.float32(1), np.float32(2)

# tanh x = x N(x^2) / D(x^2) to 3e-7 where |x| is at most SATURATED; from the highest power down.
NUMERATOR = (-2.76076848e-16, 2.00018790e-13, -8.60467152e-11, 5.12229709e-8, 1.48572236e-5)
N6, N5, N4, N3, N2 = map(np.float32, NUMERATOR)
N1, N0 = np.float32(6.37261929e-4), np.float32(4.89352456e-3)
D3, D2, D1, D0 = map(np.float32, (1.19825839e-6, 1.18534706e-4, 2.26843463e-3, 4.89352519e-3))
SATURATED = np.float32(7.90531111)
C3, C5, C7, C9, C11, C13 = (np.float32(1 / k) for k in range(3, 14, 2))


class Network(NamedTuple):
    """Linear, tanh, and a linear layer of one output: a value, or logit 1 minus logit 0."""

    hidden_weight: Floats  # (H, d)
    hidden_bias: Floats  # (H,)
    weight: Floats  # (H,)
    bias: Floats  # (1,)


class Rules(NamedTuple):
    """What an agent learns by."""

    low: Scalar  # edges of the clip; -inf and inf clip nothing
    high: Scalar
    band: Scalar  # half-width that exits are counted at
    entropy_coefficient: Scalar
    lr: float
    gamma: Scalar
    decay: Scalar  # gamma times GAE's lambda
    critic_steps: int


class Batch(NamedTuple):
    """Whole episodes, one after the other, and what the passes compute of them."""

    obs: Floats  # (d, capacity)
    sign: Floats  # (capacity,): 1 for action 1, -1 for action 0
    last: Flags  # (capacity,)
    after: Floats  # (d, episodes): the observation that followed each episode
    fell: Flags  # (episodes,): terminated
    adv: Floats  # (capacity,)
    p_old: Floats  # (capacity,): the collecting policy's probability of the action
    logp_old: Floats  # (1,): sum of its logarithms


class Block(NamedTuple):
    """Room for one block of samples."""

    hidden: Floats  # (H, width), BLOCK or more
    out: Floats  # (width,)
    slope: Floats  # (width,): of the loss in `out`


@lockless
def train(
    actor: Floats,
    critic: Floats,
    rules: Rules,
    rng: np.random.Generator,
    returns: Floats,
    rows: Floats,
) -> None:
    """Train one agent in place.

    Args:
        actor, critic: (4, P) parameters, slopes, and Adam's averages of slopes and their squares.
        rules: what it learns by.
        rng: source of its draws.
        returns: (updates, episodes) to fill.
        rows: (updates, epochs, 3) to fill with outside, KL and entropy before each step.
    """
    batch, block = _space(returns.shape[1])
    policy, policy_slopes = _network(actor[0]), _network(actor[1])
    value, value_slopes = _network(critic[0]), _network(critic[1])
    for update in range(len(returns)):
        n = _collect(policy, batch, rng, returns[update])
        for k in range(rules.critic_steps):
            critic[1] = ZERO
            _value_pass(value, value_slopes, batch, block, n, rules, True)
            _adam(critic, update * rules.critic_steps + k + 1, rules.lr, 1.0)
        _value_pass(value, value_slopes, batch, block, n, rules, False)
        _standardize(batch.adv[:n])
        epochs = rows.shape[1]
        for epoch in range(epochs):
            actor[1] = ZERO
            rows[update, epoch] = _policy_pass(
                policy, policy_slopes, batch, block, n, rules, epoch == 0
            )
            # A step of either logit moves their difference by two.
            _adam(actor, update * epochs + epoch + 1, rules.lr, 2.0)


@lockless
def _space(episodes: int) -> tuple[Batch, Block]:
    capacity = episodes * TIME_LIMIT
    batch = Batch(
        np.empty((FEATURES, capacity), np.float32),
        np.empty(capacity, np.float32),
        np.empty(capacity, np.bool_),
        np.empty((FEATURES, episodes), np.float32),
        np.empty(episodes, np.bool_),
        np.empty(capacity, np.float32),
        np.empty(capacity, np.float32),
        np.empty(1, np.float32),
    )
    width = max(BLOCK, episodes)  # the ends of all episodes go through together
    block = Block(
        np.empty((HIDDEN, width), np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.float32),
    )
    return batch, block


@lockless
def _network(parameters: Floats) -> Network:
    return Network(
        parameters[: FEATURES * HIDDEN].reshape(HIDDEN, FEATURES),
        parameters[FEATURES * HIDDEN : INNER],
        parameters[INNER:-1],
        parameters[-1:],
    )


@lockless
def tanh(x: Scalar) -> Scalar:
    """Return tanh x to 3e-7, in operations that the caller's loop can take many at a time.

    Reference: the rational approximation of the Eigen library (float32 vector math).
    """
    x = min(max(x, -SATURATED), SATURATED)
    s = x * x
    numerator = (((((N6 * s + N5) * s + N4) * s + N3) * s + N2) * s + N1) * s + N0
    return x * numerator / (((D3 * s + D2) * s + D1) * s + D0)


@lockless
def decaying(x: float) -> float:
    """Return exp(-x), x >= 0, to 1e-6 of itself, as the 256th power of exp(-x / 256).

    In float64, because the power multiplies the error of its base. Beyond 80 it stays at exp(-80).
    """
    y = -min(x, 80.0) / 256
    e = 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7))))))
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    return e * e


@lockless
def log_of_one_and(q: Scalar) -> Scalar:
    """Return log(1 + q), 0 <= q <= 1, to 1e-7, as 2 artanh(q / (2 + q))."""
    s = q / (TWO + q)
    t = s * s
    return TWO * s * (ONE + t * (C3 + t * (C5 + t * (C7 + t * (C9 + t * (C11 + t * C13))))))


@lockless
def _forward(network: Network, obs: Floats, start: int, m: int, block: Block) -> None:
    """Fill `hidden` and `out` for the m samples from `start`."""
    x0, x1 = obs[0, start : start + m], obs[1, start : start + m]
    x2, x3 = obs[2, start : start + m], obs[3, start : start + m]
    out = block.out[:m]
    out[:] = network.bias[0]
    for j in range(HIDDEN):
        w = network.hidden_weight[j]
        w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
        bias, weight, hidden = network.hidden_bias[j], network.weight[j], block.hidden[j]
        for i in range(m):
            h = tanh(bias + w0 * x0[i] + w1 * x1[i] + w2 * x2[i] + w3 * x3[i])
            hidden[i] = h
            out[i] += weight * h


@lockless
def _backward(
    network: Network, slopes: Network, obs: Floats, start: int, m: int, block: Block
) -> None:
    """Add the block's part to the slopes in the parameters, given those in `out`."""
    x0, x1 = obs[0, start : start + m], obs[1, start : start + m]
    x2, x3 = obs[2, start : start + m], obs[3, start : start + m]
    slope = block.slope[:m]
    slopes.bias[0] += slope.sum()
    for j in range(HIDDEN):
        hidden, weight, outer, inner = block.hidden[j], network.weight[j], ZERO, ZERO
        s0, s1, s2, s3 = ZERO, ZERO, ZERO, ZERO
        for i in range(m):
            h = hidden[i]
            outer += slope[i] * h
            d = slope[i] * (ONE - h * h)
            inner += d
            s0 += d * x0[i]
            s1 += d * x1[i]
            s2 += d * x2[i]
            s3 += d * x3[i]
        slopes.weight[j] += outer
        slopes.hidden_bias[j] += weight * inner
        slopes.hidden_weight[j, 0] += weight * s0
        slopes.hidden_weight[j, 1] += weight * s1
        slopes.hidden_weight[j, 2] += weight * s2
        slopes.hidden_weight[j, 3] += weight * s3


@lockless
def _value_pass(
    value: Network, slopes: Network, batch: Batch, block: Block, n: int, rules: Rules, learn: bool
) -> None:
    """Fill the advantages, and add up the slopes of the mean squared error if asked to.

    The target is advantage + value, so the error's slope is - 2 A / n.
    """
    episode = len(batch.fell)
    _forward(value, batch.after, 0, episode, block)
    after = block.out[:episode].copy()
    following, running = ZERO, ZERO
    for start in range((n - 1) // BLOCK * BLOCK, -1, -BLOCK):
        m = min(BLOCK, n - start)
        _forward(value, batch.obs, start, m, block)
        for i in range(m - 1, -1, -1):
            if batch.last[start + i]:
                episode -= 1
                following = ZERO if batch.fell[episode] else after[episode]
                running = ZERO
            # The reward is 1 in every step.
            td_error = ONE + rules.gamma * following - block.out[i]
            running = td_error + rules.decay * running
            following = block.out[i]
            batch.adv[start + i] = running
            block.slope[i] = -TWO * running / np.float32(n)
        if learn:
            _backward(value, slopes, batch.obs, start, m, block)


@lockless
def _policy_pass(
    policy: Network, slopes: Network, batch: Batch, block: Block, n: int, rules: Rules, first: bool
) -> tuple[float, float, float]:
    """Add up the slopes of the loss; return the share outside, KL and entropy."""
    outside, logp, entropy = 0.0, 0.0, 0.0
    if first:
        batch.p_old[:n] = ZERO
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        _forward(policy, batch.obs, start, m, block)
        sums = _loss_slopes(batch, block, start, m, rules, np.float32(n))
        outside += float(sums[0])
        logp += float(sums[1])
        entropy += float(sums[2])
        _backward(policy, slopes, batch.obs, start, m, block)
    if first:
        batch.logp_old[0] = logp
    return outside / n, (batch.logp_old[0] - logp) / n, entropy / n


@lockless
def _loss_slopes(
    batch: Batch, block: Block, start: int, m: int, rules: Rules, n: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Fill a block's slopes of the loss in the logit difference z; return sums over the block.

    d r / d z = r (1 - p) for action 1, - r (1 - p) for action 0;  d H / d z = - z p (1 - p)
    """
    sign, adv, p_old = (
        batch.sign[start : start + m],
        batch.adv[start : start + m],
        batch.p_old[start : start + m],
    )
    out, slope = block.out[:m], block.slope[:m]
    outside, logp, entropy = ZERO, ZERO, ZERO
    for i in range(m):
        z = sign[i] * out[i]  # logit of the action taken minus that of the other
        size = abs(z)
        q = np.float32(decaying(size))
        larger = ONE / (ONE + q)
        smaller = q * larger
        p, other = (larger, smaller) if z > ZERO else (smaller, larger)
        log_sum = log_of_one_and(q)
        logp += min(z, ZERO) - log_sum
        entropy += log_sum + size * smaller
        p_old[i] = p if p_old[i] == ZERO else p_old[i]
        r = p / p_old[i]
        outside += ONE if abs(r - ONE) > rules.band else ZERO
        clipped = r > rules.high if adv[i] > ZERO else r < rules.low
        gain = ZERO if clipped else r * adv[i] * other
        bonus = rules.entropy_coefficient * z * p * other
        slope[i] = sign[i] * (bonus - gain) / n
    return outside, logp, entropy


@lockless
def _adam(state: Floats, step: int, lr: float, outer: float) -> None:
    """Make Adam's step number `step`, from 1; `outer` multiplies it in the output layer."""
    rate = np.float32(lr / (1 - 0.9**step))
    correction = np.float32(math.sqrt(1 - 0.999**step))
    for i in range(state.shape[1]):
        slope = state[1, i]
        state[2, i] += np.float32(0.1) * (slope - state[2, i])
        state[3, i] = np.float32(0.999) * state[3, i] + np.float32(0.001) * slope * slope
        scale = math.sqrt(state[3, i]) / correction + np.float32(1e-8)
        times = ONE if i < INNER else np.float32(outer)
        state[0, i] -= times * rate * state[2, i] / scale


@lockless
def _standardize(adv: Floats) -> None:
    mean = adv.sum() / np.float32(len(adv))
    spread = ((adv - mean) ** 2).sum() / np.float32(len(adv))
    adv[:] = (adv - mean) / (math.sqrt(spread) + np.float32(1e-8))


@lockless
def _collect(policy: Network, batch: Batch, rng: np.random.Generator, returns: Floats) -> int:
    """Play the episodes of a batch; return its number of steps."""
    columns = policy.hidden_weight.T.copy()
    state = np.empty(FEATURES)
    obs = np.empty(FEATURES, np.float32)
    n = 0
    for episode in range(len(returns)):
        for d in range(FEATURES):
            state[d] = rng.uniform(-0.05, 0.05)
        fell, t = False, 0
        while not fell and t < TIME_LIMIT:
            obs[:] = state
            p = 1 / (1 + math.exp(-_logit(policy, columns, obs)))
            action = rng.random() < p
            batch.obs[:, n] = obs
            batch.sign[n] = ONE if action else -ONE
            fell = move(state, 10.0 if action else -10.0)
            t += 1
            batch.last[n] = fell or t == TIME_LIMIT
            n += 1
        batch.fell[episode] = fell
        batch.after[:, episode] = state
        returns[episode] = t
    return n


@lockless
def _logit(policy: Network, columns: Floats, obs: Floats) -> Scalar:
    w0, w1, w2, w3 = columns[0], columns[1], columns[2], columns[3]
    z = ZERO
    for j in range(HIDDEN):
        x = policy.hidden_bias[j] + w0[j] * obs[0] + w1[j] * obs[1] + w2[j] * obs[2]
        z += policy.weight[j] * tanh(x + w3[j] * obs[3])
    difference: Scalar = z + policy.bias[0]
    return difference


@lockless
def move(state: NDArray[np.float64], force: float) -> bool:
    """Move cart and pole by one step, in place; say whether the pole fell or the cart left.

    Args:
        state: (4,) position m, velocity m/s, angle rad, angular velocity rad/s.
        force: on the cart, N.

    Reference: Barto, Sutton and Anderson 1983; Gymnasium's CartPole-v1 (Euler's method, 20 ms).
    """
    x, speed, angle, turning = state[0], state[1], state[2], state[3]
    sine, cosine = math.sin(angle), math.cos(angle)
    pushed = (force + 0.05 * turning**2 * sine) / 1.1
    bend = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    state[0] = x + 0.02 * speed
    state[1] = speed + 0.02 * (pushed - 0.05 * bend * cosine / 1.1)
    state[2] = angle + 0.02 * turning
    state[3] = turning + 0.02 * bend
    over: bool = abs(state[0]) > 2.4 or abs(state[2]) > 12 * 2 * math.pi / 360
    return over
