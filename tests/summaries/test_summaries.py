import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import summarize
from ldp_client import mechanism_for
from ldp_client.documents.errors import SummaryError
from ldp_client.mechanisms.base import pack_signed
from schemas import Study
from summaries import Summary
from summaries.reductions.histogram import histogram_cells, histogram_edges
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of

STUDY = Study(studies.document())
REPORTS = reports_of(STUDY, [studies.ANSWERS] * 300)


def same(left, right):
    return left.to_json() == right.to_json()


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(0, len(REPORTS)), min_size=2, max_size=2).map(sorted))
def test_parts_merge_to_the_whole_in_any_grouping(cuts):
    first, second = cuts
    parts = (REPORTS[:first], REPORTS[first:second], REPORTS[second:])
    a, b, c = (summarize(STUDY, part) if part else Summary.empty(STUDY) for part in parts)
    whole = summarize(STUDY, REPORTS)
    assert same(a.merge(b).merge(c), whole)
    assert same(a.merge(b.merge(c)), whole)
    assert same(c.merge(a).merge(b), whole)
    assert same(Summary.empty(STUDY).merge(whole), whole)


def test_values_match_the_payloads():
    whole = summarize(STUDY, REPORTS)
    bits = [int.from_bytes(report.payloads["occupation"], "little") for report in REPORTS]
    assert whole.questions["occupation"].values.tolist() == np.bincount(bits, minlength=8).tolist()
    index = [report.payloads["colour"][0] for report in REPORTS]
    assert whole.questions["colour"].values.tolist() == np.bincount(index, minlength=3).tolist()
    sums = sum(np.frombuffer(report.payloads["rating"], ">i4").astype(np.int64) for report in REPORTS)
    assert whole.questions["rating"].values.tolist() == sums.tolist()


@pytest.mark.parametrize("levels", [1, 256, 3_000_001])
def test_the_histogram_puts_every_grid_point_between_its_edges(levels):
    question = studies.with_epsilon(studies.NUMBER, "1")
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    mechanism.levels = levels
    edges = histogram_edges(levels)
    cells = histogram_cells(levels)
    assert len(edges) == cells + 1
    assert (edges[0], edges[-1]) == (-0.5, levels + 0.5)
    points = np.unique(
        np.clip(np.concatenate([edges - 0.5, edges + 0.5, [-(2**30), 2**30]]), -(2**30), 2**30)
    )
    from summaries.reductions import REDUCTIONS

    for point in points.astype(int):
        payload = np.frombuffer(pack_signed([int(point)]), np.uint8)[None]
        found = np.flatnonzero(REDUCTIONS["laplace"].reduce(mechanism, payload))
        assert found.tolist() == [np.searchsorted(edges, point)]


def change_values(document):
    document["questions"]["hours"]["values"][0] = 1.5


def drop_question(document):
    del document["questions"]["hours"]


def wrong_total(document):
    document["questions"]["hours"]["n"] += 1


def negative_cell(document):
    document["questions"]["ever"]["values"] = [-1, document["questions"]["ever"]["n"] + 1]


def impossible_sum(document):
    document["questions"]["rating"]["values"][0] = 1 << 40


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (change_values, "questions.hours.values"),
        (drop_question, "questions"),
        (wrong_total, "questions.hours.values"),
        (negative_cell, "questions.ever.values"),
        (impossible_sum, "questions.rating.values"),
    ],
)
def test_bad_summaries_name_their_field(change, field):
    document = json.loads(summarize(STUDY, REPORTS[:3]).to_json())
    change(document)
    with pytest.raises(SummaryError) as caught:
        Summary.from_json(json.dumps(document), STUDY)
    assert caught.value.field == field


def test_summaries_of_other_documents_do_not_merge():
    other = Study(studies.document(version=2))
    with raises(SummaryError, "summary.merge_of_other_study"):
        Summary.empty(STUDY).merge(Summary.empty(other))
