"""Run a collector from a folder with an odd name, take lists that were changed on their way, upgrade.

Defence: The collector: deletes nothing before a day to come, names its files as they are called, reads
lists whatever their line ends, refuses those that share invitations, and backs up the database of an
earlier release.
"""

from __future__ import annotations

import shutil
import sqlite3
import tomllib
from contextlib import closing

import pytest

from collector.operator.inviting import list_text, take_list
from collector.storage.database import Database
from collector.storage.invitations import add_invitations
from collector.storage.keys import hash_key
from collector.storage.migrating import make
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.collector.conftest import count_invitations
from tests.kit.errors import raises

KEY = b"the key of this place"
NODE = "https://node.example.org"


@pytest.fixture(autouse=True)
def nothing_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("LDPKIT_DATABASE", "LDPKIT_CONFIG", "LDPKIT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ["50% done", "really?", "a%20b", "x#1", "with space", "q?mode=memory"])
def test_place_with_odd_folder_name_works(tmp_path, monkeypatch, capsys, name):
    """Each command works on the file in the place, and makes none elsewhere."""
    place = tmp_path / name
    assert main(["init", name]) == 0
    assert sorted(file.name for file in place.iterdir()) == ["ldpkit.sqlite3", "ldpkit.toml", "ohttp.keys"]
    assert tomllib.loads((place / "ldpkit.toml").read_text())["database"] == "sqlite:///ldpkit.sqlite3"
    monkeypatch.setenv("LDPKIT_CONFIG", str(place / "ldpkit.toml"))
    assert main(["backup", "--out", str(place / "copy")]) == 0
    with closing(sqlite3.connect(place / "copy")) as connection:
        assert connection.execute("SELECT count(*) FROM keys").fetchone() == (0,)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    capsys.readouterr()


def test_copied_place_of_earlier_release_is_rejected(tmp_path, monkeypatch, capsys):
    """The settings of the copy name the original's database by an absolute path."""
    assert main(["init", "prod"]) == 0
    settings = tmp_path / "prod" / "ldpkit.toml"
    older = settings.read_text().replace("sqlite:///ldpkit", f"sqlite:///{tmp_path}/prod/ldpkit")
    settings.write_text(older)
    shutil.copytree(tmp_path / "prod", tmp_path / "rehearsal")
    monkeypatch.chdir(tmp_path / "prod")
    assert main(["backup", "--out", "copy"]) == 0
    monkeypatch.chdir(tmp_path / "rehearsal")
    capsys.readouterr()
    assert main(["backup", "--out", "copy"]) == 3
    assert 'write database = "sqlite:///ldpkit.sqlite3"' in capsys.readouterr().err


@pytest.fixture
def writing(habits):
    with habits.collector.database.write() as session:
        yield session


@pytest.mark.parametrize("changed", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, str.rstrip])
def test_list_changed_by_mail_program_is_accepted(writing, changed):
    text = list_text("habits", NODE, 0, [hash_key(word) for word in "abc"])
    assert (
        take_list(writing, "habits", changed(text), KEY, "", "ann") == f"3 invitations taken, of node {NODE}"
    )
    with raises(InputError, "ticket.list_taken_before"):
        take_list(writing, "habits", text, KEY, "", "ann")


def test_overlapping_lists_are_rejected(writing):
    take_list(
        writing, "habits", list_text("habits", NODE, 0, [hash_key(word) for word in "abc"]), KEY, "", "ann"
    )
    with raises(InputError, "ticket.list_overlaps_another", "1", "2"):
        take_list(
            writing, "habits", list_text("habits", NODE, 0, [hash_key(word) for word in "cd"]), KEY, "", "ann"
        )
    assert count_invitations(writing, 1) == 3
    add_invitations(writing, 1, [hash_key("d")], KEY)


def test_an_earlier_releases_database_can_be_backed_up_before_it_is_migrated(database_url, tmp_path, capsys):
    """As the message says that refuses it: make a backup, and run `ldpkit migrate`."""
    database = Database(database_url, 10)
    make(database)
    with database.writing_connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0000'")
    assert main(["serve", "--port", "0", "--database", database_url]) == 3
    assert "make a backup, and run `ldpkit migrate`" in capsys.readouterr().err
    assert main(["backup", "--database", database_url, "--out", str(tmp_path / "backup")]) == 0
    assert (tmp_path / "backup").stat().st_size > 1000
    with database.writing_connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert main(["backup", "--database", database_url, "--out", str(tmp_path / "later")]) == 3
    assert "later release" in capsys.readouterr().err
    database.engine.dispose()


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), FileExistsError(17, "File exists")]
)
def test_failed_place_creation_prints_one_line(tmp_path, monkeypatch, capsys, error):
    def refuse(*_arguments, **_options):
        raise error

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert main(["init", str(tmp_path / "place")]) == 3
    said = capsys.readouterr().err
    assert error.strerror in said
    assert said.count("\n") == 1
