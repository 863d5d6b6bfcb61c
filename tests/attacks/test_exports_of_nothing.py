"""The last copy of a study's reports, replaced by an export of none: the study was deleted meanwhile."""

from __future__ import annotations

import pytest

from collector.exports.formats import FORMATS
from collector.operator import fitting
from collector.operator.archiving import archive, settled
from collector.operator.retention import delete_study
from collector.problems import ProblemError
from collector.reports import paging
from collector.reports.paging import Opened, open_export
from collector.storage.migrating import opened
from ldp_client.documents.errors import TransferError
from tests.collector.answered import problem
from tests.collector.commands import run
from tests.collector.conftest import TOKEN
from tests.collector.test_archives import closed, many  # noqa: F401


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_of_a_deleted_study_nothing_is_exported(habits, study, make_report, form):
    habits.put(make_report(study))
    delete_study(habits.collector.database, "habits")
    assert problem(habits.export(format=form)) == (410, "study-deleted")
    assert problem(habits.summary()) == (410, "study-deleted")
    assert problem(habits.summary(version=1)) == (410, "study-deleted")


@pytest.mark.slow
def test_the_last_copy_stays(start_server, study, make_report, tmp_path, monkeypatch):
    server = start_server()
    monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
    document = tmp_path / "study.json"
    document.write_text(study.to_json())
    run("publish", str(document), "--to", server.url)
    assert server.put(make_report(study)) == 201
    kept = {}
    for name, options in (("reports.ndjson", ()), ("reports.csv", ()), ("summary.json", ("--summary",))):
        run("export", "habits", "--to", server.url, "--out", str(tmp_path / name), *options)
        kept[name] = (tmp_path / name).read_bytes(), options
    run("admin", "delete-study", "habits", "--yes", "--database", f"sqlite:///{server.database}")
    for name, (content, options) in kept.items():
        with pytest.raises(TransferError, match="410: the reports of habits were deleted"):
            run("export", "habits", "--to", server.url, "--out", str(tmp_path / name), *options)
        assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("how", ["deleted", "archived"])
def test_an_export_under_way_does_not_end_as_if_it_were_whole(closed, tmp_path, monkeypatch, how):  # noqa: F811
    monkeypatch.setattr(paging, "PAGE_REPORTS", 10)
    source = Opened(closed.harness.collector.database, closed.harness.collector.rules)
    pages = open_export(source, "habits").pages
    assert len(next(pages)) == 10
    with opened(closed.url, 5) as database:
        if how == "deleted":
            delete_study(database, "habits")
        else:
            archive(database, settled(closed.order(tmp_path / "archive")))
    with pytest.raises(ProblemError) as refused:
        list(pages)
    assert refused.value.kind.name == f"study-{how}"


@pytest.mark.parametrize("how", ["deleted", "archived"])
def test_what_was_fitted_goes_with_a_study_and_stays_with_an_archive(closed, tmp_path, monkeypatch, how):  # noqa: F811
    monkeypatch.setattr(fitting, "run_fit", lambda *_: fitting.Fitted(1, {}))
    source = Opened(closed.harness.collector.database, closed.harness.collector.rules)
    fitting.Fitter(source).fit_all()
    with opened(closed.url, 5) as database:
        if how == "deleted":
            delete_study(database, "habits")
        else:
            archive(database, settled(closed.order(tmp_path / "archive")))
    fitting.Fitter(source).fit_all()
    with closed.harness.collector.database.read() as session:
        assert (fitting.last_fitted(session, 1, 2) is None) == (how == "deleted")
