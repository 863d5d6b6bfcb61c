"""A collector has a PostgreSQL database that is not in UTF8, or gets addresses that no database can store.

Defence: The collector: a malformed study id is unknown before anything is written, and a PostgreSQL
database that is not in UTF8 is refused by every command.
"""

from __future__ import annotations

import pytest

from collector import create_app
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.collector.answered import problem
from tests.collector.conftest import TOKEN
from tests.kit.errors import raises

ODD = ["%F0%9F%98%80", "%C3%A9", "%00", "%ED%A0%80", "%EF%BF%BF", "habits%0A", "Habits", "x" * 65, ".x"]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_database_that_is_not_utf8_is_refused_in_one_line(
    postgresql, encoding, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = f"in_{encoding.lower()}"
    made = f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with postgresql._connect() as connection:
        connection.execute(made)
    url = f"postgresql://postgres@/{name}?host={postgresql.folder}"
    for command in (["init", "place"], ["migrate"], ["serve"]):
        assert main([*command, "--database", url]) == 3
        said = capsys.readouterr().err
        assert f"in the encoding {encoding}" in said
        assert said.count("\n") == 1
    assert not (tmp_path / "place" / "ldpkit.toml").exists()
    with raises(InputError, "database.not_utf8", encoding):
        create_app({"database": url, "token": TOKEN})


@pytest.mark.parametrize("odd", ODD)
def test_malformed_study_id_never_reaches_the_writer(habits, odd, monkeypatch):
    """The writer would handle it in one transaction with others' uploads."""
    monkeypatch.setattr(habits.collector.writer, "_run_job", lambda _job: pytest.fail("it was written"))
    for method, path in (("POST", "reports"), ("DELETE", "reports/" + "0" * 32), ("GET", "")):
        address = f"/v1/studies/{odd}/{path}".rstrip("/")
        proof = {"LDPKit-Withdrawal": "0" * 32}
        answer = habits.client.open(address, method=method, json={"reports": []}, headers=proof)
        assert answer.status_code in (403, 404), address
        if answer.status_code == 404:
            assert problem(answer)[1] == "study-unknown"
    page = habits.client.get(f"/s/{odd}")
    assert (page.status_code, page.mimetype) == (404, "text/html")
