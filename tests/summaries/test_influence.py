"""The stated influence of false reports is an upper bound, and a tight one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from ldp_client import mechanism_for
from ldp_client.mechanisms import MECHANISMS
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Study
from summaries.influence import (
    influence_in_words,
    mean_influence,
    share_influence,
)
from tests import studies

SLOPES = {"laplace": laplace, "gaussian": norm}


def mechanisms():
    found = {}
    for question in Study(studies.document(*studies.ALL, *studies.NEWER)).questions:
        found[question.mechanism.name] = mechanism_for(question)
    return found


@pytest.mark.parametrize("name", [n for n, m in mechanisms().items() if isinstance(m, ChoiceMechanism)])
def test_share_influence_bounds_the_worst_false_report(name):
    """The worst false report supports a choice of share 0, or does not support one of share 1."""
    mechanism = mechanisms()[name]
    p, q = float(mechanism.p), float(mechanism.q)
    moved = max((1 - q) / (p - q), (p - 0) / (p - q))
    assert moved <= share_influence(mechanism) <= 2 * moved


@pytest.mark.parametrize("name", [n for n in mechanisms() if n in SLOPES])
def test_mean_influence_matches_numerical_slope(name):
    """Against the numerical slope of the average of clipped reports, over all true answers."""
    mechanism = mechanisms()[name]
    width = mechanism.levels / mechanism.scale
    noise = SLOPES[name]()
    answers = np.linspace(0, width, 501)
    # E clip(x + noise) is the integral of P(x + noise > t) over the bounds.
    at = np.linspace(0, width, 501)
    expected = np.trapezoid(noise.sf(at[None, :] - answers[:, None]), at, axis=1)
    slope = np.diff(expected) / np.diff(answers)
    assert mean_influence(mechanism) == pytest.approx(1 / slope.min(), rel=1e-2)


def test_influence_in_words_covers_every_mechanism():
    tables = {name for name in MECHANISMS if name.startswith("table_")}
    assert mechanisms().keys() == {*MECHANISMS} - {"summed_gaussian"} - tables
    bounded = 0
    for mechanism in mechanisms().values():
        words = influence_in_words(mechanism, 0.05)
        assert words.startswith("If 5 % of the reports were false, ")
        assert influence_in_words(mechanism, 0.01) != words
        bounded += "could be moved by up to" in words
    assert bounded >= 9


@pytest.mark.parametrize("question", studies.TABLES, ids=lambda question: question["id"])
def test_influence_of_false_holders_is_unbounded(question):
    mechanism = mechanism_for(Study(studies.document(question, **studies.HOLDER)).questions[0])
    assert "1 % of the reports were false, estimates could be moved at will" in influence_in_words(
        mechanism, 0.01
    )
