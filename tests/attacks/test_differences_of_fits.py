"""Tries to have the difference of two fits look surer than it is: one seed, or the same people, in both.

Defence: The analysis: the seed of a fit follows from its data, so that two fits draw independently; draws
of two fits are put in orders of their own, where the same people answered both a note says so, and a part
of a difference is not taken from it again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ldpkit
from inference.results.quantity import Quantity
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError
from ldpkit import ask
from tests.kit.errors import raises


def drawn(study, seed=0, centre=0.4):
    """What a fit with this seed says of a share: equal seeds give draws that go together."""
    white = np.random.default_rng(seed).normal(size=(4, 1000))
    draws = centre + 0.03 * white
    return Quantity("p", f"p of {study}", draws, origin=object(), study=study)


def test_fits_with_one_seed_are_taken_as_independent_as_they_are():
    last, this = drawn("last year's"), drawn("this year's", centre=0.44)
    assert np.corrcoef(last.draws.ravel(), this.draws.ravel())[0, 1] > 0.999
    gap = this - last
    assert gap.sd == pytest.approx(0.03 * np.sqrt(2), rel=0.05)
    assert gap.median == pytest.approx(0.04, abs=0.005)
    # Draw by draw the difference would be certain.
    assert 0.7 < gap.above(0) < 0.95
    assert (this / last).sd > 0.05


def test_two_questions_of_the_same_people_say_that_their_answers_may_go_together():
    one, two = drawn("same"), drawn("same", seed=1)
    assert "the same people answered both" in repr(one - two)
    assert "the same people" not in repr(drawn("last year's") - drawn("this year's"))


def test_the_note_stays_in_longer_calculations():
    first, second, other = drawn("same"), drawn("same", seed=1), drawn("another", seed=2)
    for found in ((first - other) - second, first - (other - second), (first / other) / second):
        assert "the same people answered both" in repr(found)
    assert "the same people" not in repr((first - other) - drawn("a third", seed=3))


def test_of_questions_of_which_each_device_answers_one_nobody_answered_two():
    def asked(question, seed):
        return replace(drawn("one of two", seed), people=frozenset({("one of two", question)}))

    a, again, b, other = asked("a", 0), asked("a", 1), asked("b", 2), drawn("another", seed=3)
    assert "the same people" not in repr(a - b)
    assert "the same people" not in repr((a - b) - other)
    assert "the same people answered both" in repr(a - again)
    assert "the same people answered both" in repr((a - b) - again)
    # An analysis may be of any of them.
    assert "the same people answered both" in repr(a - drawn("one of two", seed=4))


@pytest.mark.slow
def test_a_fit_s_quantities_know_who_answered():
    yes_no = [ask.yes_no(name, epsilon=2) for name in ("a", "b")]
    for ask_one in (True, False):
        study = ldpkit.study("s", "Title", yes_no, ask_one=ask_one)
        mechanisms = mechanisms_of(study)
        answers = [{"a": place % 3 == 0, "b": True} for place in range(200)]
        reports = [perturb_answers(study, mechanisms, one) for one in answers]
        found = ldpkit.fit(study, reports, method="laplace", seed=1)
        assert ("the same people" in repr(found["a"]["p"] - found["b"]["p"])) is not ask_one


def test_a_difference_is_not_taken_again_from_one_of_its_parts():
    one, two = drawn("last year's"), drawn("this year's")
    for again in (lambda: (one - two) - one, lambda: two / (one - two), lambda: (one - two) - (two - one)):
        with raises(InputError, "result.draws_do_not_pair"):
            again()


def test_a_number_is_refused_with_what_to_do_instead():
    one = drawn("this year's")
    for with_number in (lambda: 1 - one, lambda: one - 1, lambda: 2 / one):
        with pytest.raises(TypeError, match=r"with numbers calculate by its draws"):
            with_number()


def test_what_is_calculated_in_two_steps_says_in_which():
    a, b, c = (replace(drawn("one", seed), name=name, words=f"the {name}") for seed, name in enumerate("abc"))
    found = (a - b) / c
    assert (found.name, found.words) == ("(a − b) / c", "(the a minus the b) over the c")
    assert (a - (b / c)).name == "a − (b / c)"
