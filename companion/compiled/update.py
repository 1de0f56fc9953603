"""PPO's update of `companion.ppo`, for discrete actions and small networks of tanh layers.

There autograd makes a graph of every minibatch, which costs such networks more than the arithmetic.
Here the slopes are those that the chapter derives: the loss is one compiled loop over the samples,
a layer is a product of matrices.

The first call on a machine compiles, for 2 s on a free core and about 15 s on a busy one; a later
process loads the result in less than 1 s. The default settings save about 0.1 s in each 1,000 steps
of the environment, so that it pays from 20,000 to 150,000 steps at first, and from 10,000 later.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from companion import ppo
from companion.actor_critic import ActorCritic
from companion.advantage import standardized
from companion.batch import Batch
from companion.compiled.jit import kernel
from companion.distribution import Categorical
from companion.objective import band
from companion.perceptron import linear_layers
from companion.ppo_loss import Samples
from companion.ppo_settings import PPOSettings

Floats = NDArray[np.float32]


class Rules(NamedTuple):
    """What the samples of a minibatch are judged by."""

    low: float  # edges of the clip; -inf and inf clip nothing
    high: float
    band_low: float  # edges that exits are counted at
    band_high: float
    beta: float  # coefficient of the KL penalty
    entropy_coefficient: float
    value_coefficient: float
    value_clip_range: float  # inf clips nothing


class Arrays(NamedTuple):
    """The arrays of `companion.ppo_loss.Samples`."""

    obs: Floats
    actions: NDArray[np.int64]
    adv: Floats
    target: Floats
    v_old: Floats
    logp_old: Floats
    old: Floats


class Terms(NamedTuple):
    """The fields of `companion.ppo.EpochRecord` but the last, of one minibatch."""

    loss: float
    value_loss: float
    entropy: float
    kl: float
    kl_direct: float
    kl_low_variance: float
    outside: float
    largest_ratio: float


class PPO(ppo.PPO):
    """Do what `companion.ppo.PPO` does, equal to rounding.

    Args:
        agent, settings, rng: as there.

    Raises:
        ValueError: the agent is of a subclass, its policy is not categorical, a network is not as
            `Perceptron` takes it, or the two share parameters.
    """

    def __init__(
        self, agent: ActorCritic, settings: PPOSettings, *, rng: np.random.Generator
    ) -> None:
        super().__init__(agent, settings, rng=rng)
        if type(agent) is not ActorCritic:
            raise ValueError(f"agent must be an ActorCritic, of no subclass; got {type(agent)}")
        if agent.kind is not Categorical:
            raise ValueError(f"agent must have a categorical policy; its kind is {agent.kind}")
        self._policy, self._value = Perceptron(agent.policy), Perceptron(agent.value)
        sizes = [w.numel() for w in self.parameters]
        if self._policy.size + self._value.size != sum(sizes):
            raise ValueError("agent's policy and value network must not share parameters")
        self._slopes = np.zeros(sum(sizes), np.float32)  # of all in a row, for their norm
        pieces = np.split(self._slopes, np.cumsum(sizes[:-1]))
        self._grads = [
            torch.from_numpy(piece).view_as(w)
            for w, piece in zip(self.parameters, pieces, strict=True)
        ]
        self.adam = torch.optim.Adam(
            self.parameters, settings.lr, eps=settings.adam_eps, fused=True
        )

    def update(self, batch: Batch, progress: float = 0.0) -> ppo.UpdateRecord:
        """Do what `companion.ppo.PPO.update` does."""
        for w, grad in zip(self.parameters, self._grads, strict=True):
            w.grad = grad  # zero_grad, called since the last update, has taken it away
        return super().update(batch, progress)

    def _step(self, part: Samples, clip_scale: float) -> tuple[float, ...]:
        samples = Arrays(*(tensor.numpy() for tensor in part))
        if self.settings.normalize == "minibatch":
            samples = samples._replace(adv=standardized(samples.adv))
        rules = _rules(self.settings, self.beta, clip_scale)
        logits, values = self._policy.forward(part.obs), self._value.forward(part.obs)
        # The slopes in logits and values take their place.
        terms = losses(rules, samples, logits.numpy(), values.numpy())
        if not (math.isfinite(terms.loss) and math.isfinite(terms.largest_ratio)):
            raise FloatingPointError(
                f"the loss is {terms.loss}, the largest ratio {terms.largest_ratio}"
            )
        self._policy.backward(logits)
        self._value.backward(values)
        norm = math.sqrt(float(self._slopes @ self._slopes))
        if norm > (limit := self.settings.max_grad_norm or math.inf):
            self._slopes *= limit / norm
        self.adam.step()
        return *terms, norm


class Perceptron:
    """A torch network of linear layers with tanh between them: its outputs, and slopes in it.

    Products are torch's, as `one_thread` holds for them: NumPy's would use threads of their own,
    which on busy cores wait for each other longer than the product takes.

    Args:
        network: what it shares the parameters and their `grad` with.

    Raises:
        ValueError: the network is of another kind (see `linear_layers`), or not float32.
    """

    def __init__(self, network: nn.Module) -> None:
        self._layers = linear_layers(network)
        if not self._layers:
            raise ValueError(
                "network must be of linear layers with tanh between them, of no subclass, each "
                "with its own weight and bias, none computed or frozen, and have no hook or "
                f"forward of its own; got {network}"
            )
        weights = list(network.parameters())
        if others := {w.dtype for w in weights} - {torch.float32}:
            raise ValueError(f"network must have float32 parameters; some are {others.pop()}")
        self.size = sum(w.numel() for w in weights)
        self._inputs: list[Tensor] = []  # of each layer, in the last forward pass

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n, m) of inputs (n, d)."""
        self._inputs = [x]
        for layer in self._layers:
            x = torch.addmm(layer.bias, self._inputs[-1], layer.weight.t())
            if layer is not self._layers[-1]:
                np.tanh(x.numpy(), out=x.numpy())  # ten times as fast as torch's
                self._inputs.append(x)
        return x

    @torch.no_grad()
    def backward(self, slope: Tensor) -> None:
        """Write the slopes in the parameters, given those (n, m) in the last outputs."""
        for layer, x in zip(reversed(self._layers), reversed(self._inputs), strict=True):
            assert layer.weight.grad is not None
            assert layer.bias.grad is not None
            torch.mm(slope.t(), x, out=layer.weight.grad)
            torch.sum(slope, 0, out=layer.bias.grad)
            if layer is not self._layers[0]:
                slope = (slope @ layer.weight).mul_(1 - x * x)


@kernel
def losses(rules: Rules, samples: Arrays, logits: Floats, values: Floats) -> Terms:
    """Compute `companion.ppo_loss.ppo_loss`, and put its slopes in the place of the outputs.

    dL/dlogits = (f'(r) r (p - e_a) + c_H p (log p + H) + beta (p - p_old)) / n,
    dL/dv = 2 c_v (v - G) / n, or 0 where the value's clip acts  (exercises 20.5, 20.8)

    Args:
        rules, samples: how, and of what.
        logits, values: the networks' outputs (n, A) and (n, 1); overwritten.

    Returns:
        Terms.
    """
    n = len(logits)
    gain = squares = entropy = kl = direct = low_variance = outside = largest = 0.0
    for i in range(n):
        log_ratio, h, divergence = _policy(rules, samples, logits[i], i)
        r, adv = math.exp(log_ratio), samples.adv[i]
        gain += min(r * adv, min(max(r, rules.low), rules.high) * adv)
        entropy += h
        kl += divergence
        direct -= log_ratio
        low_variance += r - 1 - log_ratio
        outside += r < rules.band_low or r > rules.band_high
        largest = max(largest, r)
        error, values[i, 0] = _value(rules, values[i, 0], samples.v_old[i], samples.target[i])
        squares += error
    logits /= np.float32(n)
    values /= np.float32(n)
    loss = rules.value_coefficient * squares - rules.entropy_coefficient * entropy
    loss += rules.beta * kl - gain
    return Terms(
        loss / n,
        squares / n,
        entropy / n,
        kl / n,
        direct / n,
        low_variance / n,
        outside / n,
        largest,
    )


@kernel
def _policy(rules: Rules, samples: Arrays, logits: Floats, i: int) -> tuple[float, float, float]:
    """Return log-ratio, entropy and KL of sample i, and put its slopes in its logits' place."""
    old, action, adv = samples.old[i], samples.actions[i], samples.adv[i]
    total, total_old = _log_sum_exp(logits), _log_sum_exp(old)
    log_ratio = logits[action] - total - samples.logp_old[i]
    r = math.exp(log_ratio)
    acts = r > rules.high if adv > 0 else r < rules.low
    outer = 0.0 if acts else adv * r
    entropy = kl = 0.0
    for a in range(len(logits)):
        log_p, log_old = logits[a] - total, old[a] - total_old
        entropy -= math.exp(log_p) * log_p
        kl += math.exp(log_old) * (log_old - log_p)
    for a in range(len(logits)):
        log_p, log_old = logits[a] - total, old[a] - total_old
        p = math.exp(log_p)
        logits[a] = (
            outer * (p - (a == action))
            + rules.entropy_coefficient * p * (log_p + entropy)
            + rules.beta * (p - math.exp(log_old))
        )
    return log_ratio, entropy, kl


@kernel
def _value(rules: Rules, v: float, v_old: float, target: float) -> tuple[float, float]:
    """Return the squared error of a value, clipped as the rules are, and c_v times its slope."""
    width, error = rules.value_clip_range, v - target
    edge_error = v_old + min(max(v - v_old, -width), width) - target
    acts = abs(v - v_old) > width and abs(error) < abs(edge_error)
    slope = 0.0 if acts else 2 * rules.value_coefficient * error
    return max(error**2, edge_error**2), slope


@kernel
def _log_sum_exp(logits: Floats) -> float:
    largest: float = logits.max()
    total = 0.0
    for logit in logits:
        total += math.exp(logit - largest)
    return largest + math.log(total)


def _rules(settings: PPOSettings, beta: float, clip_scale: float) -> Rules:
    low, high = band(settings.clip_range, settings.clip_range_high)
    clips = settings.method == "clip"
    return Rules(
        low=1 - (1 - low) * clip_scale if clips else -math.inf,
        high=1 + (high - 1) * clip_scale if clips else math.inf,
        band_low=low,
        band_high=high,
        beta=0.0 if clips else beta,
        entropy_coefficient=settings.entropy_coefficient,
        value_coefficient=settings.value_coefficient,
        value_clip_range=settings.value_clip_range or math.inf,
    )
