"""A backup that is older than its archive ends all withdrawals, or brings back what was withdrawn since."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from collector.operator import archive_restored, archive_withdrawals, archiving
from ldp_client.documents.errors import InputError
from tests.attacks.test_archives_elsewhere import delete, other, withdrawn  # noqa: F401
from tests.attacks.test_deleting_archives import killed, killed_at
from tests.attacks.test_moved_archives import audited, moved
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
from tests.collector.test_datasets import contents
from tests.kit.errors import raises


def copied(source, target):
    """What `ldpkit backup` makes, or what is put in its place again."""
    with sqlite3.connect(source) as of, sqlite3.connect(target) as to:
        of.backup(to)


def restored(many, *more, root=None):  # noqa: F811
    """`ldpkit admin archive … --restored`."""
    command = ("admin", "archive", "habits", "--to", str(root or many.root), "--database", many.url)
    run(*command, "--restored", *(more or ("--yes",)))


@pytest.fixture
def gone(closed):  # noqa: F811
    """Reports that are withdrawn: before the backup, between it and its restoring, and after."""
    return [closed.sent[(1, day)][0] for day in closed.days[:2]] + [closed.sent[(2, closed.days[2])][0]]


@pytest.fixture
def behind(closed, gone, tmp_path):  # noqa: F811
    """The archive went on without the database, which is what it was when its backup was made."""
    archived(closed)
    assert withdrawn(closed, gone[0]) == 503
    archived(closed)
    copied(closed.harness.path, tmp_path / "night.sqlite3")
    assert withdrawn(closed, gone[1]) == 503
    archived(closed)
    assert withdrawn(closed, gone[1]) == 200
    closed.right = summaries(closed)
    copied(tmp_path / "night.sqlite3", closed.harness.path)
    return closed


@pytest.mark.slow
def test_after_a_restore_one_step_goes_on_with_the_archive(behind, gone, capsys):
    for waits in (False, True):
        if waits:
            assert withdrawn(behind, gone[2]) == 503
        before = contents(behind.root)
        advice = f"run `ldpkit admin archive habits --to {behind.root} --restored` once"
        for refused in (archived, delete):
            with pytest.raises(InputError, match=advice):
                refused(behind)
        assert contents(behind.root) == before
    restored(behind, "--dry-run")
    assert "a copy of a database that goes on must not do so" in capsys.readouterr().out
    assert contents(behind.root) == before
    restored(behind)
    assert [withdrawn(behind, one) for one in gone] == [200, 503, 200]
    assert archived_ids(behind.root) == behind.ids - {one.id for one in gone}
    assert (status(behind)["reports"], archived(behind).withdrawn) == (117, 0)
    assert withdrawn(behind, gone[1]) == 200
    assert any("after a restore: 118 reports in" in line for line in audited(behind))
    delete(behind)
    assert (status(behind)["state"], contents(behind.root)) == ("deleted", {})


def test_the_summary_is_what_it_was_before_the_restore(behind):
    assert summaries(behind) != behind.right
    restored(behind)
    assert summaries(behind) == behind.right


@pytest.mark.slow
def test_nobody_says_it_by_default_or_where_nothing_was_restored(behind, other):  # noqa: F811
    with pytest.raises(InputError, match=r"must not do so.*needs --yes"):
        restored(behind, "--quiet")
    restored(behind)
    before = contents(behind.root)
    with raises(InputError, "archive.counts_equal", "habits"):
        restored(behind)
    assert contents(behind.root) == before
    shutil.rmtree(behind.root)
    shutil.copytree(other.root, behind.root)
    with raises(InputError, "archive.of_other_database", "another database's"):
        restored(behind)
    assert contents(behind.root) == contents(other.root)


def test_an_archive_that_is_older_than_the_database_is_not_taken(closed, gone, tmp_path):  # noqa: F811
    archived(closed)
    shutil.copytree(closed.root, tmp_path / "older")
    assert withdrawn(closed, gone[0]) == 503
    archived(closed)
    newer, before = contents(closed.root), status(closed)
    shutil.rmtree(closed.root)
    shutil.copytree(tmp_path / "older", closed.root)
    with raises(InputError, "archive.older_copy"):
        restored(closed)
    with sqlite3.connect(closed.harness.path) as rows:
        rows.execute("DELETE FROM reports")
    with raises(InputError, "archive.counts_not_newer"):
        restored(closed)
    assert contents(closed.root) != newer
    assert status(closed)["reports"] == before["reports"]


@pytest.mark.parametrize("damage", ["away", "changed", "extra"])
def test_each_file_is_read_first(behind, gone, damage):
    file = sorted(behind.root.rglob("*.parquet"))[-1]
    if damage == "away":
        file.unlink()
    elif damage == "changed":
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        shutil.copy(file, file.with_name("part-77.parquet"))
    before, counted = contents(behind.root), status(behind)
    with pytest.raises(InputError, match=r"is not what was written there|beside the archive's own"):
        restored(behind)
    assert (contents(behind.root), status(behind)) == (before, counted)
    assert withdrawn(behind, gone[2]) == 503


@pytest.mark.parametrize(
    ("step", "is_behind"),
    [("_uncount", False), ("_rewrite", False), ("finish", True), ("_acknowledge", True)],
)
def test_also_where_the_live_one_was_killed_in_a_change(
    closed,  # noqa: F811
    gone,
    monkeypatch,
    step,
    is_behind,
    tmp_path,
):
    """Until a file is written anew the archive is still what the backup counts."""
    archived(closed)
    copied(closed.harness.path, tmp_path / "night.sqlite3")
    assert withdrawn(closed, gone[0]) == 503
    killed_at(monkeypatch, step, closed)
    copied(tmp_path / "night.sqlite3", closed.harness.path)
    assert withdrawn(closed, gone[1]) == 503
    if is_behind:
        with pytest.raises(InputError, match="--restored` once"):
            archived(closed)
        restored(closed)
    else:
        archived(closed)
    assert withdrawn(closed, gone[1]) == 200
    left = archived_ids(closed.root)
    assert len(left) == status(closed)["reports"]
    assert left - {gone[0].id} == closed.ids - {one.id for one in gone[:2]}
    # Nobody was told that it is gone.
    assert withdrawn(closed, gone[0]) == 503
    archived(closed)
    assert (withdrawn(closed, gone[0]), gone[0].id in archived_ids(closed.root)) == (200, False)


def test_also_where_the_backup_was_made_in_a_change(closed, gone, monkeypatch, tmp_path):  # noqa: F811
    """It has counted out what stays in the files, or is gone from them since."""
    archived(closed)
    assert withdrawn(closed, gone[0]) == 503
    killed_at(monkeypatch, "_rewrite", closed)
    copied(closed.harness.path, tmp_path / "night.sqlite3")
    assert withdrawn(closed, gone[1]) == 503
    archived(closed)
    copied(tmp_path / "night.sqlite3", closed.harness.path)
    with pytest.raises(InputError, match="--restored` once"):
        archived(closed)
    restored(closed)
    assert archived_ids(closed.root) == closed.ids - {one.id for one in gone[:2]}
    assert (withdrawn(closed, gone[0]), status(closed)["reports"]) == (200, 118)


def test_also_where_its_rows_were_still_there(closed, gone, monkeypatch, tmp_path):  # noqa: F811
    with monkeypatch.context() as context:
        context.setattr(archiving, "drop_page", killed)
        with pytest.raises(KeyboardInterrupt):
            archived(closed)
    copied(closed.harness.path, tmp_path / "night.sqlite3")
    archived(closed)
    assert withdrawn(closed, gone[0]) == 503
    archived(closed)
    copied(tmp_path / "night.sqlite3", closed.harness.path)
    with pytest.raises(InputError, match="--restored` once"):
        archived(closed)
    restored(closed)
    assert (stored_ids(closed), status(closed)["reports"]) == (set(), 119)
    assert archived_ids(closed.root) == closed.ids - {gone[0].id}


@pytest.mark.slow
def test_one_that_was_killed_is_gone_on_with(behind, gone, monkeypatch):
    assert withdrawn(behind, gone[2]) == 503
    for module, step in ((archive_restored, "_adopt"), (archive_withdrawals, "_rewrite")):
        with monkeypatch.context() as context:
            context.setattr(module, step, killed)
            with pytest.raises(KeyboardInterrupt):
                restored(behind)
    # From then on it is as ever.
    archived(behind)
    assert (withdrawn(behind, gone[2]), status(behind)["reports"]) == (200, 117)


def test_a_study_that_was_not_archived_yet_has_its_reports(closed, tmp_path):  # noqa: F811
    copied(closed.harness.path, tmp_path / "night.sqlite3")
    archived(closed)
    copied(tmp_path / "night.sqlite3", closed.harness.path)
    with raises(InputError, "archive.not_archived"):
        restored(closed)
    assert stored_ids(closed) == closed.ids
    closed.root = tmp_path / "new"
    assert archived(closed).dropped == 120


def test_it_may_have_been_moved_since(behind, tmp_path):
    behind.root.rename(tmp_path / "other disk")
    advice = f"run `ldpkit admin archive habits --to {tmp_path / 'other disk'} --moved --restored` once"
    with pytest.raises(InputError, match=advice):
        moved(behind, tmp_path / "other disk")
    restored(behind, "--moved", "--yes", root=tmp_path / "other disk")
    assert (status(behind)["archived"], status(behind)["reports"]) == (str(tmp_path / "other disk"), 118)
