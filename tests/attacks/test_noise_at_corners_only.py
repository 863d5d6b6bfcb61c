"""Attack: noise that is right where an audit looks (corners, one by one, Python) and missing elsewhere.

Defence: The repository's tests: they fail, as they do for a mechanism that no check is written for.
"""

import shutil

import numpy as np
import pytest

from ldp_client.audit.answers import inside_answers
from ldp_client.audit.auditing import draw
from ldp_client.bulk import numbers, perturbing, quantising
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms import mechanism_for
from ldp_client.mechanisms.base import Mechanism, Privacy
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Study
from tests import studies
from tests.privacy.checks.auditing import audit_mechanism, sample_checks
from tests.privacy.checks.javascript import PORT, javascript_checks
from tests.privacy.checks.reports import bulk_checks

STUDY = Study(studies.document(studies.PRODUCTS))
PRODUCTS = STUDY.questions[0]
YES_NO_RECORD = Study(studies.document(studies.YES_NO_RECORD)).questions[0]
SIGNS = "signs follow their law"
STEP = "a record decides nothing but on which side of a step its product is"


def failed(checks):
    return {check.name for check in checks if not check.passed}


class TruthfulInside(SampledProducts):
    """No coin, and no rounding, for ages well between the bounds."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)[0]
        i, j = self.coordinates[told // 2]
        if abs(quantised[1]) < UNIT // 2:
            told = 2 * (told // 2) + (quantised[i] * quantised[j] > 0)
        return bytes([told])


class OneProductForSome(SampledProducts):
    """One product alone of married people of a certain age."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)
        return told if quantised[2] < 0 or abs(quantised[1]) == UNIT else bytes([1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TruthfulInside, OneProductForSome])
def test_missing_noise_between_corners_is_detected(kind):
    found = failed(audit_mechanism(kind(PRODUCTS), PRODUCTS, 2000).checks)
    assert {f"other records: {SIGNS}", f"other records: {STEP}"} <= found


@pytest.mark.slow
def test_real_sampled_products_pass_audit():
    assert failed(audit_mechanism(SampledProducts(PRODUCTS), PRODUCTS, 2000).checks) == set()


def truthful_products(mechanism, records, random):
    kept, mechanism.threshold = mechanism.threshold, 1 << 32
    try:
        return numbers.sampled_products(mechanism, records, random)
    finally:
        mechanism.threshold = kept


def truthful_responses(mechanism, records, random):
    rows = numbers.gaussian_record(mechanism, records, random)
    rows[:, -1] = np.asarray(records)[:, -1]
    return rows


@pytest.mark.parametrize(
    ("question", "fault", "expected"),
    [
        (PRODUCTS, truthful_products, SIGNS),
        (YES_NO_RECORD, truthful_responses, "the response follows its law"),
    ],
    ids=["products", "responses"],
)
def test_faulty_bulk_randomiser_is_detected(monkeypatch, question, fault, expected):
    mechanism = mechanism_for(question)
    assert failed(bulk_checks(mechanism, question, 2000, sample_checks)) == set()
    monkeypatch.setitem(perturbing.RANDOMISERS, mechanism.name, fault)
    assert f"in bulk: {expected}" in failed(bulk_checks(mechanism, question, 2000, sample_checks))


def test_missing_clipping_of_bulk_columns_is_detected(monkeypatch):
    question = Study(studies.document(studies.LINEAR)).questions[0]
    mechanism = mechanism_for(question)
    name = "in bulk: columns give the integers of single answers"
    found = bulk_checks(mechanism, question, 300, sample_checks)
    assert {check.name: check.passed for check in found}[name]
    monkeypatch.setattr(quantising, "clip_norms", lambda vectors, radius: vectors)  # noqa: ARG005
    assert name in failed(bulk_checks(mechanism, question, 300, sample_checks))


COIN = "const coin = randomUint32(random);"
JAVASCRIPT = {
    "its own randomness": (
        "const coin = random.forTests ? randomUint32(random) : 0 * randomUint32(random);",
        "reports of its own randomness follow the law",
    ),
    "inside": (
        "const coin = (Math.abs(quantised[1]) < UNIT ? 0 : 1) * randomUint32(random);",
        "same payloads as Python on the same bytes",
    ),
}


@pytest.mark.slow
@pytest.mark.needs("node")
@pytest.mark.parametrize("fault", JAVASCRIPT)
def test_faulty_javascript_products_are_detected(tmp_path, fault):
    wrong, expected = JAVASCRIPT[fault]
    shutil.copytree(PORT.parent, tmp_path / "js")
    file = tmp_path / "js" / "mechanisms" / "sampled_products.js"
    text = file.read_text()
    assert COIN in text
    answers = list(inside_answers(PRODUCTS).values())

    def found():
        port = tmp_path / "js" / "index.js"
        args = (STUDY, PRODUCTS.id, mechanism_for(PRODUCTS), answers, 1000, sample_checks, port)
        return {name for name in failed(javascript_checks(*args)) if "time" not in name}

    assert found() == set()
    file.write_text(text.replace(COIN, wrong))
    assert f"in JavaScript: {expected}" in found()


class Unheard(Mechanism):
    """A mechanism of a kind that no check has heard of: one byte, and no noise at all."""

    name = "unheard_of"

    def __init__(self, question):
        super().__init__(question)
        self.payload_size = 1
        self.privacy = Privacy(question.mechanism.epsilon, question.mechanism.delta)

    def quantise(self, answer):
        return int(answer["age"] > 50)

    def randomise(self, quantised, random):  # noqa: ARG002
        return bytes([quantised])


class UnheardTail(Unheard):
    """The same behind a number."""

    def __init__(self, question):
        super().__init__(question)
        self.payload_size = 5

    def randomise(self, quantised, random):
        return numbers.pack_signed(numbers.draw("laplace", 1, random)[:, None])[0].tobytes() + bytes(
            [quantised]
        )


@pytest.mark.parametrize("kind", [Unheard, UnheardTail])
def test_mechanism_without_audit_check_fails(kind):
    mechanism = kind(PRODUCTS)
    answer = inside_answers(PRODUCTS)["middle"]
    wrong = [
        check for check in sample_checks(mechanism, answer, draw(mechanism, answer, 500)) if not check.passed
    ]
    assert any("the audit has no check" in check.detail and kind.name in check.detail for check in wrong)
