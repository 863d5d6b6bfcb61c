"""The audit of time, with a clock that counts executed instructions: exact on any machine."""

import pytest

from ldp_client import mechanisms
from ldp_client.audit.answers import answers_for, pairs_of
from ldp_client.audit.views import Pair
from ldp_client.core.randomness import random_bits
from ldp_client.mechanisms.base import pack_signed
from ldp_client.mechanisms.number import Laplace
from schemas import Study
from tests import studies
from tests.privacy.checks.timing import slower, time_checks
from tests.kit.clocks import InstructionClock

RUNS = 60


def failures(question, kind=None):
    asked = Study(studies.document(question)).questions[0]
    mechanism = (kind or mechanisms.MECHANISMS[asked.mechanism.name])(asked)
    answers = answers_for(asked)
    first, second = pairs_of(mechanism, answers)[0]
    pair = Pair(mechanism, answers[first], answers[second])
    with InstructionClock() as clock:
        checks = list(time_checks(pair, answers, 1e-6, clock, RUNS))
    return {check.name for check in checks if not check.passed}


class CountingDown(Laplace):
    """Two-sided geometric noise, step by step: the time of many discrete samplers grows with the noise."""

    def randomise(self, quantised, random):
        steps = 0
        while random_bits(8, random) > 8:
            steps += 1
        sign = 1 if random_bits(8, random) & 1 else -1
        return pack_signed([quantised + sign * steps * self.scale // 32])


class QuickAtTheBound(Laplace):
    """Clamps answers by a shorter way than it quantises others."""

    def quantise(self, answer):
        if answer is not None and answer >= 12:
            return self.levels
        return super().quantise(answer)


@pytest.mark.parametrize("question", studies.ALL, ids=lambda q: q["id"])
def test_the_real_mechanisms_take_the_same_steps(question):
    assert failures(question) == set()


def test_planted_timing_leaks_are_found():
    assert failures(studies.NUMBER, CountingDown) == {"time does not depend on the noise"}
    assert failures(studies.NUMBER, QuickAtTheBound) == {"time does not depend on the answer"}


def test_times_differ_only_beyond_the_tolerance():
    times = [1000 + step for step in range(200)]
    assert not slower([taken * 21 // 20 for taken in times], times, 1e-6)
    assert slower([taken * 6 // 5 for taken in times], times, 1e-6)
    assert not slower(times, [taken * 6 // 5 for taken in times], 1e-6)
    assert not slower([7] * 100, [7] * 100, 1e-6)


def test_reports_without_lies_have_no_times_to_compare():
    """At ε = 20, none of a few thousand reports lies."""
    asked = Study(studies.document(studies.with_epsilon(studies.YES_NO, "20"))).questions[0]
    pair = Pair(mechanisms.MECHANISMS["randomized_response"](asked), False, True)
    found = list(time_checks(pair, answers_for(asked), 1e-6, lambda: 0, RUNS))
    assert [(check.passed, check.made) for check in found] == [(True, True), (True, False)]
