"""Answers to exercise 20.2."""

import math

import numpy as np
import torch

from companion.mdp import TabularMDP, evaluate, expected_return
from tests.zoo import right, wrong


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1)[:, None]


# a


@right("20-2-a", "expectation of the ratio under the old policy")
def _(P, r, gamma, mu, old, new):
    v, _, adv, rho = evaluate(TabularMDP(P, r, gamma, mu), old)
    ratio = new / old
    return mu @ v + (rho[:, None] * old * ratio * adv).sum()


@right("20-2-a", "loops in torch, float32")
def _(P, r, gamma, mu, old, new):
    mdp = TabularMDP(P, r, gamma, mu)
    _, q, _, rho = (torch.tensor(x, dtype=torch.float32) for x in evaluate(mdp, old))
    total = torch.tensor(float(expected_return(mdp, old)))
    for s in range(len(mu)):
        for a in range(len(r[0])):
            total += rho[s] * (new[s, a] - old[s, a]) * q[s, a]
    return total


@wrong("20-2-a", "the old policy's return is left out")
def _(P, r, gamma, mu, old, new):
    _, _, adv, rho = evaluate(TabularMDP(P, r, gamma, mu), old)
    return (rho[:, None] * new * adv).sum()


@wrong("20-2-a", "the states are weighted by the new policy's visitation")
def _(P, r, gamma, mu, old, new):
    mdp = TabularMDP(P, r, gamma, mu)
    rho = evaluate(mdp, new).rho
    return expected_return(mdp, old) + (rho[:, None] * new * evaluate(mdp, old).adv).sum()


@wrong("20-2-a", "the visitation is normalized to sum 1")
def _(P, r, gamma, mu, old, new):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    d = (1 - gamma) * rho
    return expected_return(mdp, old) + (d[:, None] * new * adv).sum()


@wrong("20-2-a", "the advantages are averaged over the old policy's actions")
def _(P, r, gamma, mu, old, new):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    return expected_return(mdp, old) + (rho[:, None] * old * adv).sum()


@wrong("20-2-a", "the ratio is summed without the old policy's probabilities")
def _(P, r, gamma, mu, old, new):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    return expected_return(mdp, old) + (rho[:, None] * (new / old) * adv).sum()


@wrong("20-2-a", "the advantages are the new policy's")
def _(P, r, gamma, mu, old, new):
    mdp = TabularMDP(P, r, gamma, mu)
    rho, adv = evaluate(mdp, old).rho, evaluate(mdp, new).adv
    return expected_return(mdp, old) + (rho[:, None] * old * adv).sum()


# b


@right("20-2-b", "one sample after the other")
def _(states, actions, adv, old, new, gamma):
    terms = [
        float(new[s, a] / old[s, a] * x) / (1 - gamma)
        for s, a, x in zip(states, actions, adv, strict=True)
    ]
    mean = sum(terms) / len(terms)
    variance = sum((t - mean) ** 2 for t in terms) / (len(terms) - 1)
    return mean, math.sqrt(variance / len(terms))


@right("20-2-b", "torch, through logarithms")
def _(states, actions, adv, old, new, gamma):
    old, new, adv = (torch.tensor(x, dtype=torch.float32) for x in (old, new, adv))
    log_ratio = new.log()[states, actions] - old.log()[states, actions]
    terms = log_ratio.exp() * adv / (1 - gamma)
    return torch.stack([terms.mean(), terms.std() / len(terms) ** 0.5])


@wrong("20-2-b", "the factor 1/(1 - gamma) is missing")
def _(states, actions, adv, old, new, gamma):
    terms = new[states, actions] / old[states, actions] * adv
    return [np.mean(terms), np.std(terms, ddof=1) / np.sqrt(len(terms))]


@wrong("20-2-b", "the ratio is upside down")
def _(states, actions, adv, old, new, gamma):
    terms = old[states, actions] / new[states, actions] * adv / (1 - gamma)
    return [np.mean(terms), np.std(terms, ddof=1) / np.sqrt(len(terms))]


@wrong("20-2-b", "the samples are not weighted by the ratio")
def _(states, actions, adv, old, new, gamma):
    terms = adv / (1 - gamma)
    return [np.mean(terms), np.std(terms, ddof=1) / np.sqrt(len(terms))]


@wrong("20-2-b", "the new policy's probability stands in place of the ratio")
def _(states, actions, adv, old, new, gamma):
    terms = new[states, actions] * adv / (1 - gamma)
    return [np.mean(terms), np.std(terms, ddof=1) / np.sqrt(len(terms))]


@wrong("20-2-b", "the logarithm of the ratio stands in place of the ratio")
def _(states, actions, adv, old, new, gamma):
    log_ratio = np.log(new[states, actions]) - np.log(old[states, actions])
    terms = log_ratio * adv / (1 - gamma)
    return [np.mean(terms), np.std(terms, ddof=1) / np.sqrt(len(terms))]


@wrong("20-2-b", "the standard deviation is the biased one")
def _(states, actions, adv, old, new, gamma):
    terms = new[states, actions] / old[states, actions] * adv / (1 - gamma)
    return [np.mean(terms), np.std(terms) / np.sqrt(len(terms))]


@wrong("20-2-b", "the standard deviation of one sample, not of the mean")
def _(states, actions, adv, old, new, gamma):
    terms = new[states, actions] / old[states, actions] * adv / (1 - gamma)
    return [np.mean(terms), np.std(terms, ddof=1)]


@wrong("20-2-b", "the standard error falls with the number of samples, not with its root")
def _(states, actions, adv, old, new, gamma):
    terms = new[states, actions] / old[states, actions] * adv / (1 - gamma)
    return [np.mean(terms), np.std(terms, ddof=1) / len(terms)]


# c


@right("20-2-c", "Jacobian of the softmax, state by state")
def _(rho, adv, logits):
    rows = []
    for s, p in enumerate(softmax(logits)):
        jacobian = np.diag(p) - np.outer(p, p)
        rows.append(rho[s] * jacobian @ adv[s])
    return rows


@right("20-2-c", "torch's autograd")
def _(rho, adv, logits):
    z = torch.tensor(logits, dtype=torch.float32, requires_grad=True)
    ((torch.tensor(rho)[:, None] * z.softmax(1)) * torch.tensor(adv)).sum().backward()
    return z.grad


@right("20-2-c", "central differences")
def _(rho, adv, logits):
    gradient = np.zeros_like(logits)
    for i in np.ndindex(*logits.shape):
        up, down = logits.copy(), logits.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        gradient[i] = ((softmax(up) - softmax(down)) * adv).sum(axis=1) @ rho / 2e-5
    return gradient


@wrong("20-2-c", "the mean under the new policy is not subtracted")
def _(rho, adv, logits):
    return np.einsum("s,sa,sa->sa", rho, softmax(logits), adv)


@wrong("20-2-c", "the mean is taken over the actions without the policy")
def _(rho, adv, logits):
    centred = adv - np.mean(adv, axis=1)[:, None]
    return np.einsum("s,sa,sa->sa", rho, softmax(logits), centred)


@wrong("20-2-c", "only the diagonal of the softmax's derivative is used")
def _(rho, adv, logits):
    p = softmax(logits)
    return rho[:, None] * (p - p**2) * adv


@wrong("20-2-c", "the derivative is with respect to the probabilities")
def _(rho, adv, logits):
    return (adv.T * rho).T


@wrong("20-2-c", "the states are not weighted")
def _(rho, adv, logits):
    p = softmax(logits)
    return p * (adv - (p * adv).sum(axis=1)[:, None])


@wrong("20-2-c", "the visitation is normalized to sum 1")
def _(rho, adv, logits):
    p, d = softmax(logits), rho / np.sum(rho)
    return d[:, None] * p * (adv - (p * adv).sum(axis=1)[:, None])


@wrong("20-2-c", "the sign is that of a loss")
def _(rho, adv, logits):
    p = softmax(logits)
    return rho[:, None] * p * ((p * adv).sum(axis=1)[:, None] - adv)


# d


@right("20-2-d", "the lemma's difference of visitations")
def _(P, r, gamma, mu, old, new, alphas):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    errors = []
    for alpha in alphas:
        mixed = old + alpha * (new - old)
        errors.append((rho - evaluate(mdp, mixed).rho) @ (mixed * adv).sum(axis=1))
    return errors


@right("20-2-d", "all mixtures at once")
def _(P, r, gamma, mu, old, new, alphas):
    mdp = TabularMDP(P, r, gamma, mu)
    mixed = old + alphas[:, None, None] * (new - old)
    _, _, adv, rho = evaluate(mdp, old)
    gain = np.einsum("s,ksa,sa->k", rho, mixed, adv)
    return (expected_return(mdp, old) + gain - expected_return(mdp, mixed)).astype(np.float32)


def mixed_errors(P, r, gamma, mu, old, policies):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    L = [expected_return(mdp, old) + rho @ (pi * adv).sum(axis=1) for pi in policies]
    return np.array(L) - np.array([expected_return(mdp, pi) for pi in policies])


@wrong("20-2-d", "the sign is reversed")
def _(P, r, gamma, mu, old, new, alphas):
    return -mixed_errors(P, r, gamma, mu, old, [(1 - a) * old + a * new for a in alphas])


@wrong("20-2-d", "the weights of the two policies are interchanged")
def _(P, r, gamma, mu, old, new, alphas):
    return mixed_errors(P, r, gamma, mu, old, [a * old + (1 - a) * new for a in alphas])


@wrong("20-2-d", "the old policy's return is missing in the surrogate")
def _(P, r, gamma, mu, old, new, alphas):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    policies = [(1 - a) * old + a * new for a in alphas]
    return [rho @ (pi * adv).sum(axis=1) - expected_return(mdp, pi) for pi in policies]


@wrong("20-2-d", "the surrogate is taken at the mixed policy, not at the old one")
def _(P, r, gamma, mu, old, new, alphas):
    errors = []
    for alpha in alphas:
        pi = (1 - alpha) * old + alpha * new
        errors.append(mixed_errors(P, r, gamma, mu, pi, [pi])[0])
    return errors


@wrong("20-2-d", "logits are mixed instead of probabilities")
def _(P, r, gamma, mu, old, new, alphas):
    policies = [softmax(np.log(old) + a * np.log(new / old)) for a in alphas]
    return mixed_errors(P, r, gamma, mu, old, policies)


@wrong("20-2-d", "the surrogate promises nothing")
def _(P, r, gamma, mu, old, new, alphas):
    mdp = TabularMDP(P, r, gamma, mu)
    _, _, adv, rho = evaluate(mdp, old)
    L = expected_return(mdp, old) + rho @ (old * adv).sum(axis=1)
    return [L - expected_return(mdp, (1 - a) * old + a * new) for a in alphas]


# e


def own_errors(P, r, gamma, mu, old, new, alphas):
    return mixed_errors(P, r, gamma, mu, old, [(1 - a) * old + a * new for a in alphas])


@right("20-2-e", "decimal logarithms, closed form of the slope")
def _(alphas, **c):
    x, y = np.log10(alphas), np.log10(abs(own_errors(alphas=alphas, **c)))
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return (slope, own_errors(alphas=[1], **c)[0])


@right("20-2-e", "least squares, float32")
def _(alphas, **c):
    A = np.stack([np.log(alphas), np.ones_like(alphas)], axis=1)
    fit = np.linalg.lstsq(A, np.log(abs(own_errors(alphas=alphas, **c))), rcond=None)[0]
    return np.array([fit[0], own_errors(alphas=[1], **c)[0]], dtype=np.float32)


@wrong("20-2-e", "the line is fitted without logarithms")
def _(alphas, **c):
    slope, _ = np.polyfit(alphas, abs(own_errors(alphas=alphas, **c)), 1)
    return [slope, own_errors(alphas=[1], **c)[0]]


@wrong("20-2-e", "only the error is logarithmic")
def _(alphas, **c):
    slope, _ = np.polyfit(alphas, np.log(abs(own_errors(alphas=alphas, **c))), 1)
    return [slope, own_errors(alphas=[1], **c)[0]]


@wrong("20-2-e", "the intercept stands in place of the slope")
def _(alphas, **c):
    _, slope = np.polyfit(np.log(alphas), np.log(abs(own_errors(alphas=alphas, **c))), 1)
    return [slope, own_errors(alphas=[1], **c)[0]]


@wrong("20-2-e", "the axes are interchanged")
def _(alphas, **c):
    slope, _ = np.polyfit(np.log(abs(own_errors(alphas=alphas, **c))), np.log(alphas), 1)
    return [slope, own_errors(alphas=[1], **c)[0]]


@wrong("20-2-e", "the surrogate's gain is left out of the error")
def _(P, r, gamma, mu, old, new, alphas):
    mdp = TabularMDP(P, r, gamma, mu)

    def error(a):
        return expected_return(mdp, old) - expected_return(mdp, (1 - a) * old + a * new)

    slope, _ = np.polyfit(np.log(alphas), np.log([abs(error(a)) for a in alphas]), 1)
    return [slope, error(1)]


@wrong("20-2-e", "the sign of the error is reversed")
def _(alphas, **c):
    slope, _ = np.polyfit(np.log(alphas), np.log(abs(own_errors(alphas=alphas, **c))), 1)
    return [slope, -own_errors(alphas=[1], **c)[0]]
