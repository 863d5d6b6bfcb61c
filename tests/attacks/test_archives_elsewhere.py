"""What is no archive of this database, or an older copy of it, lies where the archive is.

By a backup that was copied back, or storage that was mounted in the wrong place.
"""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from collector.exports import dataset
from collector.exports.store import Store
from collector.exports.unfinished import pending_manifest
from collector.operator import archiving
from ldp_client.documents.errors import InputError
from tests.collector.commands import run
from tests.collector.test_archives import (  # noqa: F401
    archived,
    archived_ids,
    closed,
    many,
    status,
    stored_ids,
    summaries,
)
from tests.collector.test_datasets import STUDY, Many, contents, manifest_of
from tests.kit.errors import raises

UNDONE = "nothing was deleted, and no withdrawal acknowledged"


@pytest.fixture
def other(make_harness, make_study, make_report, tmp_path):
    """Another collector's study of the same id, archived in a folder of its own."""
    found = Many(make_harness(database=f"sqlite:///{tmp_path / 'other.db'}"), make_study, make_report)
    found.harness.close()
    found.root = tmp_path / "other"
    archived(found)
    return found


@pytest.fixture(params=["an export of long ago", "the export of before", "an older archive"])
def backup(request, closed, tmp_path):  # noqa: F811
    """A copy of the folder that is older than the archive, which is there now."""
    older = tmp_path / "backup"
    if request.param != "an older archive":
        day = {"today": closed.days[1]} if "ago" in request.param else {}
        dataset.export_dataset(closed.order(older, **day))
    archived(closed)
    if request.param == "an older archive":
        shutil.copytree(closed.root, older)
    gone = closed.sent[(1, closed.days[0])].pop()
    assert closed.harness.withdraw(gone.id, secret=gone.secret).status_code == 503
    archived(closed)
    return older


def in_place_of(root, tmp_path, folder):
    """Put another folder where the archive is; what puts the archive back."""
    root.rename(tmp_path / "right")
    shutil.copytree(folder, root)

    def back():
        shutil.rmtree(root)
        (tmp_path / "right").rename(root)

    return back


def delete(many):  # noqa: F811
    run("admin", "delete-study", "habits", "--yes", "--database", many.url)


def withdrawn(many, report):  # noqa: F811
    return many.harness.withdraw(report.id, secret=report.secret).status_code


def test_an_older_copy_over_the_archive_deletes_no_report(closed, backup):  # noqa: F811
    before = {path: content for path, content in contents(closed.root).items() if ".parquet" in path}
    shutil.copytree(backup, closed.root, dirs_exist_ok=True)
    for _ in range(2):
        with pytest.raises(InputError, match=UNDONE):
            archived(closed)
    assert contents(closed.root).keys() >= before.keys()


@pytest.mark.slow
@pytest.mark.parametrize("lies", ["an older copy", "another database's"])
def test_no_withdrawal_is_acknowledged_by_what_is_not_the_archive(closed, other, backup, lies, tmp_path):  # noqa: F811
    gone, counted = closed.sent[(2, closed.days[1])][0], summaries(closed)
    assert withdrawn(closed, gone) == 503
    back = in_place_of(closed.root, tmp_path, backup if "older" in lies else other.root)
    with pytest.raises(InputError, match=UNDONE):
        archived(closed)
    assert (withdrawn(closed, gone), summaries(closed)) == (503, counted)
    back()
    assert archived(closed).withdrawn == 1
    assert withdrawn(closed, gone) == 200
    assert gone.id not in archived_ids(closed.root)


def test_deleting_a_study_deletes_no_other_database_s_archive(closed, other, tmp_path):  # noqa: F811
    archived(closed)
    back = in_place_of(closed.root, tmp_path, other.root)
    before = contents(closed.root)
    with raises(InputError, "archive.of_other_database", "another database's"):
        delete(closed)
    assert (contents(closed.root), status(closed)["state"]) == (before, "archived")
    back()
    delete(closed)
    assert (archived_ids(closed.root), status(closed)["state"]) == (set(), "deleted")


def test_nor_an_export_in_the_archive_s_place(closed, tmp_path):  # noqa: F811
    dataset.export_dataset(closed.order(tmp_path / "export"))
    archived(closed)
    back = in_place_of(closed.root, tmp_path, tmp_path / "export")
    with raises(InputError, "archive.of_other_database"):
        delete(closed)
    assert archived_ids(closed.root) == closed.ids
    back()
    delete(closed)
    assert status(closed)["state"] == "deleted"


@pytest.mark.slow
def test_a_deletion_that_was_killed_is_gone_on_with_and_by_its_own_database_alone(closed, other, monkeypatch):  # noqa: F811
    archived(closed)

    def killed(*_):
        raise KeyboardInterrupt

    # The files are gone, and the mark still says whose they were.
    monkeypatch.setattr(archiving.Store, "remove_empty", killed)
    with pytest.raises(KeyboardInterrupt):
        delete(closed)
    monkeypatch.undo()
    assert not list(closed.root.rglob("*.parquet"))
    with pytest.raises(InputError, match=UNDONE):
        archived(closed)
    other.root.rename(closed.root.with_name("away"))
    shutil.copytree(closed.root, other.root)
    with raises(InputError, "archive.of_other_database", "another database's"):
        delete(other)
    delete(closed)
    assert (status(closed)["state"], contents(closed.root)) == ("deleted", {})


def test_an_older_export_of_as_many_reports_is_not_what_rows_are_dropped_for(
    many,  # noqa: F811
    make_report,
    monkeypatch,
    tmp_path,
):
    many.root, harness = tmp_path / "archive", many.harness
    dataset.export_dataset(many.order(tmp_path / "backup"))
    harness.client.post("/v1/studies/habits/open", headers=harness.operator)
    key = (2, many.days[-1])
    gone, new = many.sent[key].pop(), make_report(many.studies[1])
    assert withdrawn(many, gone) == 200
    assert harness.put(new).status_code == 201
    many.sent[key].append(new)
    harness.close()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(archiving, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        archived(many)
    monkeypatch.undo()
    assert status(many)["state"] == "archived"
    shutil.copytree(tmp_path / "backup", many.root, dirs_exist_ok=True)
    assert archived(many).dropped == 120
    assert archived_ids(many.root) == many.ids


@pytest.mark.parametrize("damage", ["away", "short", "extra"])
@pytest.mark.parametrize("waits", [False, True])
def test_files_that_are_away_short_or_not_its_own_are_named(closed, damage, waits):  # noqa: F811
    archived(closed)
    # Of another bucket than the file.
    gone = next(one for one in closed.sent[(1, closed.days[0])] if one.id < "c")
    if waits:
        assert withdrawn(closed, gone) == 503
    file = closed.root / STUDY / manifest_of(closed.root)["files"][-1]["path"]
    content, extra = file.read_bytes(), file.with_name("part-77.parquet")
    if damage == "extra":
        extra.write_bytes(content)
    elif damage == "short":
        file.write_bytes(content[:-1])
    else:
        file.unlink()
    with pytest.raises(InputError, match=rf"1 file \(.*{(extra if damage == 'extra' else file).name}\)"):
        archived(closed)
    assert extra.exists() == (damage == "extra")
    assert withdrawn(closed, gone) == 503
    extra.unlink(missing_ok=True)
    file.write_bytes(content)
    assert archived(closed).withdrawn == 1


def test_an_archive_has_a_manifest_wherever_a_deletion_breaks_off(closed, monkeypatch):  # noqa: F811
    archived(closed)
    store, genuine = Store(str(closed.root)), Store.remove
    manifest = dataset.read_manifest(store, "habits")
    file = next(closed.root.rglob("*.parquet"))
    shutil.copy(file, file.with_name("part-77.parquet"))

    def remove(store, path):
        if path.endswith("part-77.parquet"):
            raise KeyboardInterrupt
        genuine(store, path)

    monkeypatch.setattr(Store, "remove", remove)
    with pytest.raises(KeyboardInterrupt):
        dataset.finish(store, manifest)
    monkeypatch.undo()
    assert pending_manifest(store, "habits") == manifest
    # What it was about to delete goes with the next run.
    archived(closed)
    assert archived_ids(closed.root) == closed.ids
    assert not file.with_name("part-77.parquet").exists()


def test_a_restored_copy_deletes_no_archive_that_went_on_without_it(closed, tmp_path):  # noqa: F811
    archived(closed)
    copy = tmp_path / "restored.sqlite3"
    with sqlite3.connect(closed.harness.path) as live, sqlite3.connect(copy) as restored:
        live.backup(restored)
    gone = closed.sent[(1, closed.days[0])][0]
    assert withdrawn(closed, gone) == 503
    archived(closed)
    before = contents(closed.root)
    with pytest.raises(InputError, match="this database is a copy that was restored"):
        run("admin", "delete-study", "habits", "--yes", "--database", f"sqlite:///{copy}")
    assert (contents(closed.root), status(closed)["state"]) == (before, "archived")
    delete(closed)
    assert archived_ids(closed.root) == set()


def test_a_study_whose_deletion_was_killed_is_no_study_of_no_reports(closed, monkeypatch):  # noqa: F811
    """It was closed and empty for a moment, and the next export replaced its last copy by nothing."""
    archived(closed)

    def remove(self, path):
        if path.endswith("_unfinished.json"):
            raise KeyboardInterrupt
        genuine(self, path)

    genuine = Store.remove
    with monkeypatch.context() as context:
        context.setattr(Store, "remove", remove)
        with pytest.raises(KeyboardInterrupt):
            delete(closed)
    assert status(closed)["state"] == "being deleted"
    assert closed.harness.export().status_code == 410
    delete(closed)
    assert status(closed)["state"] == "deleted"


def test_as_many_new_reports_as_were_withdrawn_are_other_reports(closed, make_report, monkeypatch):  # noqa: F811
    """Somebody opens the study and closes it again while its files are read."""
    harness, genuine = closed.harness, archiving._is_whole
    gone, new = closed.sent[(2, closed.days[2])][0], make_report(closed.studies[1])
    done = []

    def is_whole(*arguments):
        found = genuine(*arguments)
        if not done:
            done.append(harness.client.post("/v1/studies/habits/open", headers=harness.operator).status_code)
            done.extend((harness.put(new).status_code, withdrawn(closed, gone), harness.close().status_code))
        return found

    monkeypatch.setattr(archiving, "_is_whole", is_whole)
    harness.day = closed.days[2]
    archived(closed)
    assert done == [200, 201, 200, 200]
    assert archived_ids(closed.root) == closed.ids - {gone.id} | {new.id}
