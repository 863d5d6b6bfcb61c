"""`ldpkit serve` before it serves: its token, and a database that starts later."""

from __future__ import annotations

from collector import create_app
from collector.settings import Settings
from ldp_client.documents.errors import InputError
from ldpkit.cli.serving import serve_settings, wait_for_database
from tests.collector.commands import TOKEN, operate
from tests.collector.conftest import ensure_database
from tests.kit.errors import raises


def test_token_is_created_only_without_an_operator_key(database_url, capsys, monkeypatch):
    """Otherwise each start would write an operator's token into the log."""
    monkeypatch.delenv("LDPKIT_TOKEN", raising=False)
    ensure_database(database_url)
    monkeypatch.setenv("LDPKIT_DATABASE", database_url)
    app = create_app({"database": database_url, "token": TOKEN})
    operate(app, "keys", "reader", "--role", "read")
    capsys.readouterr()
    made = serve_settings().token
    assert made
    assert f"operator's token: {made}" in capsys.readouterr().err
    operate(app, "keys", "chief", "--role", "operate")
    capsys.readouterr()
    assert serve_settings().token is None
    assert "no token is set" in capsys.readouterr().err


def test_serve_waits_for_a_database_that_starts_later(make_postgresql, capsys):
    server = make_postgresql()
    settings = Settings(database=server.new_database(), token="operator-of-the-tests")
    server.kill()
    wait_for_database(settings, sleep=lambda _seconds: server.start())
    told = capsys.readouterr().err
    assert told.startswith("waiting 60 s for the database: ")
    assert told.count("\n") == 1
    server.kill()
    times = iter((0.0, 30.0, 61.0))
    with raises(InputError, "database.unreachable"):
        wait_for_database(settings, clock=lambda: next(times), sleep=lambda _seconds: None)
