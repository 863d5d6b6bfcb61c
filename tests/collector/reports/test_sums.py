"""A running summary that is not kept, or was damaged. Random histories test what it counts."""

import pytest

from schemas import Study
from tests import studies
from tests.kit.answers import problem
from tests.kit.collectors import build_report, device_report

OLH = {"name": "olh", "epsilon": "1"}


@pytest.mark.attack(15)
@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ({**studies.CHOICE, "choices": {"count": 8200}}, "summary-too-costly"),
        ({**studies.CHOICE, "choices": {"count": 200}, "mechanism": OLH}, "summary-too-costly"),
        (studies.YES_NO_RECORD, "summary-impossible"),
    ],
    ids=["long", "many hashes", "needs the reports"],
)
def test_summary_that_would_slow_down_uploads_is_not_kept(empty, question, refused):
    """Publish a study with a summary that is long, or costs many hashes: uploads do not pay for it."""
    study = Study(studies.document(question, id="habits"))
    empty.publish(study)
    answer = {"occupation": 7} if question["ask"] == "choice" else {"chance": studies.ANSWERS["risk"]}
    assert empty.put(device_report(study, **answer)).status_code == 201
    assert problem(empty.summary()) == (409, refused)
    assert empty.sql("SELECT * FROM sums") == []


@pytest.mark.attack(19)
@pytest.mark.parametrize("sums", [bytes(8), b""])
def test_damaged_sums_are_rejected_until_the_study_is_deleted(habits, study, sums):
    """Damage the rows of a running summary: no report may be miscounted."""
    assert habits.put(build_report(study)).status_code == 201
    habits.sql("UPDATE sums SET sums = :sums", sums=sums)
    assert problem(habits.summary()) == problem(habits.put(build_report(study))) == (503, "unavailable")
    assert len(habits.exported()) == 1
    deleted = habits.client.delete("/v1/studies/habits", headers=habits.operator)
    assert deleted.get_json() == {"id": "habits", "deleted": 1, "complete": True}
