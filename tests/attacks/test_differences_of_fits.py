"""The difference of two fits looks more certain than it is, because they share a seed or the same people.

Defence: The analysis: the seed of a fit follows from its data, so that two fits draw independently; draws
of two fits are put in independent orders, a note says if the same people answered both, and a part of a
difference cannot be subtracted from it again.
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
    """A fit's draws of a share; equal seeds give correlated draws."""
    white = np.random.default_rng(seed).normal(size=(4, 1000))
    draws = centre + 0.03 * white
    return Quantity("p", f"p of {study}", draws, origin=object(), study_digest=study)


def test_difference_of_fits_with_same_seed_has_independent_draws():
    last, this = drawn("last year's"), drawn("this year's", centre=0.44)
    assert np.corrcoef(last.draws.ravel(), this.draws.ravel())[0, 1] > 0.999
    gap = this - last
    assert gap.sd == pytest.approx(0.03 * np.sqrt(2), rel=0.05)
    assert gap.median == pytest.approx(0.04, abs=0.005)
    # Draw by draw the difference would be certain.
    assert 0.7 < gap.above(0) < 0.95
    assert (this / last).sd > 0.05


def test_difference_notes_that_same_people_answered_both():
    one, two = drawn("same"), drawn("same", seed=1)
    assert "the same people answered both" in repr(one - two)
    assert "the same people" not in repr(drawn("last year's") - drawn("this year's"))


def test_note_about_same_people_survives_longer_calculations():
    first, second, other = drawn("same"), drawn("same", seed=1), drawn("another", seed=2)
    for found in ((first - other) - second, first - (other - second), (first / other) / second):
        assert "the same people answered both" in repr(found)
    assert "the same people" not in repr((first - other) - drawn("a third", seed=3))


def test_sample_one_questions_do_not_count_as_same_people():
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
def test_quantities_of_a_fit_know_who_answered():
    yes_no = [ask.yes_no(name, epsilon=2) for name in ("a", "b")]
    for sample_one_question in (True, False):
        study = ldpkit.study("s", "Title", yes_no, sample_one_question=sample_one_question)
        mechanisms = mechanisms_of(study)
        answers = [{"a": place % 3 == 0, "b": True} for place in range(200)]
        reports = [perturb_answers(study, mechanisms, one) for one in answers]
        found = ldpkit.fit(study, reports, method="gaussian_approx", seed=1)
        assert ("the same people" in repr(found["a"]["p"] - found["b"]["p"])) is not sample_one_question


def test_difference_cannot_be_combined_with_its_own_part():
    one, two = drawn("last year's"), drawn("this year's")
    for again in (lambda: (one - two) - one, lambda: two / (one - two), lambda: (one - two) - (two - one)):
        with raises(InputError, "result.draws_do_not_pair"):
            again()


def test_arithmetic_with_a_number_raises_and_names_alternative():
    one = drawn("this year's")
    for with_number in (lambda: 1 - one, lambda: one - 1, lambda: 2 / one):
        with pytest.raises(TypeError, match=r"To calculate with numbers, use its draws"):
            with_number()


def test_names_of_nested_calculations_have_brackets():
    a, b, c = (replace(drawn("one", seed), name=name, words=f"the {name}") for seed, name in enumerate("abc"))
    found = (a - b) / c
    assert (found.name, found.words) == ("(a − b) / c", "(the a minus the b) over the c")
    assert (a - (b / c)).name == "a − (b / c)"
