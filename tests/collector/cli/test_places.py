"""`ldpkit init` makes a place once, whole or not at all; copies and odd names of it work."""

import errno
import os
import shutil
import stat
import tomllib

import pytest

from collector import create_app, store
from collector.db import Database
from collector.studies import publish
from ldpkit.cli import main
from tests.kit.collectors import build_study
from tests.kit.operators import operate


def settings_of(place):
    return tomllib.loads((place / "ldpkit.toml").read_text())


def test_init_makes_a_place_once(elsewhere, capsys):
    assert main(["init"]) == 0
    settings = elsewhere / "ldpkit.toml"
    assert {stat.S_IMODE(file.stat().st_mode) for file in elsewhere.iterdir()} == {0o600}
    said = capsys.readouterr()
    token = settings_of(elsewhere)["token"]
    assert token not in said.out + said.err
    assert main(["token"]) == 0
    assert capsys.readouterr().out == f"{token}\n"
    before = settings.read_bytes()
    assert main(["init"]) == 3
    assert settings.read_bytes() == before
    assert create_app().test_client().get("/readyz").status_code == 200


def test_init_leaves_nothing_where_the_database_cannot_be_made(elsewhere):
    (elsewhere / "ldpkit.sqlite3").write_text("not a database, only a long enough text " * 100)
    unreachable = ["--database", "postgresql://127.0.0.1:9/nowhere"]
    for more, code in (([], 3), (unreachable, 5), (["place", *unreachable], 5), (["q?mode=memory"], 3)):
        assert main(["init", *more]) == code
        assert os.listdir(elsewhere) == ["ldpkit.sqlite3"]


@pytest.mark.attack(19)
@pytest.mark.parametrize("named", [[], ["--database", "sqlite:///prod/ldpkit.sqlite3"]], ids=["own", "named"])
def test_copied_collector_deletes_from_its_own_database(elsewhere, monkeypatch, named):
    """Delete a study in a copy of a collector's folder: the original's database must not be affected."""
    prod, copy = elsewhere / "prod", elsewhere / "rehearsal"
    prod.mkdir()
    assert main(["init", "prod", *named]) == 0
    databases = [Database(f"sqlite:///{folder / 'ldpkit.sqlite3'}", 1) for folder in (prod, copy)]
    with databases[0].write() as session:
        publish(session, build_study())
    databases[0].engine.dispose()
    shutil.copytree(prod, copy)
    monkeypatch.chdir(copy)
    operate(create_app(), "delete", "habits", "--yes")
    closed = []
    for database in databases:
        with database.read() as session:
            closed.append(store.study_state(session, "habits").closed)
        database.engine.dispose()
    assert closed == [False, True]


def test_init_stores_absolute_path_of_external_database(elsewhere):
    (elsewhere / "disk").mkdir()
    assert main(["init", "place", "--database", "sqlite:///disk/x.sqlite3"]) == 0
    assert settings_of(elsewhere / "place")["database"] == f"sqlite:///{elsewhere}/disk/x.sqlite3"


@pytest.mark.parametrize("flushed", range(3))
def test_init_can_be_repeated_after_a_full_disk(elsewhere, monkeypatch, capsys, flushed):
    """It writes the database, the gateway keys and last the settings, which mark it as complete."""
    place, flush, left = elsewhere / "place", os.fsync, iter([True] * flushed)

    def fsync(handle):
        if not next(left, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        made = main(["init", str(place)]) == 0
    assert (place / "ldpkit.toml").exists() == made
    if not made:
        assert "No space" in capsys.readouterr().err
        assert main(["init", str(place)]) == 0
    assert "token" in settings_of(place)
