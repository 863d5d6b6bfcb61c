"""Deleting a study deletes an archive that is another database's by now, or files that were never its own."""

from __future__ import annotations

import shutil
import sqlite3

import pytest
from sqlalchemy import text

from collector.exports.store import Store
from collector.operator import archive_withdrawals
from collector.operator.overview import in_one_line
from ldp_client.documents.errors import InputError
from tests.attacks.test_archives_elsewhere import delete, withdrawn
from tests.collector.commands import run
from tests.collector.test_archives import archived, archived_ids, closed, many, status  # noqa: F401
from tests.collector.test_datasets import STUDY, contents
from tests.kit.errors import raises


def killed(*_, **__):
    raise KeyboardInterrupt


def killed_at(monkeypatch, step, many):  # noqa: F811
    """Take out of an archive what was withdrawn, until a step."""
    with monkeypatch.context() as context:
        context.setattr(archive_withdrawals, step, killed)
        with pytest.raises(KeyboardInterrupt):
            archived(many)


def test_a_restored_copy_deletes_no_archive_whose_change_was_killed(closed, tmp_path, monkeypatch):  # noqa: F811
    archived(closed)
    copy = tmp_path / "restored.sqlite3"
    with sqlite3.connect(closed.harness.path) as live, sqlite3.connect(copy) as restored:
        live.backup(restored)
    gone = closed.sent[(1, closed.days[0])][0]
    assert withdrawn(closed, gone) == 503
    killed_at(monkeypatch, "finish", closed)
    before = contents(closed.root)
    with pytest.raises(InputError, match="this database is a copy that was restored"):
        run("admin", "delete-study", "habits", "--yes", "--database", f"sqlite:///{copy}")
    assert contents(closed.root) == before
    # Its own database deletes it, wherever the change was killed.
    delete(closed)
    assert (status(closed)["state"], contents(closed.root)) == ("deleted", {})


def test_files_beside_an_archive_are_not_deleted_with_it(closed):  # noqa: F811
    archived(closed)
    stray = closed.root / STUDY / "study_version=1/day=2020-01-01/part-00.parquet"
    stray.parent.mkdir(parents=True)
    shutil.copy(next(closed.root.rglob("*.parquet")), stray)
    before = contents(closed.root)
    with raises(InputError, "archive.extra_files", "2020-01-01"):
        delete(closed)
    assert (contents(closed.root), status(closed)["state"]) == (before, "archived")
    stray.unlink()
    delete(closed)
    assert contents(closed.root) == {}


def folders(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}


def test_no_folder_says_that_there_was_a_study(closed):  # noqa: F811
    """study_id=habits/study_version=1/day=2026-11-01: who reported when, of a study that is deleted."""
    archived(closed)
    other = closed.root / "study_id=other" / "study_version=1"
    other.mkdir(parents=True)
    delete(closed)
    assert folders(closed.root) == {"study_id=other", "study_id=other/study_version=1"}


def test_a_folder_with_a_file_of_somebody_stays(closed):  # noqa: F811
    archived(closed)
    (closed.root / STUDY / "study_version=1" / "notes.txt").write_text("mine")
    delete(closed)
    assert folders(closed.root) == {STUDY, f"{STUDY}/study_version=1"}


def test_no_folder_of_a_day_whose_reports_were_withdrawn_stays(closed):  # noqa: F811
    archived(closed)
    day = closed.days[0]
    left = {path for path in folders(closed.root) if not path.endswith(f"study_version=1/day={day}")}
    assert len(left) == len(folders(closed.root)) - 1
    for report in closed.sent[(1, day)]:
        assert withdrawn(closed, report) == 503
    archived(closed)
    assert folders(closed.root) == left


def test_a_study_is_not_deleted_while_files_of_its_archive_are_away(closed, tmp_path):  # noqa: F811
    archived(closed)
    file = next(closed.root.rglob("*.parquet"))
    away = tmp_path / "away.parquet"
    file.rename(away)
    before = contents(closed.root)
    with raises(InputError, "archive.files_missing", file.name):
        delete(closed)
    assert (contents(closed.root), status(closed)["state"]) == (before, "archived")
    # A damaged one may go: only that it is there counts.
    file.write_bytes(away.read_bytes()[:-1])
    delete(closed)
    assert (contents(closed.root), status(closed)["state"]) == ({}, "deleted")


@pytest.mark.parametrize("at", ["_manifest.json", "part-00.parquet", "part-02.parquet"])
def test_a_deletion_killed_among_the_files_goes_on(closed, monkeypatch, at):  # noqa: F811
    archived(closed)
    genuine = Store.remove

    def remove(store, path):
        if path.endswith(at):
            raise KeyboardInterrupt
        genuine(store, path)

    with monkeypatch.context() as context:
        context.setattr(Store, "remove", remove)
        with pytest.raises(KeyboardInterrupt):
            delete(closed)
    delete(closed)
    assert (status(closed)["state"], contents(closed.root)) == ("deleted", {})


def marks(root):
    return [path.read_bytes() for path in root.rglob("_unfinished.json")]


@pytest.mark.parametrize(
    ("owner", "step", "left"),
    [
        ("collector.operator.archiving", "_delete_rows", [b""]),
        ("collector.exports.store.Store", "remove", [b""]),
        ("collector.operator.archiving", "_forget", []),
    ],
)
def test_a_deletion_killed_after_the_files_leaves_no_days(closed, monkeypatch, owner, step, left):  # noqa: F811
    """The mark was the manifest, with each part's day and count, and stayed: the address was forgotten."""
    archived(closed)
    genuine = Store.remove

    def at_the_mark(store, path):
        return killed() if path.endswith("_unfinished.json") else genuine(store, path)

    with monkeypatch.context() as context:
        context.setattr(f"{owner}.{step}", at_the_mark if step == "remove" else killed)
        with pytest.raises(KeyboardInterrupt):
            delete(closed)
    assert marks(closed.root) == left
    assert list(closed.root.rglob("day=*")) == []
    delete(closed)
    assert (status(closed)["state"], contents(closed.root)) == ("deleted", {})
    assert folders(closed.root) == set()


def broken_off(closed, monkeypatch):  # noqa: F811
    archived(closed)
    with monkeypatch.context() as context:
        context.setattr("collector.operator.archiving._forget", killed)
        with pytest.raises(KeyboardInterrupt):
            delete(closed)


def test_a_deletion_that_was_broken_off_says_so_and_keeps_no_withdrawal(closed, monkeypatch):  # noqa: F811
    """It was called deleted, each withdrawal waited for good, and the audit log knew of nothing."""
    broken_off(closed, monkeypatch)
    again = "being deleted: run `ldpkit admin delete-study habits --yes` again"
    found = status(closed)
    assert (found["state"], found["attention"]) == ("being deleted", [again])
    assert again in in_one_line(found)
    with pytest.raises(InputError, match=again):
        run("admin", "archive", "habits", "--to", str(closed.root), "--yes", "--database", closed.url)
    assert withdrawn(closed, closed.sent[(1, closed.days[0])][0]) == 200
    delete(closed)
    assert status(closed)["state"] == "deleted"
    with closed.harness.collector.database.read() as session:
        query = text("SELECT COUNT(*) FROM audit_log WHERE action = 'delete study'")
        assert session.execute(query).scalar_one() == 1


def test_a_deletion_does_not_go_on_while_the_disk_is_away(closed, monkeypatch, tmp_path):  # noqa: F811
    broken_off(closed, monkeypatch)
    closed.root.rename(tmp_path / "away")
    with raises(InputError, "archive.address_missing"):
        delete(closed)
    assert status(closed)["state"] == "being deleted"
    (tmp_path / "away").rename(closed.root)
    delete(closed)
    assert status(closed)["state"] == "deleted"


def test_what_somebody_put_where_a_deleted_archive_was_stays(closed, monkeypatch):  # noqa: F811
    broken_off(closed, monkeypatch)
    (closed.root / STUDY).mkdir()
    (closed.root / STUDY / "_manifest.json").write_text("mine")
    before = contents(closed.root)
    delete(closed)
    assert (status(closed)["state"], contents(closed.root)) == ("deleted", before)


def test_after_a_change_that_was_killed_early_the_advice_is_to_go_on_with_it(closed, monkeypatch):  # noqa: F811
    """It told to delete the only files by hand."""
    archived(closed)
    gone = closed.sent[(1, closed.days[0])][0]
    assert withdrawn(closed, gone) == 503
    killed_at(monkeypatch, "_rewrite", closed)
    advice = f"run `ldpkit admin archive habits --to {closed.root}` first"
    with pytest.raises(InputError, match=advice) as refused:
        delete(closed)
    assert "delete its files" not in str(refused.value)
    assert archived_ids(closed.root) == closed.ids
    run("admin", "archive", "habits", "--to", str(closed.root), "--database", closed.url)
    delete(closed)
    assert status(closed)["state"] == "deleted"
