"""A copy of a collector's folder is used to try something: the original's database must not be affected.

Defence: The collector: `ldpkit.toml` names the database by a relative path, and destructive commands
print the database's name; a copy whose settings name the original by an absolute path, as earlier
releases wrote them, is refused. Known limit: a PostgreSQL database is the same for every copy.
"""

from __future__ import annotations

import shutil
import tomllib

import pytest

from collector import create_app
from collector.settings import Settings, settings_with
from collector.storage import queries
from collector.storage.database import Database
from collector.studies import publishing
from ldpkit.cli import main
from tests.collector.commands import operate
from tests.collector.conftest import build_study


@pytest.fixture(autouse=True)
def nothing_named(tmp_path, monkeypatch):
    """No setting comes from the environment, and the current folder is the test's own."""
    monkeypatch.chdir(tmp_path)
    for name in ("LDPKIT_DATABASE", "LDPKIT_CONFIG", "LDPKIT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def is_closed(folder):
    database = Database(f"sqlite:///{folder / 'ldpkit.sqlite3'}", 1)
    with database.read() as session:
        found = queries.study_state(session, "habits")
    database.engine.dispose()
    return found.closed


@pytest.mark.parametrize("named", [[], ["--database", "sqlite:///prod/ldpkit.sqlite3"]], ids=["own", "named"])
def test_copied_collector_deletes_from_its_own_database(tmp_path, monkeypatch, capsys, named):
    prod, copy = tmp_path / "prod", tmp_path / "rehearsal"
    prod.mkdir()
    assert main(["init", "prod", *named]) == 0
    database = Database("sqlite:///prod/ldpkit.sqlite3", 1)
    with database.write() as session:
        publishing.publish(session, build_study())
    database.engine.dispose()
    shutil.copytree(prod, copy)
    capsys.readouterr()
    monkeypatch.chdir(copy)
    operate(create_app(), "delete", "habits", "--yes")
    assert is_closed(copy)
    assert not is_closed(prod)


def test_moved_collector_folder_still_works(tmp_path, monkeypatch, capsys):
    assert main(["init", "first"]) == 0
    (tmp_path / "first").rename(tmp_path / "second")
    monkeypatch.chdir(tmp_path / "second")
    assert main(["backup", "--out", str(tmp_path / "copy")]) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_CONFIG", str(tmp_path / "second" / "ldpkit.toml"))
    assert main(["backup", "--out", str(tmp_path / "other")]) == 0
    capsys.readouterr()


def test_init_stores_absolute_path_of_external_database(tmp_path, monkeypatch, capsys):
    (tmp_path / "disk").mkdir()
    assert main(["init", "place", "--database", "sqlite:///disk/x.sqlite3"]) == 0
    written = tomllib.loads((tmp_path / "place" / "ldpkit.toml").read_text())
    assert written["database"] == f"sqlite:///{tmp_path}/disk/x.sqlite3"
    monkeypatch.chdir(tmp_path / "place")
    assert main(["backup", "--out", str(tmp_path / "copy")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "url", ["sqlite:////whole/x", "sqlite:///:memory:", "postgresql://host/x", "sqlite://"]
)
def test_other_database_urls_are_not_rewritten(tmp_path, monkeypatch, url):
    (tmp_path / "ldpkit.toml").write_text(f'database = "{url}"\n')
    monkeypatch.setenv("LDPKIT_CONFIG", str(tmp_path / "ldpkit.toml"))
    assert Settings.from_environment().database == url
    assert settings_with(database="sqlite:///y").database == "sqlite:///y"
