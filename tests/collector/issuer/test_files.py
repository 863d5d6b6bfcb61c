"""An issuer's files have every token that it gave, and not the order in which named people asked."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from contextlib import closing, contextmanager
from datetime import date, timedelta

import pytest
from sqlalchemy import text

from collector import server
from collector.daily import Days
from collector.db import Database, sqlite_file
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.migrations import make
from tests.kit.issuing import BY, ask, invited, issuer_at
from tests.kit.operators import operate, run

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


@pytest.mark.attack(4)
def test_stopped_issuer_file_has_every_token(tmp_path, monkeypatch):
    """The tokens could be in the log only: a copy of the file would give each ticket a second token."""
    monkeypatch.chdir(tmp_path)
    run("init", "--as", "issuer")
    app, served = issuer_at(f"sqlite:///{HERE}"), []
    operate(app, "tickets", "key", "habits")
    operate(app, "invite", "habits", "--count", "2", "--out", "codes.csv")
    app.extensions["ldpkit"].close()
    with open("codes.csv", newline="") as file:
        code, _ = (row["ticket"] for row in csv.DictReader(file))

    def serve(settings, _endpoint, _announce, create):
        # A worker ends without a word to the database.
        served.append(create(settings))
        assert ask(served[0].test_client(), code).status_code == 200

    monkeypatch.setattr(server, "serve_collector", serve)
    monkeypatch.delenv("LDPKIT_TOKEN", raising=False)
    run("serve", "--as", "issuer")
    moved = shutil.copyfile(HERE, tmp_path / "moved.sqlite3")
    served[0].extensions["ldpkit"].close()
    with closing(sqlite3.connect(moved)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(request) FROM tickets").fetchall() == [(1,)]
