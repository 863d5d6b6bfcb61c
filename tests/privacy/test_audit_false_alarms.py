"""The audit's scores of rare reports: sound ones stay below the limits; repeated ones do not."""

import itertools
import random

import pytest
from scipy import stats

from ldp_client.audit.views import Batch
from ldp_client.mechanisms import mechanism_for
from ldp_client.mechanisms.olh import SEED_BYTES, Olh
from ldp_client.mechanisms.unary import Oue
from schemas import Study
from tests import studies
from tests.privacy.checks.noise import SIZE_LIMIT, choice_checks
from tests.privacy.checks.reports import WIDE_LIMIT
from tests.privacy.checks.surprise import Column, count_score, lag_score, most_of, pair_score

REPORTS = 3000
RARE = [1e-6, 1e-4, 1e-3, 0.0025, 0.01, 0.03, 0.1, 0.3, 0.5]


def coins(share, seed, reports=REPORTS):
    drawn = random.Random(seed)
    return [drawn.random() < share for _ in range(reports)]


def column(values, share):
    return Column([value - share for value in values], share)


@pytest.mark.parametrize("rare", RARE)
@pytest.mark.parametrize("often", [False, True])
def test_sound_reports_are_below_the_limits(rare, often):
    """Sums without two adjacent rare reports would be far above if divided by their own size."""
    share = 1 - rare if often else rare
    batches = [column(coins(share, seed), share) for seed in range(40)]
    assert max(lag_score(batch, lag) for batch in batches for lag in (1, 2)) < SIZE_LIMIT
    assert max(pair_score(*pair, lag) for pair in itertools.pairwise(batches) for lag in (0, 1)) < WIDE_LIMIT


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_repeated_coins_are_above_the_limits(share):
    kept = coins(share, 1, 10_000)
    half = [kept[place - place % 2] for place in range(len(kept))]
    assert lag_score(column(half, share), 1) > SIZE_LIMIT
    shared = [
        one if place % 2 else other for place, (one, other) in enumerate(zip(kept, coins(share, 2, 10_000)))
    ]
    assert pair_score(column(kept, share), column(shared, share)) > WIDE_LIMIT


@pytest.mark.parametrize("share", [2.0**-32, 1e-3, 0.2, 1 - 2.0**-32])
def test_a_score_bounds_the_exact_probability(share):
    for seen in (0, 1, 5, 40, 150, REPORTS):
        score = count_score(seen, REPORTS, share)
        above = seen / REPORTS > share
        tail = stats.binom.sf(seen - 1, REPORTS, share) if above else stats.binom.cdf(seen, REPORTS, share)
        assert stats.norm.pdf(score) / stats.norm.pdf(0) >= tail * (1 - 1e-6)


@pytest.mark.parametrize("expected", [0.0, 1e-9, 0.02, 0.5, 7.0, 300.0])
def test_rare_coincidences_stay_below_their_bound(expected):
    assert stats.poisson.sf(most_of(expected, 1e-9), expected) <= 1e-9
    assert most_of(expected, 1e-9) <= expected + 8 * expected**0.5 + 12


def test_nearly_truthful_reports_pass_the_audit():
    """At ε = 6, about 100 of 40,000 correct reports lie, rarely two in a row."""
    question = studies.with_epsilon(studies.YES_NO, "6")
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    for seed in range(8):
        drawn = coins(float(mechanism.p), seed, 40_000)
        batch = Batch([bytes([not truthful]) for truthful in drawn], mechanism.words)
        assert all(check.passed for check in choice_checks(batch, mechanism, 0))


class CopiedOue(Oue):
    """One of somebody else's, in which a choice's bit repeats the one before: each bit alone is right."""

    name = "copied"

    def randomise(self, quantised, random):
        bits = int.from_bytes(super().randomise(quantised, random), "little")
        return self.pack(sum([3 << place for place in range(0, self.choices, 2) if bits >> place & 1]))


class StuckOlh(Olh):
    """Another, whose hash function is always the same."""

    name = "stuck"

    def randomise(self, quantised, random):
        return bytes(SEED_BYTES) + super().randomise(quantised, random)[SEED_BYTES:]


@pytest.mark.parametrize(
    ("kind", "check"), [(CopiedOue, "as many other choices as belong"), (StuckOlh, "no report comes again")]
)
def test_faults_are_found_in_mechanisms_of_any_name(kind, check):
    """The checks use what a mechanism states about its reports, so that they cover added mechanisms too."""
    sound = kind.__mro__[1]
    question = studies.with_epsilon({**studies.CHOICE, "choices": {"count": 8}}, "1")
    asked = Study(studies.document(question)).questions[0]
    for found, good in ((sound(asked), True), (kind(asked), False)):
        drawn = randbytes(random.Random(1))
        batch = Batch([found.randomise(0, drawn) for _ in range(3000)], found.words)
        assert {one.name: one.passed for one in choice_checks(batch, found, 0)}[check] is good


def randbytes(source):
    return lambda count: source.getrandbits(8 * count).to_bytes(count, "big")
