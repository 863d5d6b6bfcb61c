"""A study was deleted, or is deleted during an export: an empty or partial export is taken for the whole.

Defence: The collector: answers 410 for export and summary, also midway; the command leaves the file
unchanged.
"""

from __future__ import annotations

import pytest

from collector.exports.formats import FORMATS
from collector.problems import ProblemError
from collector.reports import paging
from collector.reports.paging import open_export
from tests.collector.answered import problem
from tests.kit.deleting import delete_study


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_deleted_study_cannot_be_exported(habits, study, make_report, form):
    habits.put(make_report(study))
    delete_study(habits.collector.database, "habits")
    assert problem(habits.export(format=form)) == (410, "study-deleted")
    assert problem(habits.summary()) == (410, "study-deleted")
    assert problem(habits.summary(version=1)) == (410, "study-deleted")


def test_deleting_the_study_aborts_a_running_export(habits, study, make_report, monkeypatch):
    habits.post([make_report(study).to_document() for _ in range(20)])
    monkeypatch.setattr(paging, "PAGE_REPORTS", 10)
    pages = open_export(habits.collector, "habits").pages
    assert len(next(pages)) == 10
    delete_study(habits.collector.database, "habits")
    with pytest.raises(ProblemError) as refused:
        list(pages)
    assert refused.value.kind.name == "study-deleted"
