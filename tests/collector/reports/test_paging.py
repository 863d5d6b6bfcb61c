"""An export is whole, in order and resumable, or says that it is not whole."""

import json
from datetime import timedelta

import pytest

from collector.problems import ProblemError
from collector.reports import paging
from collector.reports.formats import FORMATS
from collector.reports.paging import open_export
from tests.kit.answers import problem
from tests.kit.deleting import delete_reports, delete_study
from tests.kit.errors import raises

PAGE = 10
A_DAY = timedelta(1)


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", PAGE)


def test_export_is_complete_and_ordered_by_id(filled, monkeypatch):
    response = filled.export()
    assert (response.status_code, response.content_type) == (200, "application/x-ndjson")
    *lines, end = response.text.splitlines()
    assert json.loads(end) == {"format": "ldpkit.export-end/1", "reports": 40}
    assert [json.loads(line)["id"] for line in lines] == [report.id for report in filled.sent]
    assert filled.exported() == filled.sent
    for start in (0, 9, 10, 39):
        assert filled.exported(after=filled.sent[start].id) == filled.sent[start + 1 :]
    monkeypatch.setattr(paging, "PAGE_BYTES", 1)
    assert len(filled.exported()) == 40


def test_reports_and_versions_that_come_during_an_export_are_harmless(filled, study, make_report, make_study):
    parts = FORMATS["ndjson"].stream(open_export(filled.collector, "habits"))
    text = next(parts)
    late = [make_report(study, id="0" * 32), make_report(study, id="f" * 32)]
    filled.post([report.to_document() for report in late])
    later = make_study(version=2, title="Later")
    filled.publish(later)
    filled.put(make_report(later, id="e" * 32))
    *lines, end = (text + b"".join(parts)).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [*(one.id for one in filled.sent), "f" * 32]
    assert json.loads(end)["reports"] == 41


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"format": "xlsx"}, "format"),
        ({"after": "xyz"}, "after"),
        ({"after": "0" * 32, "deletions": "²"}, "deletions"),
    ],
)
def test_a_wrong_parameter_is_named(habits, query, field):
    response = habits.export(**query)
    assert problem(response) == (422, "parameter-invalid")
    assert response.get_json(force=True)["field"] == field


@pytest.mark.attack(19)
@pytest.mark.parametrize("is_closed", [False, True])
def test_expiry_during_an_export_aborts_the_export(either, study, make_report, is_closed):
    """Reports expire while an export runs: the rest must not pass for the whole."""
    either.post([make_report(study).to_document() for _ in range(3 * PAGE)])
    if is_closed:
        # Then PostgreSQL drops the table at once.
        either.close()
    pages = open_export(either.collector, "habits").pages
    assert len(next(pages)) == PAGE
    assert delete_reports(either.collector.database, "habits", either.day + A_DAY)
    with raises(ProblemError, "reports-deleted"):
        list(pages)
    # The next export has the remaining reports.
    assert list(open_export(either.collector, "habits").pages) == []


def test_withdrawal_and_expiry_elsewhere_do_not_abort_an_export(filled, make_study, make_report):
    other = make_study(id="another")
    filled.publish(other)
    assert filled.put(make_report(other)).status_code == 201
    pages = open_export(filled.collector, "habits").pages
    count = len(next(pages))
    assert delete_reports(filled.collector.database, "another", filled.day + A_DAY) == 1
    assert filled.withdraw(filled.sent[-1].id).status_code == 200
    assert count + sum(map(len, pages)) == len(filled.sent) - 1


@pytest.mark.attack(19)
def test_resumed_export_must_state_the_initial_deletion_count(filled):
    """Reports expire between two parts of an export: the second part must be refused."""

    def ask(deletions):
        return filled.export(after=filled.sent[0].id, deletions=deletions)

    first = filled.export().headers["LDPKit-Deletions"]
    assert ask(first).status_code == 200
    assert delete_reports(filled.collector.database, "habits", filled.day + A_DAY)
    assert problem(ask(first)) == (410, "reports-deleted")
    assert filled.export().headers["LDPKit-Deletions"] != first


@pytest.mark.attack(19)
def test_deleted_study_cannot_be_exported(filled):
    """Export a study that is deleted, also meanwhile: no part may pass for the whole."""
    pages = open_export(filled.collector, "habits").pages
    assert len(next(pages)) == PAGE
    delete_study(filled.collector.database, "habits")
    with pytest.raises(ProblemError) as refused:
        list(pages)
    assert refused.value.kind.name == "study-deleted"
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
