"""Start a collector or an operator's command where its database is not: devices would drop their reports.

Attack: Serve or invite for one place's database from another place's folder, with that one's
`invitation_key`: the collector: refuses to start, and to invite.

Attack: (by mistake) inviting to another place's database with `--database`, so that its study is bound to a
key that its servers lack: the collector: a key in `ldpkit.toml` applies only to the database that is
named there.
"""

from __future__ import annotations

import os
import stat
import tomllib

import pytest
from sqlalchemy import text

from collector import create_app
from collector.settings import server_settings
from collector.storage import queries
from collector.storage.database import Database
from collector.storage.migrating import REVISION
from collector.studies import publishing
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.collector.conftest import ensure_database
from tests.kit.errors import raises

COMMANDS = [
    ["serve", "--port", "0", "--token", "token-for-the-tests"],
    ["serve", "--port", "0"],
    ["migrate"],
    ["backup", "--out", "copy"],
]

OF_ISSUERS = [
    ["issuer", "key", "habits"],
    ["issuer", "invite", "habits", "--count", "1", "--out", "codes.csv"],
    ["issuer", "serve", "--port", "0"],
    ["issuer", "status"],
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The current folder is empty, and nothing in the environment names another."""
    folder = tmp_path / "wrong"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("LDPKIT_DATABASE", "LDPKIT_CONFIG", "LDPKIT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_commands_do_not_create_missing_database(arguments, elsewhere, capsys):
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert f"there is no database {elsewhere}/ldpkit.sqlite3" in error
    assert "ldpkit init" in error
    assert error.count("\n") == 1
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("arguments", OF_ISSUERS, ids=" ".join)
def test_an_issuers_operator_is_not_sent_to_the_collectors_command(arguments, elsewhere, capsys):
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert f"there is no database {elsewhere}/issuer.sqlite3" in error
    assert "`ldpkit issuer init`" in error
    assert "ldpkit init" not in error
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_empty_database_is_not_filled(arguments, database_url, capsys):
    """With a wrong URL or an unmounted disk, there may be a file or a database without tables."""
    if database_url.startswith("sqlite"):
        open(database_url.removeprefix("sqlite:///"), "w").close()
    assert main([*arguments, "--database", database_url]) == 3
    error = capsys.readouterr().err
    assert "has no collector's tables" in error
    assert error.count("\n") == 1
    database = Database(database_url, 1)
    with database.engine.connect() as connection:
        assert database.engine.dialect.get_table_names(connection) == []
    database.engine.dispose()


def test_database_of_other_program_is_not_used_or_changed(postgresql, capsys):
    url = postgresql.new_database()
    database = Database(url, 1)
    with database.writing_connection() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num text)"))
        connection.execute(text("CREATE TABLE bills (number integer)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('0003')"))
    database.engine.dispose()
    for arguments in (
        ["migrate"],
        ["serve", "--port", "0", "--token", "token-for-the-tests"],
    ):
        assert main([*arguments, "--database", url]) == 3
        assert "has no collector's tables" in capsys.readouterr().err
    assert main(["init", "--database", url]) == 3
    assert "has tables already" in capsys.readouterr().err


def test_moved_database_file_is_not_recreated_empty(habits):
    habits.collector.database.engine.dispose()
    habits.path.rename(habits.path.with_suffix(".moved"))
    assert habits.client.get("/readyz").status_code == 503
    assert not habits.path.exists()


def test_commands_do_not_migrate_earlier_release(database_url, capsys):
    arguments = ["serve", "--port", "0", "--token", "token-for-the-tests"]
    database = Database(ensure_database(database_url), 10)
    with database.writing_connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    assert main([*arguments, "--database", database_url]) == 3
    assert "`ldpkit migrate`" in capsys.readouterr().err
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "0000"
    database.engine.dispose()


def test_migrate_refuses_database_in_use(database_url, make_harness, capsys):
    harness = make_harness(database=database_url)
    assert harness.client.get("/readyz").status_code == 200
    with harness.collector.database.writing_connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0007'"))
    assert main(["migrate", "--database", database_url]) == 3
    assert "is in use" in capsys.readouterr().err


def test_server_stores_nothing_in_database_of_other_release(make_harness, database_url, study, make_report):
    """The server was idle and not connected when `ldpkit migrate` looked for others."""
    harness = make_harness(database=database_url)
    harness.publish(study)
    before, after = make_report(study), make_report(study)
    assert harness.put(before).status_code == 201
    with harness.collector.database.writing_connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    answer = harness.put(after)
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert harness.post([after.to_document()]).status_code == 503
    with harness.collector.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM reports")).scalar_one() == 1


def test_init_makes_a_place_once(elsewhere, capsys):
    assert main(["init"]) == 0
    settings = elsewhere / "ldpkit.toml"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert stat.S_IMODE((elsewhere / "ldpkit.sqlite3").stat().st_mode) == 0o600
    said = capsys.readouterr()
    token = tomllib.loads(settings.read_text())["token"]
    assert "ldpkit serve" in said.err
    assert token not in said.out + said.err
    assert main(["token"]) == 0
    assert capsys.readouterr().out == f"{token}\n"
    for again in (["init"], ["serve", "--new", "--port", "0"]):
        before = settings.read_bytes()
        assert main(again) == 3
        assert "already" in capsys.readouterr().err
        assert settings.read_bytes() == before
    assert create_app().test_client().get("/readyz").status_code == 200


def test_init_leaves_nothing_where_the_database_cannot_be_made(elsewhere, capsys):
    (elsewhere / "ldpkit.sqlite3").write_text("not a database, only a long enough text " * 100)
    assert main(["init"]) == 3
    assert os.listdir(elsewhere) == ["ldpkit.sqlite3"]
    assert main(["init", "--database", "postgresql://127.0.0.1:9/nowhere"]) == 5
    assert os.listdir(elsewhere) == ["ldpkit.sqlite3"]
    assert main(["init", "place", "--database", "postgresql://127.0.0.1:9/nowhere"]) == 5
    assert os.listdir(elsewhere) == ["ldpkit.sqlite3"]
    capsys.readouterr()


def test_invitation_key_of_other_place_is_rejected(elsewhere, capsys, monkeypatch, study):
    """The other place's servers could then neither use its invitations nor make new ones."""
    monkeypatch.delenv("LDPKIT_INVITATION_KEY", raising=False)
    for place in ("a", "b"):
        assert main(["init", place]) == 0
    other = f"sqlite:///{elsewhere}/b/ldpkit.sqlite3"
    database = Database(other, 1)
    with database.write() as session:
        publishing.publish(session, study)
    monkeypatch.chdir(elsewhere / "a")
    capsys.readouterr()
    monkeypatch.setenv("LDPKIT_DATABASE", other)
    with raises(InputError, "settings.invitation_key_of_other_database"):
        create_app()
    monkeypatch.delenv("LDPKIT_DATABASE")
    serve = ["serve", "--port", "0", "--database"]
    for command in ([*serve, other], [*serve, "sqlite:///new.sqlite3", "--new"]):
        assert main(command) == 3
        assert (
            "the invitation_key of ldpkit.toml is for the database that it names" in capsys.readouterr().err
        )
    assert sorted(os.listdir()) == ["ldpkit.sqlite3", "ldpkit.toml", "ohttp.keys"]
    with database.read() as session:
        assert queries.study_state(session, study.id).spending is None
    database.engine.dispose()
    monkeypatch.chdir(elsewhere / "b")
    server_settings(database="sqlite:///../b/ldpkit.sqlite3")
    monkeypatch.chdir(elsewhere / "a")
    monkeypatch.setenv("LDPKIT_INVITATION_KEY", "the key of b's servers")
    server_settings(database=other)


def test_revisions_are_read_from_the_files():
    assert REVISION.isdecimal()
    with raises(InputError, "database.missing_file"):
        create_app({"database": "sqlite:///nosuch.sqlite3"})
