"""Decoded columns: the noisy answer as people write it, and values that are unbiased under the noise."""

import json

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Report, Study
from summaries.decoding import Decoding, decoder_of
from tests import studies

N = 4000
# A false alarm in 2 million; the draws are the same each time.
MOST_SD = 5.0


def columns_of(question, answer):
    mechanism = studies.mechanism_of(question)
    random = NotForRealAnswers(np.random.default_rng(3).bytes)
    decoder = decoder_of(mechanism)
    rows = [decoder.cells(mechanism.perturb(answer, random)) for _ in range(N)]
    return dict(zip(decoder.columns, zip(*rows)))


def require_mean(values, truth):
    values = np.asarray(values)
    assert abs(values.mean() - truth) < MOST_SD * values.std() / np.sqrt(N)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "olh", "hadamard", "randomized_response"])
def test_choice_columns_are_unbiased_for_every_mechanism(name):
    found = columns_of({**studies.CHOICE, "mechanism": {"name": name, "epsilon": "1"}}, "worker")
    labels = studies.CHOICE["choices"]
    assert list(found) == ["noisy.occupation", *(f"unbiased.occupation[{label}]" for label in labels)]
    for label in labels:
        require_mean(found[f"unbiased.occupation[{label}]"], float(label == "worker"))
    said = found["noisy.occupation"]
    if name == "randomized_response":
        assert set(said) == set(labels)
    else:
        assert all(set(json.loads(one)) <= set(labels) for one in said)


def test_yes_no_has_one_unbiased_column_also_memoized():
    for question in (studies.YES_NO, {**studies.MEMOIZED, "id": "ever"}):
        for answer in (True, False):
            found = columns_of(question, answer)
            assert list(found) == ["noisy.ever", "unbiased.ever"]
            require_mean(found["unbiased.ever"], float(answer))


def test_refusals_have_a_column_and_no_unbiased_number():
    number = {**studies.NUMBER, "refusal": {"share": "0.5"}}
    for answer in (None, 2.0):
        found = columns_of(number, answer)
        assert list(found) == ["noisy.hours", "refused.hours"]
        require_mean(found["refused.hours"], float(answer is None))
    found = columns_of({**studies.ONE_OF, "refusal": True}, None)
    assert {"student", None} < set(found["noisy.colour"])
    require_mean(found["refused.colour"], 1.0)
    require_mean(found["unbiased.colour[worker]"], 0.0)


def test_versions_share_columns_and_records_are_undecoded():
    """A question that changes its kind becomes text; a regression's record is named once as undecoded."""
    first = Study(studies.document(studies.YES_NO, studies.LINEAR))
    stated = {"name": "hadamard", "epsilon": "1"}
    many = {**studies.CHOICE, "id": "place", "choices": {"count": 65}, "mechanism": stated}
    second = Study(studies.document({**studies.NUMBER, "id": "ever"}, studies.LINEAR, many, version=2))
    decoding = Decoding(lambda version, _: {1: first, 2: second}[version])
    half = mechanism_for(second.questions[0]).levels // 2
    reports = [
        Report("0" * 32, "survey", 1, first.digest, {"ever": b"\x01"}),
        Report("1" * 32, "survey", 2, second.digest, {"ever": half.to_bytes(4, "big")}),
    ]
    for report in reports:
        decoding.meet(report)
    assert decoding.columns == {"noisy.ever": False, "unbiased.ever": True}
    assert decoding.undecoded == ["rating", "place"]
    assert decoding.cells(reports[0])["noisy.ever"] == "yes"
    assert decoding.cells(reports[1])["unbiased.ever"] == pytest.approx(6, abs=1e-4)
    # A table of numbers and texts has it as one; a spreadsheet takes it as what it is.
    assert isinstance(decoding.cells(reports[1])["noisy.ever"], float)
