"""Control characters from elsewhere (a study, a server, a file's name) act on a reader's terminal.

Defence: The command line: shows their escapes, and blanks in a row as one.
"""

import json

import pandas
import pytest

from ldp_client.documents.errors import InputError
from ldp_client.explain import describe
from ldp_client.words.text import visible
from ldpkit.cli import main
from schemas import Study
from summaries.tables import in_table
from tests import studies
from tests.ldp_client.devices import Server

CLEAR = "\x1b[2J\x1b[1;1H\x9b8m\u202e\r\n\x07"


def is_plain(text):
    return all(line.isprintable() for line in text.split("\n"))


def test_control_characters_are_shown_as_escapes():
    assert visible("a\x1b[8mb\n\u202ec ε…") == "a\\x1b[8mb\\n\\u202ec ε…"


def test_control_characters_in_study_texts_are_escaped(tmp_path, capsys):
    question = {**studies.CHOICE, "text": CLEAR, "choices": ["a" + CLEAR, "b"]}
    document = studies.document(question, title=CLEAR, purpose=CLEAR)
    lines = describe(Study(document))
    assert all(line.isprintable() for line in lines)
    (tmp_path / "study.json").write_text(json.dumps(document))
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert is_plain(capsys.readouterr().out)


@pytest.mark.parametrize("text", [CLEAR, "x" + CLEAR])
def test_control_characters_from_server_are_escaped(tmp_path, capsys, text):
    problem = {"type": "urn:ldpkit:report-invalid", "title": text, "detail": text}
    study = Study(studies.document(studies.YES_NO))
    with Server(content=study.canonical()) as server:
        url = f"{server.url}/v1/studies/survey"
        server.statuses = [200, 400]
        server.headers = {"X-Odd": "1"}
        assert (
            main(
                ["answer", "--max-epsilon", "8", url, "--folder", str(tmp_path), "--yes", "--set", "ever=yes"]
            )
            != 2
        )
        server.content = json.dumps(problem).encode()
        main(
            [
                "answer",
                "--max-epsilon",
                "8",
                url,
                "--folder",
                str(tmp_path / "other"),
                "--yes",
                "--set",
                "ever=yes",
            ]
        )
    told = capsys.readouterr()
    assert is_plain(told.err)
    assert is_plain(told.out)


def test_control_characters_in_operator_errors_are_escaped(tmp_path, capsys, monkeypatch):
    """Letters stay, so that an archive's folder can still be found."""
    monkeypatch.setenv("LDPKIT_TOKEN", "k" * 43)
    detail = f"its reports are in /srv/Ärchiv ελ 2{CLEAR}"
    with Server() as server:
        server.refusals[410] = "application/problem+json", json.dumps({"detail": detail})
        server.statuses = [410]
        assert main(["export", "habits", "--collector", server.url, "--out", str(tmp_path / "r.ndjson")]) == 3
    told = capsys.readouterr().err
    assert "answered 410: its reports are in /srv/Ärchiv ελ 2\\x1b[2J" in told
    assert is_plain(told)


def test_control_characters_in_column_names_are_escaped():
    for columns in (["Größe", CLEAR], ["study", "study"]):
        rows = pandas.DataFrame([["1", "2"]], columns=columns)
        with pytest.raises(InputError) as caught:
            list(in_table(rows))
        assert is_plain(str(caught.value))
        assert ("Größe" in str(caught.value)) == ("Größe" in columns)


def test_control_characters_in_file_name_are_escaped(capsys, tmp_path):
    assert main(["check", str(tmp_path / f"a{CLEAR.strip()}b")]) == 3
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert is_plain(told)


@pytest.mark.parametrize("blank", [" ", "\u2800", "\u3164", "\u115f \u1160", "\uffa0"])
def test_runs_of_blanks_are_shown_as_one(blank):
    """At 80 columns, the text after many blanks would begin a line and look like ldpkit's own."""
    line = "warning: none"
    shown = visible("Ever?" + blank * 400 + line)
    assert len(shown) == len("Ever?" + line) + 1
    assert visible("an answer with single blanks") == "an answer with single blanks"
