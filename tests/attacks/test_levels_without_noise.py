"""Software is sound except for one level of a feature, or one choice, which it reports without noise.

Defence: The repository's tests: replay every level on each path with the last coin that gives the true
answer and the first that does not, and compare signs with their distribution level by level.
"""

import shutil

import numpy as np
import pytest

from ldp_client.audit.answers import random_answers
from ldp_client.bulk import numbers, perturbing
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms import mechanism_for
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Study
from tests import studies
from tests.portable.vector_records import LOGISTIC
from tests.privacy.checks.auditing import audit_mechanism, sample_checks
from tests.privacy.checks.javascript import PORT, javascript_checks
from tests.privacy.checks.reports import answers_of_all_levels, bulk_checks, possible_answers

LABELS = list("abcdefgh")
JOB = {"id": "job", "ask": "choice", "choices": LABELS}
AGE = {"id": "age", "bounds": ["18", "90"], "cuts": ["30", "40", "41", "60"]}
LEVELED = {**studies.with_epsilon(studies.PRODUCTS, "2"), **LOGISTIC, "features": [JOB, AGE]}
STUDY = Study(studies.document(LEVELED))
QUESTION = STUDY.questions[0]
SOUND = mechanism_for(QUESTION)
# The fifth label, and the third bin: none of the few records at corners, or between them, has both.
JOBS, AGES = slice(1, 8), slice(8, 12)
LABEL = [UNIT * sign for sign in SOUND.codes[0][4]]
BIN = [UNIT * sign for sign in SOUND.codes[1][2]]
LEVELS = {"label": (JOBS, LABEL), "bin": (AGES, BIN)}
SIGNS, SAME = "signs follow their law", "same payloads as one by one on the same bytes"
STEP = "a record decides nothing but on which side of a step its product is"
SAMPLES = 4000


def failed(checks):
    return {check.name for check in checks if not check.passed and "time" not in check.name}


def test_audit_answers_cover_every_level():
    for question_id in ("q", "health", "job", "income", "work", "survey", "form"):
        question = Study(studies.document({**LEVELED, "id": question_id})).questions[0]
        records = [SOUND.quantise(answer) for answer in random_answers(question)]
        for codes, span in zip(SOUND.codes, (JOBS, AGES)):
            tried = {tuple(record[span]) for record in records}
            assert tried == {tuple([UNIT * sign for sign in code]) for code in codes}


def test_audit_of_whole_reports_covers_every_choice():
    asked = {**studies.ONE_OF, "choices": LABELS}
    question = Study(studies.document(asked)).questions[0]
    assert answers_of_all_levels(mechanism_for(question), question) == LABELS
    assert len(possible_answers(mechanism_for(question), question)) < len(LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_audit_finds_noiseless_level_in_bulk(monkeypatch, level):
    span, code = LEVELS[level]

    def told_as_it_is(mechanism, records, random):
        rows = numbers.sampled_products(mechanism, records, random)
        vectors = np.asarray(records)
        first, second = np.asarray(mechanism.coordinates)[rows[:, 0] // 2].T
        people = np.arange(len(vectors))
        true = rows[:, 0] // 2 * 2 + (vectors[people, first] * vectors[people, second] > 0)
        return np.where((vectors[:, span] == code).all(axis=1), true, rows[:, 0])[:, None].astype(np.uint8)

    assert failed(bulk_checks(SOUND, QUESTION, SAMPLES, sample_checks)) == set()
    monkeypatch.setitem(perturbing.RANDOMISERS, SOUND.name, told_as_it_is)
    found = failed(bulk_checks(SOUND, QUESTION, SAMPLES, sample_checks))
    assert {f"in bulk: {SIGNS}", f"in bulk: {SAME}"} <= found


class TruthfulLevel(SampledProducts):
    """No coin for a label."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)[0]
        i, j = self.coordinates[told // 2]
        if quantised[JOBS] == LABEL:
            told = 2 * (told // 2) + (quantised[i] * quantised[j] > 0)
        return bytes([told])


class CoinOfLevel(SampledProducts):
    """A coin that is off by 2**-32 for a label."""

    def randomise(self, quantised, random):
        sound, self.threshold = self.threshold, self.threshold + (quantised[JOBS] == LABEL)
        try:
            return super().randomise(quantised, random)
        finally:
            self.threshold = sound


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TruthfulLevel, CoinOfLevel])
def test_audit_finds_noiseless_level_in_single_reports(kind):
    found = failed(audit_mechanism(kind(QUESTION), QUESTION, 1000).checks)
    assert f"other records: {STEP}" in found


CHOICE = {**studies.with_epsilon(studies.ONE_OF, "3"), "choices": LABELS}
TOLD = "reports of its own randomness follow the law"
REPLAYED = "same payloads as Python on the same bytes"
OF_LABEL = f"{LABEL}.every((one, index) => quantised[index + 1] === one)"
JAVASCRIPT = {
    "label": (
        LEVELED,
        "sampled_products.js",
        "const coin = randomUint32(random);",
        f"const drawnCoin = randomUint32(random), coin = {OF_LABEL} && GIVEN ? 0 : drawnCoin;",
    ),
    "choice": (
        CHOICE,
        "randomized_response.js",
        "truthOrOther(quantised, choices, threshold, random)",
        "[truthOrOther(quantised, choices, threshold, random), quantised][+(quantised === 6 && GIVEN)]",
    ),
}


@pytest.mark.slow
@pytest.mark.needs("node")
@pytest.mark.parametrize(("given", "expected"), [("!random.forTests", TOLD), ("random.forTests", REPLAYED)])
@pytest.mark.parametrize("fault", JAVASCRIPT)
def test_audit_finds_noiseless_level_in_javascript(tmp_path, fault, given, expected):
    asked, file, sound, wrong = JAVASCRIPT[fault]
    study = Study(studies.document(asked))
    question = study.questions[0]
    shutil.copytree(PORT.parent, tmp_path / "js")
    path = tmp_path / "js" / "mechanisms" / file
    assert sound in path.read_text()
    path.write_text(path.read_text().replace(sound, wrong.replace("GIVEN", given)))
    port, mechanism = tmp_path / "js" / "index.js", mechanism_for(question)
    answers = possible_answers(mechanism, question)[:2]
    args = (study, question.id, mechanism, answers, SAMPLES // 8, sample_checks)
    assert f"in JavaScript: {expected}" in failed(javascript_checks(*args, port))
    if given == "random.forTests":
        assert failed(javascript_checks(*args)) == set()
