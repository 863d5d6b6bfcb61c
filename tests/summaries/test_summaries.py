import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import summarize
from ldp_client.documents.errors import SummaryError
from schemas import Study
from summaries import Summary
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of

STUDY = Study(studies.document())
REPORTS = reports_of(STUDY, [studies.ANSWERS] * 300)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(0, len(REPORTS)), min_size=2, max_size=2).map(sorted))
def test_parts_merge_to_the_whole_in_any_grouping(cuts):
    first, second = cuts
    parts = (REPORTS[:first], REPORTS[first:second], REPORTS[second:])
    a, b, c = (summarize(STUDY, part) if part else Summary.empty(STUDY) for part in parts)
    whole = summarize(STUDY, REPORTS)
    for merged in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(a).merge(b)):
        assert merged.to_json() == whole.to_json()
    assert Summary.empty(STUDY).merge(whole).to_json() == whole.to_json()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda parts: parts["hours"]["values"].__setitem__(0, 1.5), "questions.hours.values"),
        (lambda parts: parts.pop("hours"), "questions"),
        (lambda parts: parts["hours"].update(n=4), "questions.hours.values"),
        (lambda parts: parts["ever"].update(values=[-1, 4]), "questions.ever.values"),
        (lambda parts: parts["rating"]["values"].__setitem__(0, 1 << 40), "questions.rating.values"),
    ],
)
def test_bad_summaries_name_their_field(change, field):
    document = json.loads(summarize(STUDY, REPORTS[:3]).to_json())
    change(document["questions"])
    with pytest.raises(SummaryError) as caught:
        Summary.from_json(json.dumps(document), STUDY)
    assert caught.value.field == field


def test_sums_of_records_are_those_of_their_payloads():
    sums = sum(np.frombuffer(report.payloads["rating"], ">i4").astype(np.int64) for report in REPORTS)
    assert summarize(STUDY, REPORTS).questions["rating"].values.tolist() == sums.tolist()


def test_summaries_of_other_documents_do_not_merge():
    with raises(SummaryError, "summary.merge_of_other_study"):
        Summary.empty(STUDY).merge(Summary.empty(Study(studies.document(version=2))))
