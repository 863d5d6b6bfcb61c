"""An issuer's files have every token that it gave, and not the order in which named people asked."""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from collector import server, wal
from collector.daily import Days
from collector.db import Database, sqlite_file
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.migrations import check, make
from ldp_client.core.tokens import REQUEST_BYTES, TYPE
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises
from tests.kit.issuing import BY, TYPES, ask, invited, issuer_at
from tests.kit.operators import main_on, operate, run

PEOPLE = [f"Person number {number:02}" for number in range(12)]
TODAY = date(2026, 6, 15)
HERE = "ldpkit.sqlite3"


class Issuer:
    """An issuer with a code for each person; it is made on a database of either kind."""

    def __init__(self, url):
        self.url, self.database = url, Database(url, 5)
        make(self.database)
        with self.database.write() as session:
            issue.add_key(session, "habits", {}, BY)
            codes = invited(session, "habits", [Person(name, {}) for name in PEOPLE])
        self.codes = dict(zip(PEOPLE, codes))
        self.database.engine.dispose()

    def everybody_asks(self):
        """One after the other, in the order of the list."""
        with self.served(TODAY) as app:
            assert {ask(app.test_client(), self.codes[name]).status_code for name in PEOPLE} == {200}

    @contextmanager
    def served(self, day):
        """The issuer's application on a day."""
        app = issuer_at(self.url, today=lambda: day)
        yield app
        app.extensions["ldpkit"].close()

    def found(self):
        """The people by their place in the files, and how many transactions wrote them."""
        file = sqlite_file(self.url)
        if file is not None:
            content = file.read_bytes()
            return sorted(PEOPLE, key=lambda name: content.rindex(name.encode())), 1
        with self.database.read() as session:
            rows = session.execute(text("SELECT name, xmin FROM tickets ORDER BY ctid")).all()
        self.database.engine.dispose()
        return [row.name for row in rows], len({row.xmin for row in rows})

    def by_hash(self):
        with self.database.read() as session:
            names = session.scalars(text("SELECT name FROM tickets ORDER BY hash")).all()
        self.database.engine.dispose()
        # SQLite fills a page from its end.
        return list(names) if sqlite_file(self.url) is None else list(names)[::-1]


@pytest.fixture
def issuer(database_url):
    return Issuer(database_url)


@pytest.mark.attack(12)
def test_next_day_removes_the_order_of_requests(issuer):
    """Someone reads in an issuer's database in which order named people asked, also of a killed issuer."""
    issuer.everybody_asks()
    before = issuer.found()
    assert before != (issuer.by_hash(), 1)
    with issuer.served(TODAY + timedelta(1)) as app:
        Days(app.extensions["ldpkit"]).look()
    assert issuer.found() == (issuer.by_hash(), 1)
    with issuer.database.read() as session:
        assert [one.tokens for one in issue.counts(session, "habits")] == [len(PEOPLE)]
    issuer.database.engine.dispose()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An issuer with a key and two tickets."""
    folder = tmp_path_factory.mktemp("issuer")
    run("init", "--as", "issuer", str(folder))
    app = issuer_at(f"sqlite:///{folder / HERE}")
    operate(app, "tickets", "key", "habits")
    operate(app, "invite", "habits", "--count", "2", "--out", str(folder / "codes.csv"))
    app.extensions["ldpkit"].close()
    return folder


@pytest.fixture
def codes(made, tmp_path, monkeypatch):
    """The codes of an issuer in this folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with open("codes.csv", newline="") as file:
        return [row["ticket"] for row in csv.DictReader(file)]


@pytest.fixture
def serving(codes):
    """The issuer as a worker has it, connected; it gave a token for the first code."""
    app = issuer_at(f"sqlite:///{HERE}")
    assert ask(app.test_client(), codes[0]).status_code == 200
    yield app
    app.extensions["ldpkit"].close()


def at(path):
    return Database(f"sqlite:///{path}", 5)


def see(path):
    """As every command and server does first."""
    check(at(path))


def tokens_in(path):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT count(request) FROM tickets").fetchone()[0]


def change(path):
    """So that it has a log of its own for a moment."""
    database = at(path)
    with database.write() as session:
        session.execute(text("UPDATE collector SET is_copy = FALSE"))
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


@pytest.mark.attack(4)
def test_stopped_issuer_file_has_every_token(codes, tmp_path, monkeypatch):
    """The tokens could be in the log only: a copy of the file would give each ticket a second token."""
    served = []

    def serve(settings, _endpoint, _announce, create):
        # A worker ends without a word to the database.
        served.append(create(settings))
        assert ask(served[0].test_client(), codes[0]).status_code == 200

    monkeypatch.setattr(server, "serve_collector", serve)
    monkeypatch.delenv("LDPKIT_TOKEN", raising=False)
    run("serve", "--as", "issuer")
    moved = shutil.copyfile(HERE, tmp_path / "moved.sqlite3")
    served[0].extensions["ldpkit"].close()
    assert tokens_in(moved) == 1


@pytest.mark.attack(4)
@pytest.mark.usefixtures("serving")
def test_restored_backup_is_not_taken_for_file_of_log(tmp_path):
    """An operator puts a backup beside the log of the killed issuer, which is then written into it."""
    assert main_on(f"sqlite:///{HERE}", "backup", "--out", "copy.sqlite3") == 0
    dead = killed(tmp_path)
    database = f"sqlite:///{tmp_path / 'copy.sqlite3'}"
    # Nor where it has had a log of its own since.
    assert main_on(database, "tickets", "resume", "--unused", "end") == 0
    see(tmp_path / "copy.sqlite3")
    os.replace(tmp_path / "copy.sqlite3", dead)
    refused(dead)


@pytest.mark.attack(4)
def test_issuer_with_replaced_database_gives_no_token(serving):
    """A backup is copied over the file of a running issuer, after it had a log of its own."""
    assert main_on(f"sqlite:///{HERE}", "backup", "--out", "copy.sqlite3") == 0
    change("copy.sqlite3")
    client, database = serving.test_client(), serving.extensions["ldpkit"].database
    with wal.served_alone(Path(HERE)):
        shutil.copyfile("copy.sqlite3", HERE)
        assert client.get("/readyz").status_code == 503
        request = TYPE + bytes(REQUEST_BYTES - len(TYPE))
        asked = client.post("/v1/tokens", data=request, headers={**TYPES, "LDPKit-Ticket": "any"})
        assert asked.status_code == 503
        copied = Path(HERE).read_bytes()
        database.engine.dispose()
    assert Path(HERE).read_bytes() == copied
    see(HERE)
