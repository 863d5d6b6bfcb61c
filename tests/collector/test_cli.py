"""`ldpkit serve` before it serves: a database that starts later."""

from __future__ import annotations

import time
from types import SimpleNamespace

from collector.settings import Settings
from ldp_client.documents.errors import InputError
from ldpkit.cli import serving
from ldpkit.cli.serving import wait_for_database
from tests.kit.collectors import ensure_database
from tests.kit.errors import raises


def test_serve_waits_for_a_database_that_starts_later(make_postgresql, capsys, monkeypatch):
    server = make_postgresql()
    settings = Settings(database=server.new_database(), token="operator-of-the-tests")
    ensure_database(settings.database)
    server.kill()
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _seconds: server.start())
    monkeypatch.setattr(serving, "time", clock)
    wait_for_database(settings)
    assert capsys.readouterr().err.startswith("waiting for the database: ")
    server.kill()
    monkeypatch.setattr(serving, "START_SECONDS", -1)
    with raises(InputError, "database.unreachable"):
        wait_for_database(settings)
