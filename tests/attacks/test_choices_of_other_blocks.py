"""Hadamard response is decoded as if choices in other blocks were supported as often as those in the same."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from inference.analyses.reports import private_of
from inference.analyses.study_formula import analyse
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from summaries.decoding import decoder_of
from tests import studies

LABELS = ["none", "farm", "shop", "office", "clinic", "school"]
# One block, two, and more.
EPSILONS = ["0.5", "1", "2", "3", "5"]


def stated(epsilon: str, choices: int, *, refusal: bool = False):
    mechanism = {"name": "hadamard", "epsilon": epsilon}
    return {
        **studies.CHOICE,
        "choices": LABELS[:choices],
        "mechanism": mechanism,
        **({"refusal": True} if refusal else {}),
    }


@cache
def asked(epsilon: str, choices: int, *, refusal: bool = False):
    return Study(studies.document(stated(epsilon, choices, refusal=refusal))).questions[0]


def law_of(mechanism) -> tuple[list[bytes], np.ndarray]:
    """Every payload, and P(payload | answer) in fractions, (answers, payloads)."""
    payloads = [one.to_bytes(mechanism.payload_size, "big") for one in range(mechanism.columns)]
    p = Fraction(mechanism.threshold, 1 << mechanism.bits)
    each = p, (1 - p) / (2 * mechanism.blocks - 1)
    half = Fraction(2, mechanism.width)
    chances = [
        [half * each[not mechanism.supported(one, answer)] for one in payloads]
        for answer in range(mechanism.choices)
    ]
    assert all(sum(row) == 1 for row in chances)
    return payloads, np.asarray(chances, np.float64)


CASES = [
    (epsilon, choices, refusal) for epsilon in EPSILONS for choices in (3, 4, 6) for refusal in (False, True)
]


@pytest.mark.parametrize(("epsilon", "choices", "refusal"), CASES)
def test_hadamard_decoding_is_unbiased(epsilon, choices, refusal):
    """Computed from the exact distribution: the mean is 1 for the answer and 0 for every other choice."""
    question = asked(epsilon, choices, refusal=refusal)
    mechanism = mechanism_for(question)
    payloads, chances = law_of(mechanism)
    decoded = np.asarray([decoder_of(mechanism).cells(one)[1:] for one in payloads], np.float64)
    truth = np.eye(mechanism.choices)
    np.testing.assert_allclose(chances @ decoded, truth, atol=1e-9)
    private = private_of(question, payloads)
    # What is expected of the reports, and every report that there can be.
    shown = private.looks.shows[private.codes]
    np.testing.assert_allclose(private.looks.chances[0], chances @ shown, atol=1e-12)


@pytest.mark.slow
def test_honest_reports_pass_the_model_check():
    """Every analysis with two or more blocks used to claim that people had not followed the noise."""
    public = [{"id": "region", "choices": ["north", "south"]}]
    study = Study(studies.document(stated("1", 6), public=public))
    name = study.questions[0].id
    mechanisms, source = mechanisms_of(study), NotForRealAnswers(np.random.default_rng(1).bytes)
    truth = [0.35, 0.25, 0.15, 0.1, 0.05, 0.1]
    said = np.random.default_rng(2).choice(LABELS, 3000, p=truth)
    people = [{name: str(job), "region": ("north", "south")[at % 2]} for at, job in enumerate(said)]
    reports = [perturb_answers(study, mechanisms, one, source) for one in people]
    found = analyse(study, reports, f"{name} ~ region", seed=1, method="gaussian_approx")
    assert found.verdict.fit.state == "good"


def test_larger_epsilon_uses_several_blocks():
    blocks = [mechanism_for(asked(epsilon, 6)).blocks for epsilon in EPSILONS]
    assert blocks[0] == 1
    assert max(blocks) >= 4
