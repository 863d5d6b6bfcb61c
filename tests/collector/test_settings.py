"""Settings, database URLs, the command line's arguments, and what importing loads."""

import subprocess
import sys

import pytest

from collector import create_app
from collector.keys import Role, add_key, remove_key
from collector.settings import Settings, server_settings
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.kit.collectors import REPOSITORY
from tests.kit.errors import raises
from tests.kit.operators import operate

TOKEN = "token-for-the-tests"


def test_settings_come_from_defaults_a_file_and_the_environment(tmp_path):
    expected = Settings("sqlite:///ldpkit.sqlite3", None, 1024 * 1024, 2.0)
    assert Settings.from_mapping({}) == Settings.load({}) == expected
    environment = {"LDPKIT_DATABASE": "sqlite:///x", "LDPKIT_TOKEN": TOKEN, "LDPKIT_BODY_LIMIT": "10"}
    environment |= {"LDPKIT_LOCK_TIMEOUT": "0.5", "HOME": "/"}
    assert Settings.load(environment) == Settings("sqlite:///x", TOKEN, 10, 0.5)
    file = tmp_path / "ldpkit.toml"
    file.write_text('database = "sqlite:///x"\ngrace_days = 3\nupload_rate = 2.5\n')
    environment = {"LDPKIT_CONFIG": str(file), "LDPKIT_GRACE_DAYS": "4"}
    expected = Settings(f"sqlite:///{tmp_path / 'x'}", grace_days=4, upload_rate=2.5)
    assert Settings.load(environment) == expected
    file.write_text("grace_days = ")
    with raises(InputError, "settings.not_toml"):
        Settings.load(environment)
    # Not text: `false` for none would be a secret that anyone can guess.
    file.write_text("ticket_key = false\n")
    with raises(InputError, "settings.wrong_value", "ticket_key"):
        Settings.load(environment)
    with raises(InputError, "files.cannot_read"):
        Settings.load({"LDPKIT_CONFIG": str(tmp_path / "nosuch")})


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"databse": "x"}, ("settings.unknown_setting", "'databse'")),
        ({"token": "geheimés"}, ("settings.wrong_value", "token")),
        ({"token": "fifteen-letters"}, ("settings.wrong_value", "token", "16", "`ldpkit init`")),
        ({"grace_days": 10**10}, ("settings.wrong_value", "grace_days")),
        ({"body_limit": "many"}, ("settings.wrong_value", "body_limit", "whole number")),
        ({"lock_timeout": "soon"}, ("settings.wrong_value", "lock_timeout", "a number")),
        ({"upload_rate": "nan"}, ("settings.wrong_value", "upload_rate", "not negative")),
        ({"database": "nonsense"}, ("database.not_url", "database")),
        ({"database": "mysql://localhost/x"}, ("database.unsupported_kind", "'mysql'")),
        ({"database": "sqlite:///:memory:"}, "database.in_memory"),
        ({"database": "sqlite:////nosuch/x.sqlite3"}, ("database.missing_file", "/nosuch/x.sqlite3")),
    ],
)
def test_wrong_settings_are_one_clear_line(values, code):
    with raises(InputError, code) as caught:
        create_app(values)
    assert "\n" not in str(caught.value)


@pytest.mark.processes
def test_help_imports_no_heavy_package():
    script = (
        "import sys; from ldpkit.cli import main; main(['--help']); "
        "print({'flask', 'jax', 'numpy', 'sqlalchemy', 'granian', 'pyarrow'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.attack(19)
@pytest.mark.parametrize("arguments", [["serve", "--port", "0"], ["status"], ["init"]])
def test_commands_reject_misspelt_setting_with_a_suggestion(arguments, elsewhere, monkeypatch, capsys):
    """A setting's name is misspelt: no default may silently take its place."""
    monkeypatch.setenv("LDPKIT_TICKET_KY", "a secret that would be used by nobody")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "no setting is called LDPKIT_TICKET_KY: did you mean LDPKIT_TICKET_KEY?" in said
    assert "a secret" not in said
    assert list(elsewhere.iterdir()) == []


@pytest.mark.attack(14)
@pytest.mark.usefixtures("elsewhere")
def test_server_does_not_start_with_a_client_key_as_token(monkeypatch, capsys):
    """A read key stands in LDPKIT_TOKEN where a server starts: it must not become the operator's token."""

    def printed():
        return capsys.readouterr().out.strip()

    assert main(["init"]) == main(["token"]) == 0
    token = printed()
    operate(create_app(), "keys", "analyst", "--role", "read")
    reader = printed()
    # For `ldpkit token` also where it names one key for each node of a secure sum.
    for found in (f"{reader} {reader}", reader):
        monkeypatch.setenv("LDPKIT_TOKEN", found)
        assert main(["token"]) == 0
        assert printed() == token
    for start in (create_app, server_settings):
        with raises(InputError, "settings.token_variable_differs", "LDPKIT_TOKEN", "ldpkit.toml"):
            start()
    monkeypatch.setenv("LDPKIT_TOKEN", token)
    assert server_settings().token == token


@pytest.mark.attack(14)
def test_current_or_removed_key_is_rejected_as_token(empty):
    """Start a server with a key as its token, also one that was removed: it is refused."""
    key = empty.write(add_key, "ann", Role.READ)
    settings = Settings(database=f"sqlite:///{empty.path}", token=key)
    with raises(InputError, "settings.token_is_a_key", "setting token", "read"):
        create_app(settings)
    empty.write(remove_key, "ann")
    with raises(InputError, "settings.token_is_a_key", "setting token", "removed"):
        create_app(settings)
