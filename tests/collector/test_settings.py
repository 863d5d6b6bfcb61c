"""Settings, database URLs, the command line's arguments, and what importing loads.

Defence: The collector: text settings must be texts, and secrets have at least 16 characters.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from collector import create_app
from collector.settings import Settings
from ldp_client.documents.errors import InputError
from tests.collector.commands import parsed
from tests.collector.conftest import ensure_database
from tests.kit.errors import raises

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*arguments):
    given = parsed(*arguments)
    return given.run(given)


def test_settings_have_defaults():
    expected = Settings("sqlite:///ldpkit.sqlite3", None, 1024 * 1024, 2.0)
    assert Settings.from_mapping({}) == expected
    assert Settings.from_environment({}) == expected


def test_settings_are_read_from_the_environment():
    environment = {
        "LDPKIT_DATABASE": "sqlite:///x",
        "LDPKIT_TOKEN": "token-for-the-tests",
        "LDPKIT_BODY_LIMIT": "10",
        "LDPKIT_LOCK_TIMEOUT": "0.5",
        "HOME": "/",
    }
    assert Settings.from_environment(environment) == Settings("sqlite:///x", "token-for-the-tests", 10, 0.5)


def test_a_file_gives_settings_and_the_environment_overrides_them(tmp_path):
    file = tmp_path / "ldpkit.toml"
    file.write_text('database = "sqlite:///x"\ngrace_days = 3\nupload_rate = 2.5\n')
    environment = {"LDPKIT_CONFIG": str(file), "LDPKIT_GRACE_DAYS": "4"}
    expected = Settings(f"sqlite:///{tmp_path / 'x'}", grace_days=4, upload_rate=2.5)
    assert Settings.from_environment(environment) == expected
    file.write_text("grace_days = ")
    with raises(InputError, "settings.not_toml"):
        Settings.from_environment(environment)
    with raises(InputError, "files.cannot_read"):
        Settings.from_environment({"LDPKIT_CONFIG": str(tmp_path / "nosuch")})


def test_create_app_reads_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("LDPKIT_DATABASE", ensure_database(f"sqlite:///{tmp_path / 'env.sqlite3'}"))
    assert create_app().test_client().get("/readyz").status_code == 200


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"databse": "x"}, ("settings.unknown_setting", "'databse'")),
        ({"token": " "}, ("settings.token_not_ascii", "token")),
        ({"token": "secret\r"}, ("settings.token_not_ascii", "token")),
        ({"token": "geheimés"}, ("settings.token_not_ascii", "token")),
        ({"token": "fifteen-letters"}, ("settings.token_too_short", "token", "16", "`ldpkit init`")),
        ({"token": ""}, ("settings.token_too_short", "token", "16")),
        ({"invitation_key": "fifteen-letters"}, ("settings.invitation_key_too_short", "16")),
        ({"grace_days": 10**10}, ("settings.grace_days_too_many", "grace_days")),
        ({"body_limit": 0}, ("settings.not_positive", "body_limit")),
        ({"body_limit": "many"}, ("settings.not_whole_number", "body_limit", "'many'")),
        ({"lock_timeout": -1}, ("settings.negative_or_not_finite", "lock_timeout", "-1")),
        ({"lock_timeout": "soon"}, ("settings.not_number", "lock_timeout", "'soon'")),
        ({"upload_rate": "nan"}, ("settings.negative_or_not_finite", "upload_rate", "nan")),
        ({"lock_timeout": "inf"}, ("settings.negative_or_not_finite", "lock_timeout", "inf")),
        ({"grace_days": "1.5"}, ("settings.not_whole_number", "grace_days", "'1.5'")),
        ({"queue_reports": 0}, ("settings.unknown_setting", "'queue_reports'")),
        ({"database": "nonsense"}, ("database.not_url", "database")),
        ({"database": "mysql://localhost/x"}, ("database.unsupported_kind", "'mysql'")),
        ({"database": "sqlite://"}, "database.in_memory"),
        ({"database": "sqlite:///:memory:"}, "database.in_memory"),
        (
            {"database": "sqlite:////nosuch/folder/x.sqlite3"},
            ("database.missing_file", "/nosuch/folder/x.sqlite3"),
        ),
    ],
)
def test_wrong_settings_are_one_clear_line(values, code):
    with raises(InputError, code) as caught:
        create_app(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["invitation_key", "token", "database", "ohttp_keys", "signing_keys", "log_format"]
)
@pytest.mark.parametrize("value", ["false", "1234567890123456", "1979-05-27T07:32:00"])
def test_non_text_value_in_a_settings_file_is_rejected(tmp_path, name, value):
    file = tmp_path / "ldpkit.toml"
    file.write_text(f"{name} = {value}\n")
    with raises(InputError, "settings.not_text", name):
        Settings.from_environment({"LDPKIT_CONFIG": str(file)})


def test_file_that_is_not_a_database_is_rejected(tmp_path):
    file = tmp_path / "text.sqlite3"
    file.write_text("not a database, only a text that is long enough to have a header\n" * 100)
    with pytest.raises(InputError, match="not a database"):
        create_app({"database": f"sqlite:///{file}"})


def test_serve_refuses_a_port_in_use_and_a_bad_database(tmp_path):
    database = ensure_database(f"sqlite:///{tmp_path / 'x'}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with raises(InputError, "server.port_not_free"):
            run("serve", "--database", database, "--port", port, "--token", "token-for-the-tests")
    with raises(InputError, "server.port_not_free"):
        run("serve", "--database", database, "--port", "99999", "--token", "token-for-the-tests")
    with raises(InputError, "database.missing_file"):
        run("serve", "--database", "sqlite:////nosuch/x", "--port", "0", "--token", "token-for-the-tests")


def test_serve_rejects_zero_workers():
    with pytest.raises(SystemExit):
        run("serve", "--workers", "0")


def test_parser_imports_no_package_of_the_extra():
    script = (
        "import argparse, sys; from collector.cli import add_commands; "
        "add_commands(argparse.ArgumentParser().add_subparsers()); "
        "print({'flask', 'sqlalchemy', 'granian', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
