"""A read key becomes the operator's token, as LDPKIT_TOKEN is both a client's key and a server's setting.

Defence: The collector: does not start with a token that is a current or removed key, or that differs from
its settings file.
"""

from __future__ import annotations

import pytest

from collector import create_app
from collector.cli import _serve_settings
from collector.settings import Settings
from collector.storage.keys import Role, add_key, remove_key
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.collector.commands import operate, parsed
from tests.kit.errors import raises


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    """A collector's place, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("LDPKIT_DATABASE", "LDPKIT_CONFIG", "LDPKIT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["init"]) == 0
    assert main(["token"]) == 0
    return capsys.readouterr().out.strip()


@pytest.fixture
def reader(place, capsys):  # noqa: ARG001
    """A key that may read."""
    operate(create_app(), "keys", "add", "analyst", "--role", "read")
    return capsys.readouterr().out.strip()


def test_server_does_not_start_with_a_client_key_as_token(reader, monkeypatch):
    monkeypatch.setenv("LDPKIT_TOKEN", reader)
    for start in (create_app, lambda: _serve_settings(parsed("serve"))):
        with raises(InputError, "settings.token_variable_differs", "LDPKIT_TOKEN", "ldpkit.toml"):
            start()


def test_token_command_prints_the_token_of_the_settings_file(place, reader, monkeypatch, capsys):
    """Also where it names one key for each node of a secure sum."""
    for found in (reader, f"{reader} {reader}"):
        monkeypatch.setenv("LDPKIT_TOKEN", found)
        assert main(["token"]) == 0
        assert capsys.readouterr().out == f"{place}\n"


def test_token_of_the_settings_file_may_be_in_the_environment(place, monkeypatch):
    monkeypatch.setenv("LDPKIT_TOKEN", place)
    assert _serve_settings(parsed("serve")).token == place
    assert create_app().test_client().get("/healthz").status_code == 200


@pytest.mark.parametrize("role", list(Role))
def test_current_or_removed_key_is_rejected_as_token(make_harness, role):
    """Also after the key was removed, because it would otherwise still work as the token."""
    harness = make_harness()
    with harness.collector.database.write() as session:
        key = add_key(session, "ann", role)
    settings = Settings(database=f"sqlite:///{harness.path}", token=key)
    with raises(InputError, "settings.token_is_a_key", "setting token", role.value):
        create_app(settings)
    with harness.collector.database.write() as session:
        remove_key(session, "ann")
    with raises(InputError, "settings.token_is_a_key", "setting token", "removed"):
        create_app(settings)
