"""Lose what a stopped issuer did, or have another file's log written into an issuer that was put back.

Defence: The issuer: folds its log into the file as it ends.
"""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from collector.issuer.app import create_issuer
from collector.issuer.models import ISSUER
from collector.serving import granian_server
from collector.storage import wal
from collector.storage.database import Database
from collector.storage.migrating import check
from ldp_client.core.tokens import REQUEST_BYTES, TYPE
from ldp_client.documents.errors import InputError
from tests.collector.commands import run
from tests.collector.test_issuer import TYPES, ask
from tests.kit.errors import raises

HERE = "issuer.sqlite3"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An issuer with a key and two codes."""
    folder = tmp_path_factory.mktemp("issuer")
    database = ("--database", f"sqlite:///{folder / HERE}")
    run("issuer", "init", str(folder), "--address", "https://issuer.example")
    run("issuer", "key", "habits", *database)
    run("issuer", "invite", "habits", "--count", "2", "--out", str(folder / "codes.csv"), *database)
    return folder


@pytest.fixture
def codes(made, tmp_path, monkeypatch):
    """The codes of an issuer in this folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with open("codes.csv", newline="") as file:
        return [row["code"] for row in csv.DictReader(file)]


@pytest.fixture
def serving(codes):
    """The issuer as a worker has it, connected; it gave a token for the first code."""
    app = create_issuer(f"sqlite:///{HERE}")
    assert ask(app.test_client(), codes[0]).status_code == 200
    yield app
    app.extensions["issuer"].engine.dispose()


def at(path):
    return Database(f"sqlite:///{path}", 5)


def see(path):
    """As every command and server does first."""
    check(at(path), schema=ISSUER)


def tokens_in(path):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT count(request) FROM codes").fetchone()[0]


def change(path):
    """So that it has a log of its own for a moment."""
    database = at(path)
    with database.write() as session:
        session.execute(text("UPDATE issuer SET is_copy = FALSE"))
    database.engine.dispose()


def killed(tmp_path):
    """What a killed issuer leaves: its file, the log and FILE-mark beside it, in another folder."""
    dead = tmp_path / "dead"
    dead.mkdir()
    for file in tmp_path.glob(f"{HERE}*"):
        shutil.copyfile(file, dead / file.name)
    return dead / HERE


def refused(path):
    before, log = path.read_bytes(), path.with_name(f"{HERE}-wal")
    # As a server that does not start there: the log stays, as the refusal says.
    with raises(InputError, "database.foreign_log"), wal.served_alone(path):
        see(path)
    assert path.read_bytes() == before
    log.rename(path.with_name("aside"))
    see(path)


def test_stopped_issuer_file_has_every_token(codes, tmp_path, monkeypatch):
    """The tokens used to be in the log only: a copy of the file would give each code a second token."""
    served = []

    def serve(load, *_):
        # A worker ends without a word to the database.
        served.append(load())
        assert ask(served[0].test_client(), codes[0]).status_code == 200
        run("issuer", "key", "sleep")

    monkeypatch.setattr(granian_server, "serve_plain", serve)
    run("issuer", "serve")
    moved = shutil.copyfile(HERE, tmp_path / "moved.sqlite3")
    served[0].extensions["issuer"].engine.dispose()
    assert tokens_in(moved) == 1
    with closing(sqlite3.connect(moved)) as connection:
        assert connection.execute("SELECT study FROM token_keys ORDER BY study").fetchall() == [
            ("habits",),
            ("sleep",),
        ]


@pytest.mark.parametrize("put", [os.replace, shutil.copyfile])
@pytest.mark.usefixtures("serving")
def test_restored_backup_is_not_taken_for_file_of_log(tmp_path, put):
    run("backup", "--database", f"sqlite:///{HERE}", "--out", "copy.sqlite3")
    dead = killed(tmp_path)
    database = f"sqlite:///{tmp_path / 'copy.sqlite3'}"
    # Nor where it has had a log of its own since.
    run("issuer", "resume-after-restore", "--end-unused", "--database", database)
    run("issuer", "status", "--database", database)
    put(tmp_path / "copy.sqlite3", dead)
    refused(dead)


def test_earlier_served_file_is_not_taken_for_file_of_log(codes, tmp_path):
    change(HERE)
    stopped = shutil.copyfile(HERE, tmp_path / "stopped.sqlite3")
    app = create_issuer(f"sqlite:///{HERE}")
    assert ask(app.test_client(), codes[0]).status_code == 200
    dead = killed(tmp_path)
    app.extensions["issuer"].engine.dispose()
    os.replace(stopped, dead)
    refused(dead)


@pytest.mark.usefixtures("serving")
def test_copy_of_running_database_is_not_taken_for_file_of_log(tmp_path):
    """A copy by `sqlite3 FILE .backup COPY` has the mark of the log, but is another file."""
    copy = tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(HERE)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    os.replace(copy, HERE)
    refused(tmp_path / HERE)


@pytest.mark.usefixtures("serving")
def test_log_of_killed_issuer_is_applied_to_its_own_file(tmp_path):
    dead = killed(tmp_path)
    assert dead.with_name(f"{HERE}-wal").stat().st_size
    see(dead)
    assert tokens_in(dead) == 1


@pytest.mark.parametrize("put", [os.replace, shutil.copyfile])
def test_issuer_with_replaced_database_gives_no_token(serving, put):
    """This also holds for a copy that had its own log since, whose header looks like the original's."""
    run("backup", "--database", f"sqlite:///{HERE}", "--out", "copy.sqlite3")
    change("copy.sqlite3")
    client, database = serving.test_client(), serving.extensions["issuer"]
    with wal.served_alone(Path(HERE)):
        put("copy.sqlite3", HERE)
        assert client.get("/readyz").status_code == 503
        request = TYPE + bytes(REQUEST_BYTES - len(TYPE))
        asked = client.post("/v1/tokens", data=request, headers={**TYPES, "LDPKit-Invitation": "any"})
        assert asked.status_code == 503
        copied = Path(HERE).read_bytes()
        database.engine.dispose()
    assert Path(HERE).read_bytes() == copied
    see(HERE)
