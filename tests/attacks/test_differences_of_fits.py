"""Tries to have the difference of two fits look surer than it is: one seed, or the same people, in both."""

from __future__ import annotations

import numpy as np
import pytest

from inference.results.quantity import Quantity
from ldp_client.documents.errors import InputError


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


def test_a_difference_is_not_taken_again_from_one_of_its_parts():
    one, two = drawn("last year's"), drawn("this year's")
    for again in (lambda: (one - two) - one, lambda: two / (one - two), lambda: (one - two) - (two - one)):
        with pytest.raises(InputError, match="come partly from one fit"):
            again()
