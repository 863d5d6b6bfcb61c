"""A slip in the name of a setting: the default would stand in silence, without an invitation key, say.

Defence: The collector: every command that reads settings, and `create_app`, refuses an unknown name in the
file and in the environment, with the one that may have been meant.
"""

import pytest

from collector.app import create_app
from ldp_client.cli import main
from ldp_client.documents.errors import UsageError
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
def test_each_command_that_reads_settings_names_the_slip(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_INVITATION_KY", "a secret that would be used by nobody")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "no setting is called LDPKIT_INVITATION_KY: did you mean LDPKIT_INVITATION_KEY?" in said
    assert "a secret" not in said
    assert list(tmp_path.iterdir()) == []


def test_so_does_the_application_in_anothers_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_DATABSE", "sqlite:///other.sqlite3")
    with raises(UsageError, "settings.unknown_variable", "LDPKIT_DATABASE"):
        create_app()


def test_what_tests_and_the_analyst_set_is_known(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("LDPKIT_DATA", "LDPKIT_CACHE", "LDPKIT_TOKEN", "LDPKIT_DISK_FULL"):
        monkeypatch.setenv(name, "off-and-long-enough")
    assert main(["backup", "--out", "copy"]) == 3
    assert "there is no database" in capsys.readouterr().err
