"""Exports are whole, in order and resumable, or say that they are not; some summaries are not kept."""

import json
import traceback
from datetime import timedelta

import pytest

from collector import store
from collector.reports import paging
from collector.reports.paging import CutOffError, open_export
from schemas import Study
from tests import studies
from tests.kit.answers import delete_reports, delete_study, problem
from tests.kit.collectors import build_report, build_study, device_report

PAGE = 10


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", PAGE)


@pytest.mark.parametrize("page_bytes", [1, 4 << 20])
def test_reports_and_versions_that_come_during_an_export_are_harmless(filled, monkeypatch, page_bytes):
    monkeypatch.setattr(paging, "PAGE_BYTES", page_bytes)
    parts = open_export(filled.collector, "habits").parts
    text = next(parts)
    late = [build_report(build_study(), id=digit * 32) for digit in "0f"]
    filled.post([report.to_document() for report in late])
    later = build_study(version=2, title="Later")
    filled.publish(later)
    filled.put(build_report(later, id="e" * 32))
    *lines, end = (text + b"".join(parts)).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [*(one.id for one in filled.sent), "f" * 32]
    assert json.loads(end)["reports"] == 41


@pytest.mark.attack(19)
@pytest.mark.parametrize("is_closed", [False, True])
def test_expiry_during_an_export_aborts_the_export(either, study, is_closed):
    """Reports expire while an export runs: the rest must not pass for the whole."""
    either.post([build_report(study).to_document() for _ in range(3 * PAGE)])
    if is_closed:
        # Then PostgreSQL drops the table at once.
        either.close()
    export = open_export(either.collector, "habits")
    assert next(export.parts).count(b"\n") == PAGE
    assert delete_reports(either.collector.database, "habits", either.day + timedelta(1))
    with pytest.raises(CutOffError, match="reports-deleted"):
        list(export.parts)
    # What goes on with it later is refused too. The next export has the remaining reports.
    response = either.export(after="0" * 32, deletions=str(export.deletions))
    assert problem(response) == (410, "reports-deleted")
    assert either.exported() == []


def test_withdrawal_and_expiry_elsewhere_do_not_abort_an_export(filled):
    other = build_study(id="another")
    filled.publish(other)
    assert filled.put(build_report(other)).status_code == 201
    export = open_export(filled.collector, "habits")
    first = next(export.parts)
    assert delete_reports(filled.collector.database, "another", filled.day + timedelta(1)) == 1
    assert filled.withdraw(filled.sent[-1].id).status_code == 200
    *lines, _end = b"".join([first, *export.parts]).splitlines()
    assert len(lines) == len(filled.sent) - 1
    after, deletions = filled.sent[0].id, filled.export().headers["LDPKit-Deletions"]
    assert deletions == str(export.deletions)
    assert filled.export(after=after, deletions=deletions).status_code == 200


@pytest.mark.attack(19)
def test_deleted_study_cannot_be_exported(filled):
    """Export a study that is deleted, also meanwhile: no part may pass for the whole."""
    parts = open_export(filled.collector, "habits").parts
    assert next(parts).count(b"\n") == PAGE
    delete_study(filled.collector.database, "habits")
    with pytest.raises(CutOffError, match="study-deleted"):
        list(parts)
    for answer in (filled.export(), filled.export(format="dated"), filled.summary()):
        assert problem(answer) == (410, "study-deleted")


@pytest.mark.attack(15)
def test_export_slots_are_limited_and_released(habits):
    """Begin many exports and read none: their number is limited, and one that ends gives its place back."""
    path = "/v1/studies/habits/export"
    held = [habits.client.get(path, headers=habits.operator, buffered=False) for _ in range(8)]
    refused = habits.client.get(path, headers=habits.operator)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    for response in held:
        response.close()
    # Read to their end, or asked for their head alone; nobody closes them.
    for _ in range(9):
        assert habits.export().data
        assert habits.client.head(path, headers=habits.operator).status_code == 200


@pytest.mark.attack(19)
@pytest.mark.parametrize("form", ["ndjson", "dated"])
def test_export_that_fails_midway_is_incomplete_and_quotes_no_report(filled, monkeypatch, caplog, form):
    """An export fails while it holds a report: what came must not pass for the whole."""
    assert b"ldpkit.export-end" in filled.export(format=form).data
    genuine, left = store.report_page, iter([True] * 3)

    def read_or_fail(*arguments):
        if not next(left, False):
            raise KeyError(filled.sent[0].id)
        return genuine(*arguments)

    monkeypatch.setattr(store, "report_page", read_or_fail)
    sent = []
    with pytest.raises(CutOffError, match="internal") as cut:
        sent.extend(filled.export(format=form).response)
    assert len(sent) > 2
    assert b"ldpkit.export-end" not in b"".join(sent)
    assert filled.sent[0].id not in "".join(traceback.format_exception(cut.value)) + caplog.text
    # Before the first report it is a status.
    assert filled.export(format=form).status_code == 500


@pytest.mark.attack(15)
@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ({**studies.CHOICE, "choices": {"count": 8200}}, "summary-too-costly"),
        (studies.choice_of("olh", 200), "summary-too-costly"),
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
