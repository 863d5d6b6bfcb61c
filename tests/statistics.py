"""Statistical tests share one false-alarm rate: of all seeds a sound implementation fails one in a million.

What they look at is drawn from a seed, so that each check passes always or never.
"""

import hashlib
import os
from random import Random

import numpy as np
from scipy import stats

from ldp_client.core.randomness import NotForRealAnswers

FALSE_ALARM = 1e-6
FEWEST_EXPECTED = 10.0


def seeded(*what):
    """Randomness that follows from what is perturbed: the same in every run, another for other answers."""
    # NumPy takes 40 times as long for a few bytes, and mechanisms read millions of times.
    whole = [part.tolist() if isinstance(part, np.ndarray) else part for part in what]
    return NotForRealAnswers(Random(repr(whole)).randbytes)


def replace_system_bytes(monkeypatch, source):
    """Have the system's generator, which random.SystemRandom reads too, give these bytes."""
    monkeypatch.setattr(os, "urandom", source)
    monkeypatch.setattr("random._urandom", source)


def no_noise(_size):
    """A source for what must be refused before any byte is read."""
    raise AssertionError("noise was drawn")


class Stream(NotForRealAnswers):
    """A source of bytes: `head`, then bytes from a seed (SHAKE-256 in blocks). `taken` counts them."""

    BLOCK = 512

    def __init__(self, seed, head=b""):
        super().__init__(self)
        self.seed = seed
        self.taken = 0
        self._rest = head
        self._blocks = 0

    def __call__(self, size):
        while len(self._rest) < size:
            name = f"{self.seed}/{self._blocks}".encode()
            self._rest += hashlib.shake_256(name).digest(self.BLOCK)
            self._blocks += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        self.taken += size
        return taken


def follows(counts, probabilities):
    """Whether counts could come from the probabilities: chi-square, cells with few expected pooled."""
    counts, expected = np.asarray(counts, float), np.asarray(probabilities, float) * np.sum(counts)
    rare = expected < FEWEST_EXPECTED
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], max(np.sum(counts) - expected[~rare].sum(), 0.0))
    if expected[-1] < 1e-9:
        if observed[-1] > 0:
            return False
        observed, expected = observed[:-1], expected[:-1]
    statistic = np.sum((observed - expected) ** 2 / expected)
    return bool(stats.chi2.sf(statistic, len(observed) - 1) > FALSE_ALARM)


def share_is(successes, trials, probability):
    """Whether a share of successes could have this probability: exact binomial test."""
    return bool(stats.binomtest(successes, trials, probability).pvalue > FALSE_ALARM)
