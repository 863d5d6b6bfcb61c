"""Exact posterior draws of shares under a Dirichlet prior, from counts of k-ary randomized response.

Each factor (q + (p − q) θⱼ)^cⱼ is a binomial sum over how many of those reports are answers of their own, so
the posterior is a finite mixture of Dirichlet laws; running sums over choices give its weights.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from schemas import Study
from tests import studies

Values = NDArray[np.float64]


def exact_log_shares(
    counts: NDArray[np.int64], p: float, q: float, concentration: float, draws: int, random: Generator
) -> Values:
    """Logarithms of shares, (draws, k)."""
    weights = [_own_answers(int(count), p, q, concentration) for count in counts]
    sums = [np.zeros(1)]
    for weight in weights:
        sums.append(_convolved(sums[-1], weight))
    most = np.arange(len(sums[-1]))
    left = _pick(sums[-1] - gammaln(concentration * len(counts) + most), draws, random)
    own = np.zeros((draws, len(counts)), np.int64)
    for choice in reversed(range(len(counts))):
        before, weight = sums[choice], weights[choice]
        for total in np.unique(left):
            rows = np.flatnonzero(left == total)
            possible = np.arange(max(0, total - len(before) + 1), min(len(weight) - 1, total) + 1)
            logs = before[total - possible] + weight[possible]
            own[rows, choice] = possible[_pick(logs, len(rows), random)]
        left = left - own[:, choice]
    shape = concentration + own
    # log Gamma(s) is log Gamma(s + 1) + log U / s: small shapes underflow nothing.
    logs = np.log(random.gamma(shape + 1)) + np.log(random.random(shape.shape)) / shape
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def _own_answers(count: int, p: float, q: float, concentration: float) -> Values:
    """Log weights of 0 … count own answers among a choice's reports."""
    own = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(own + 1) - gammaln(count - own + 1)
    return np.asarray(
        ways + own * np.log(p - q) + (count - own) * np.log(q) + gammaln(concentration + own)
    ) - gammaln(concentration)


def _convolved(logs: Values, weight: Values) -> Values:
    total = np.full(len(logs) + len(weight) - 1, -np.inf)
    for own, value in enumerate(weight):
        part = slice(own, own + len(logs))
        total[part] = np.logaddexp(total[part], logs + value)
    return total


def _pick(logs: Values, count: int, random: Generator) -> NDArray[np.intp]:
    return random.choice(len(logs), size=count, p=np.exp(logs - logsumexp(logs)))


def question_of(choices: int, concentration, name: str = "randomized_response", epsilon: str = "2"):
    prior = {"p": {"distribution": "dirichlet", "concentration": concentration}}
    changed = {
        "choices": {"count": choices},
        "mechanism": {"name": name, "epsilon": epsilon},
        "model": {"name": "multinomial", "prior": prior},
    }
    return Study(studies.document({**studies.CHOICE, **changed})).questions[0]
