"""Reports expire while an export is running: the remaining part is taken for the whole."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collector.exports.formats import FORMATS, CutOffError
from collector.problems import ProblemError
from collector.remote.download import fetch_reports
from collector.reports import paging, running_summary
from collector.reports.paging import open_export
from ldp_client.documents.errors import TransferError
from tests.collector.answered import problem
from tests.collector.conftest import TOKEN
from tests.collector.test_download import _no_waiting, cutting, filled, serving  # noqa: F401
from tests.collector.test_operating import either  # noqa: F401
from tests.kit.deleting import delete_reports
from tests.kit.errors import raises

PAGE = 10
A_DAY = timedelta(1)


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", PAGE)


def send(harness, make_report, count=3 * PAGE):
    study = harness.collector.rules.find("habits", 1).study
    sent = [make_report(study) for _ in range(count)]
    assert harness.post([report.to_document() for report in sent]).status_code == 200
    return sorted(sent, key=lambda report: report.id)


def expire(harness):
    assert delete_reports(harness.collector.database, "habits", harness.day + A_DAY)


@pytest.mark.parametrize("is_closed", [False, True])
def test_expiry_during_an_export_aborts_the_export(either, make_report, is_closed):  # noqa: F811
    send(either, make_report)
    if is_closed:
        # Then PostgreSQL drops the table at once.
        either.client.post("/v1/studies/habits/close", headers=either.operator)
    pages = open_export(either.collector, "habits").pages
    assert len(next(pages)) == PAGE
    expire(either)
    with raises(ProblemError, "reports-deleted") as refused:
        list(pages)
    assert refused.value.kind.name == "reports-deleted"
    # The next export has the remaining reports.
    assert list(open_export(either.collector, "habits").pages) == []


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_expiry_aborts_exports_in_every_format(habits, make_report, form):
    send(habits, make_report)
    found = open_export(habits.collector, "habits", dated=FORMATS[form].dated)
    stream = FORMATS[form].stream(found)
    next(stream)
    expire(habits)
    with pytest.raises(CutOffError, match="reports-deleted"):
        list(stream)


def test_withdrawal_does_not_abort_an_export(either, make_report):  # noqa: F811
    sent = send(either, make_report)
    pages = open_export(either.collector, "habits").pages
    count = len(next(pages))
    assert either.withdraw(sent[-1].id).status_code == 200
    assert count + sum(map(len, pages)) == len(sent) - 1


def test_expiry_in_another_study_does_not_abort_an_export(either, make_study, make_report):  # noqa: F811
    other = make_study(id="another")
    either.publish(other)
    sent = send(either, make_report)
    assert either.put(make_report(other)).status_code == 201
    pages = open_export(either.collector, "habits").pages
    count = len(next(pages))
    assert delete_reports(either.collector.database, "another", either.day + A_DAY) == 1
    assert count + sum(map(len, pages)) == len(sent)


def test_resumed_export_fails_after_expiry(filled):  # noqa: F811
    """Reports expire between the broken connection and the next one."""
    with serving(cutting(filled.app, iter([4000]))) as url:
        reports = fetch_reports(url, "habits", TOKEN)
        assert next(reports).id == filled.sent[0].id
        expire(filled)
        with pytest.raises(TransferError, match="410: reports of habits were deleted while"):
            list(reports)


def test_resumed_export_must_state_the_initial_deletion_count(filled):  # noqa: F811
    def ask(deletions):
        return filled.export(after=filled.sent[0].id, deletions=deletions)

    first = filled.export().headers["LDPKit-Deletions"]
    assert ask(first).status_code == 200
    expire(filled)
    assert problem(ask(first)) == (410, "reports-deleted")
    assert filled.export().headers["LDPKit-Deletions"] != first
    for wrong in ("-1", "x", "9" * 10, "²"):
        assert problem(ask(wrong)) == (422, "parameter-invalid")


def test_summary_counted_during_expiry_asks_for_a_retry(habits, make_report, monkeypatch):
    send(habits, make_report)
    counted = running_summary._count_export

    def meanwhile(export, version):
        next(export.pages)
        expire(habits)
        return counted(export, version)

    monkeypatch.setattr(running_summary, "_count_export", meanwhile)
    rules = habits.collector.rules.find("habits", 1)
    monkeypatch.setattr(type(rules.tally), "is_kept", False)
    answer = habits.summary()
    assert problem(answer) == (503, "unavailable")
    assert "Retry-After" in answer.headers
