"""An export under way while reports are deleted as their time is over: the rest passes for all of them."""

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
def test_an_export_under_way_does_not_end_as_if_it_were_whole(either, make_report, is_closed):  # noqa: F811
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
    # The next one is of what is left.
    assert list(open_export(either.collector, "habits").pages) == []


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_no_form_ends_well(habits, make_report, form):
    send(habits, make_report)
    found = open_export(habits.collector, "habits", dated=FORMATS[form].dated)
    stream = FORMATS[form].stream(found)
    next(stream)
    expire(habits)
    with pytest.raises(CutOffError, match="reports-deleted"):
        list(stream)


def test_a_withdrawal_ends_no_export(either, make_report):  # noqa: F811
    sent = send(either, make_report)
    pages = open_export(either.collector, "habits").pages
    count = len(next(pages))
    assert either.withdraw(sent[-1].id).status_code == 200
    assert count + sum(map(len, pages)) == len(sent) - 1


def test_nor_does_what_expires_of_another_study(either, make_study, make_report):  # noqa: F811
    other = make_study(id="another")
    either.publish(other)
    sent = send(either, make_report)
    assert either.put(make_report(other)).status_code == 201
    pages = open_export(either.collector, "habits").pages
    count = len(next(pages))
    assert delete_reports(either.collector.database, "another", either.day + A_DAY) == 1
    assert count + sum(map(len, pages)) == len(sent)


def test_who_resumes_learns_of_it(filled):  # noqa: F811
    """The connection breaks, and until the next one is there reports go."""
    with serving(cutting(filled.app, iter([4000]))) as url:
        reports = fetch_reports(url, "habits", TOKEN)
        assert next(reports).id == filled.sent[0].id
        expire(filled)
        with pytest.raises(TransferError, match="410: reports of habits were deleted while"):
            list(reports)


def test_who_resumes_says_what_was_so_at_the_beginning(filled):  # noqa: F811
    def ask(deletions):
        return filled.export(after=filled.sent[0].id, deletions=deletions)

    first = filled.export().headers["LDPKit-Deletions"]
    assert ask(first).status_code == 200
    expire(filled)
    assert problem(ask(first)) == (410, "reports-deleted")
    assert filled.export().headers["LDPKit-Deletions"] != first
    for wrong in ("-1", "x", "9" * 10, "²"):
        assert problem(ask(wrong)) == (422, "parameter-invalid")


def test_a_summary_that_is_counted_is_asked_for_again(habits, make_report, monkeypatch):
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
