"""Two processes that write, archive or delete one study at once: each would undo what the other relies on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from collector.exports import dataset, parts
from collector.exports.store import Store
from collector.operator import archiving
from collector.operator.archiving import archive, settled
from collector.operator.retention import delete_reports, delete_study
from collector.storage.migrating import opened
from collector.storage.one_writer import only_writer
from ldp_client.documents.errors import InputError
from tests.collector.commands import run
from tests.collector.test_archives import (  # noqa: F401
    Elsewhere,
    archived,
    archived_ids,
    closed,
    many,
    status,
    stored_ids,
)
from tests.collector.test_datasets import STUDY, Many
from tests.kit.errors import raises

BUSY = "runs just now: nothing was done"


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request, tmp_path, make_harness, make_study, make_report):
    """A closed study, on either database."""
    if request.param == "sqlite":
        found = request.getfixturevalue("many")
    else:
        url = request.getfixturevalue("postgresql").new_database()
        found = Many(make_harness(database=url, busy_timeout=5), make_study, make_report)
        found.url = url
    found.harness.close()
    found.root = tmp_path / "archive"
    return found


def started(many, *command):  # noqa: F811
    """A command in a process of its own, stopped once it wrote some files."""
    code = "import sys; from ldp_client.cli import main; sys.exit(main())"
    line = [sys.executable, "-c", code, *command, "--database", many.url, "--buckets", "32", "-q"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while len(list(many.root.rglob("part-*.parquet"))) < 5:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGSTOP)
    return process


COMMANDS = (
    ("admin", "archive", "habits", "--yes", "--to"),
    ("export", "habits", "--format", "parquet", "--out"),
)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_an_archive_beside_another_command_that_was_stopped(either, command):
    first = started(either, *command, str(either.root))
    try:
        with pytest.raises(InputError, match=BUSY):
            archived(either)
        assert stored_ids(either) == either.ids
    finally:
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=300)
    archived(either)
    assert (archived_ids(either.root), stored_ids(either)) == (either.ids, set())


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_was_killed_keeps_nobody_away(either, command):
    first = started(either, *command, str(either.root))
    first.kill()
    first.communicate(timeout=300)
    deadline = time.monotonic() + 30
    while True:
        try:
            archived(either)
            break
        except InputError:
            # PostgreSQL takes a moment to notice.
            assert time.monotonic() < deadline
    assert (archived_ids(either.root), stored_ids(either)) == (either.ids, set())


@pytest.mark.slow
@pytest.mark.parametrize("act", ["export", "archive", "delete", "delete archived"])
def test_one_at_a_time_exports_archives_or_deletes(either, act, tmp_path):
    if act == "delete archived":
        archived(either)
    delete = ("admin", "delete-study", "habits", "--yes", "--database", either.url)
    acts = {
        "export": lambda: dataset.export_dataset(either.order(tmp_path / "other")),
        "archive": lambda: archived(either),
        "delete": lambda: run(*delete),
    }
    with opened(either.url, 5) as database, only_writer(database, "habits") as turn:
        with pytest.raises(InputError, match=BUSY):
            acts[act.split()[0]]()
        turn.require()
    if act.startswith("delete"):
        assert stored_ids(either) | archived_ids(either.root) == either.ids
        run(*delete)
        assert stored_ids(either) | archived_ids(either.root) == set()
    else:
        assert not either.root.exists()
        archived(either)


@pytest.mark.parametrize("act", ["export", "page of an export", "archive"])
def test_what_a_study_leaves_that_was_deleted_all_the_same_is_named(closed, act, monkeypatch):  # noqa: F811
    """As by somebody who calls the functions: no command can."""

    module, name = {
        "export": (dataset, "write_bucket"),
        "page of an export": (parts, "range_page"),
        "archive": (archiving, "_is_whole"),
    }[act]
    genuine = getattr(module, name)

    def late(*arguments):
        monkeypatch.setattr(module, name, genuine)
        found = genuine(*arguments)
        delete_study(closed.harness.collector.database, "habits")
        return found

    monkeypatch.setattr(module, name, late)
    with pytest.raises(InputError, match=f"deleted.* and {closed.root / STUDY} "):
        archived(closed) if act == "archive" else dataset.export_dataset(closed.order(closed.root))
    # Of its first page nothing was written yet.
    assert bool(list(closed.root.rglob("*.parquet"))) == (act != "page of an export")


def unlocked(monkeypatch, *modules):
    """As if the lock were lost: of a server that was restarted, or a machine that was cut off."""

    class Free:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def require(self):
            return None

    for module in modules:
        monkeypatch.setattr(module, "only_writer", Free)


def test_an_export_that_lost_its_turn_writes_nothing_into_an_archive(either, monkeypatch):
    unlocked(monkeypatch, dataset, archiving)
    genuine = Store.digest

    def slow(store, path):
        found = genuine(store, path)
        monkeypatch.setattr(Store, "digest", genuine)
        archived(either)
        return found

    monkeypatch.setattr(Store, "digest", slow)
    with raises(InputError, "export.study_archived"):
        dataset.export_dataset(either.order(either.root))
    assert (archived_ids(either.root), stored_ids(either)) == (either.ids, set())


def test_an_archive_looks_once_more_before_a_row_is_dropped(either, monkeypatch):
    genuine = archiving._begin

    def then_overwritten(session, **arguments):
        begun = genuine(session, **arguments)
        next(either.root.rglob("part-*.parquet")).write_bytes(b"older")
        return begun

    monkeypatch.setattr(archiving, "_begin", then_overwritten)
    with raises(InputError, "export.file_changed"):
        archived(either)
    assert (stored_ids(either), status(either)["state"]) == (either.ids, "closed")
    monkeypatch.undo()
    archived(either)
    assert (archived_ids(either.root), stored_ids(either)) == (either.ids, set())


def test_of_two_archives_at_once_the_second_place_is_none(either, tmp_path, monkeypatch):
    unlocked(monkeypatch, dataset, archiving)
    genuine = archiving._is_whole

    def late(*_):
        monkeypatch.setattr(archiving, "_is_whole", genuine)
        archived(Elsewhere(either, tmp_path / "first"))
        return True

    monkeypatch.setattr(archiving, "_is_whole", late)
    with pytest.raises(InputError, match=f"was archived in {tmp_path / 'first'} meanwhile"):
        archived(either)
    assert archived_ids(tmp_path / "first") == either.ids
    assert status(either)["archived"] == str(tmp_path / "first")


def test_reports_expire_in_no_archive_that_was_begun_meanwhile(either, monkeypatch):
    from collector.operator import retention

    genuine = retention.require_sums

    def late(*arguments):
        genuine(*arguments)
        monkeypatch.setattr(retention, "require_sums", genuine)
        with opened(either.url, 5) as database:
            monkeypatch.setattr(archiving, "drop_page", lambda *_, **__: 0)
            # As if it were killed before a row goes.
            monkeypatch.setattr(archiving, "take_out", stop)
            with pytest.raises(InputError):
                archive(database, settled(either.order(either.root)))
            monkeypatch.undo()

    def stop(*_):
        raise InputError("killed")

    monkeypatch.setattr(retention, "require_sums", late)
    with raises(InputError, "admin.study_archived"):
        delete_reports(either.harness.collector.database, "habits", either.days[1])
    archived(either)
    assert archived_ids(either.root) == either.ids
    assert status(either)["reports"] == len(either.ids)


def test_a_place_that_keeps_nothing_is_no_archive(closed, monkeypatch):  # noqa: F811
    for address in ("memory://archive", "simplecache::memory://archive"):
        with raises(InputError, "export.unknown_store"):
            archived(Elsewhere(closed, address))
        assert stored_ids(closed) == closed.ids
    # By a name that means the same in every folder.
    monkeypatch.chdir(closed.root.parent)
    archived(Elsewhere(closed, f"file://{closed.root.name}/"))
    assert status(closed)["archived"] == str(closed.root)
    assert archived_ids(closed.root) == closed.ids


def test_no_lock_is_left_behind(closed):  # noqa: F811
    archived(closed)
    folder = closed.harness.path.parent
    assert not [name for name in os.listdir(folder) if "-writing-" in name]
    assert (closed.root / STUDY).is_dir()


def test_whoever_lost_its_connection_has_no_turn_any_more(either):
    if not either.url.startswith("postgresql"):
        pytest.skip("of SQLite the kernel has the lock")
    holder = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
    with opened(either.url, 5) as database, only_writer(database, "habits") as turn:
        turn.require()
        with database.write() as session:
            assert session.execute(text(holder)).scalars().all() == [True]
        with pytest.raises(SQLAlchemyError):
            turn.require()
        # The next one has it.
        with only_writer(database, "habits"):
            pass


def test_a_lock_that_somebody_deletes_is_held_no_more(closed):  # noqa: F811
    folder = closed.harness.path.parent
    with opened(closed.url, 5) as database, only_writer(database, "habits") as turn:
        next(path for path in folder.iterdir() if "-writing-" in path.name).unlink()
        with raises(InputError, "database.lock_file_deleted"):
            turn.require()
