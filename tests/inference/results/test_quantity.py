"""Quantities that are calculated from fits: their draws, notes and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from inference.results.quantity import Quantity
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises


def drawn(study, seed=0, centre=0.4):
    """A fit's draws of a share; equal seeds give correlated draws."""
    white = np.random.default_rng(seed).normal(size=(4, 1000))
    draws = centre + 0.03 * white
    return Quantity("p", f"p of {study}", draws, fits=(draws,), studies=frozenset({study}))


@pytest.mark.attack(18)
def test_note_about_same_people_survives_longer_calculations():
    """Hide in a longer calculation that the same people answered both fits."""
    first, second, other = drawn("same"), drawn("same", seed=1), drawn("another", seed=2)
    for found in ((first - other) - second, first - (other - second), (first / other) / second):
        assert "the same people answered both" in repr(found)
    assert "the same people" not in repr((first - other) - drawn("a third", seed=3))


def test_contrast_is_printed_with_its_direction():
    draws = np.asarray([[-0.1, 0.2, 0.3, 0.4]])
    quantity = Quantity("share q = yes, wave: b − a", "difference of the share", draws, contrast=True)
    assert quantity.to_document()["probability_of_direction"] == 0.75
    assert quantity.sentence().endswith("above 0 with probability 0.75.")
    below = Quantity("share q = yes, wave: b − a", "difference of the share", -draws, contrast=True)
    assert below.to_document()["direction"] == "below 0"
    assert "probability" not in Quantity("share q = yes", "share", draws).sentence()


@pytest.mark.attack(18)
def test_difference_cannot_be_combined_with_its_own_part():
    """Combine a difference with its own part, whose draws no longer pair."""
    one, two = drawn("last year's"), drawn("this year's")
    for again in (lambda: (one - two) - one, lambda: two / (one - two), lambda: (one - two) - (two - one)):
        with raises(InputError, "result.draws_do_not_pair"):
            again()
