"""Read in a stopped issuer's database in which order named people asked for their tokens."""

from __future__ import annotations

import logging
from datetime import date, timedelta
from threading import Thread

import pytest
from sqlalchemy import create_engine, text

from collector.issuer import store
from collector.issuer.app import create_issuer
from collector.issuer.models import ISSUER, IssuerRow
from collector.issuer.order_erasing import Forgetting, write_again
from collector.issuer.store import Person
from collector.serving import granian_server
from collector.storage.database import Database, sqlite_file
from collector.storage.migrating import make
from collector.storage.upkeep import RETRY_SECONDS
from tests.collector.commands import run
from tests.collector.test_issuer import ask

PEOPLE = [f"Person number {number:02}" for number in range(12)]
TODAY = date(2026, 6, 15)


class Issuer:
    """An issuer with a code for each person; it is made on a database of either kind."""

    def __init__(self, url):
        self.url, self.database = url, Database(url, 5)
        make(self.database, ISSUER)
        with self.database.write() as session:
            session.add(IssuerRow(address="https://issuer.example"))
            store.add_key(session, "habits", {})
            codes = store.add_codes(session, "habits", [Person(name, {}) for name in PEOPLE])
        self.codes = dict(zip(PEOPLE, codes))
        self.database.engine.dispose()

    def everybody_asks(self):
        """One after the other, in the order of the list."""
        app = create_issuer(self.url)
        assert {ask(app.test_client(), self.codes[name]).status_code for name in PEOPLE} == {200}
        app.extensions["issuer"].engine.dispose()

    def is_served(self, monkeypatch, served):
        monkeypatch.setattr(granian_server, "serve_plain", lambda *_: served())
        run("issuer", "serve", "--database", self.url)

    def found(self):
        """The people by their place in the files, and how many transactions wrote them."""
        file = sqlite_file(self.url)
        if file is not None:
            content = file.read_bytes()
            return sorted(PEOPLE, key=lambda name: content.rindex(name.encode())), 1
        with self.database.read() as session:
            rows = session.execute(text("SELECT name, xmin FROM codes ORDER BY ctid")).all()
        self.database.engine.dispose()
        return [row.name for row in rows], len({row.xmin for row in rows})

    def by_hash(self):
        with self.database.read() as session:
            names = session.scalars(text("SELECT name FROM codes ORDER BY hash")).all()
        self.database.engine.dispose()
        # SQLite fills a page from its end.
        return list(names) if sqlite_file(self.url) is None else list(names)[::-1]


@pytest.fixture
def issuer(database_url):
    return Issuer(database_url)


def test_stopped_issuer_stores_codes_in_hash_order(issuer, monkeypatch):
    issuer.is_served(monkeypatch, issuer.everybody_asks)
    assert issuer.found() == (issuer.by_hash(), 1)
    with issuer.database.read() as session:
        assert [one.tokens for one in store.counts(session)] == [len(PEOPLE)]


def test_restart_removes_request_order_of_killed_issuer(issuer, monkeypatch):
    issuer.everybody_asks()
    found = []
    issuer.is_served(monkeypatch, lambda: found.append(issuer.found()))
    assert found == [(issuer.by_hash(), 1)]


def test_next_day_request_removes_request_order(issuer):
    day = [TODAY]
    forgetting = Forgetting(issuer.database, lambda: day[0])
    issuer.everybody_asks()
    before = issuer.found()
    forgetting.run_if_due()
    assert issuer.found() == before
    assert before != (issuer.by_hash(), 1)
    day[0] += timedelta(1)
    forgetting.run_if_due()
    issuer.database.engine.dispose()
    assert issuer.found() == (issuer.by_hash(), 1)


@pytest.mark.slow
def test_open_reader_delays_reordering_and_is_logged(issuer, caplog, monkeypatch):
    monkeypatch.setattr("collector.storage.rewriting.WAIT_SECONDS", 0.0)
    database, day, now = Database(issuer.url, 0.2), [TODAY], [0.0]
    forgetting = Forgetting(database, lambda: day[0], lambda: now[0])
    issuer.everybody_asks()
    day[0] += timedelta(1)
    engine = create_engine(issuer.database.url, isolation_level="SERIALIZABLE")
    with engine.connect() as reader, caplog.at_level(logging.WARNING):
        if engine.dialect.name == "sqlite":
            reader.exec_driver_sql("BEGIN")
        reader.execute(text("SELECT count(*) FROM issuer")).scalar_one()
        forgetting.run_if_due()
    engine.dispose()
    assert "the database still has the order in which people asked" in caplog.text
    now[0] += RETRY_SECONDS
    forgetting.run_if_due()
    database.engine.dispose()
    assert issuer.found() == (issuer.by_hash(), 1)


def test_request_during_reordering_gets_token(issuer):
    app, answers = create_issuer(issuer.url), []

    def one_asks():
        answers.append(ask(app.test_client(), issuer.codes[PEOPLE[0]]).status_code)

    asking = Thread(target=one_asks)
    with issuer.database.write() as session:
        write_again(session)
        asking.start()
        # So long that it waits for the lock.
        asking.join(0.3)
        assert answers == []
    asking.join()
    assert answers == [200]
    for database in (issuer.database, app.extensions["issuer"]):
        database.engine.dispose()
