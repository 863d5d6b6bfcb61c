"""A setting's name is misspelt: the default silently applies, for example without an invitation key.

Defence: The collector: every command that reads settings, and `create_app`, refuses an unknown name in
the file and in the environment, and suggests the intended one.
"""

import pytest

from collector.app import create_app
from ldp_client.documents.errors import UsageError
from ldpkit.cli import main
from tests.kit.errors import raises

COMMANDS = [
    ["serve", "--port", "0", "--token", "token-for-the-tests"],
    ["status"],
    ["token"],
    ["backup", "--out", "copy"],
    ["init"],
    ["export", "habits", "--out", "reports.ndjson", "--token", "t"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_commands_reject_misspelt_setting_with_a_suggestion(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_INVITATION_KY", "a secret that would be used by nobody")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "no setting is called LDPKIT_INVITATION_KY: did you mean LDPKIT_INVITATION_KEY?" in said
    assert "a secret" not in said
    assert list(tmp_path.iterdir()) == []


def test_create_app_rejects_misspelt_setting(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_DATABSE", "sqlite:///other.sqlite3")
    with raises(UsageError, "settings.unknown_variable", "LDPKIT_DATABASE"):
        create_app()


def test_variables_of_tests_and_analysts_are_accepted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("LDPKIT_DATA", "LDPKIT_CACHE", "LDPKIT_TOKEN", "LDPKIT_DISK_FULL"):
        monkeypatch.setenv(name, "off-and-long-enough")
    assert main(["backup", "--out", "copy"]) == 3
    assert "there is no database" in capsys.readouterr().err
