"""Tries to have a command write its result over what it reads: the only reports, a study, a signing key."""

from __future__ import annotations

import os

import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from schemas import Study
from tests import studies

STUDY = Study(studies.document(studies.YES_NO))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    mechanisms = {"ever": mechanism_for(STUDY.questions[0])}
    lines = [perturb_answers(STUDY, mechanisms, {"ever": True}).to_json() + "\n" for _ in range(5)]
    (tmp_path / "reports.ndjson").write_text("".join(lines))
    os.link(tmp_path / "reports.ndjson", tmp_path / "linked.ndjson")
    (tmp_path / "symbolic.ndjson").symlink_to("reports.ndjson")
    return tmp_path


def refused(capsys, folder, *arguments):
    """The files are all as before, and the line says what to do."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(list(map(str, arguments))) == 3
    said = capsys.readouterr().err
    assert "which is read: choose another file" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["reports.ndjson", "study.json", "linked.ndjson", "symbolic.ndjson"])
def test_a_summary_over_what_it_is_made_of(files, capsys, name):
    refused(capsys, files, "summarize", files / "study.json", files / "reports.ndjson", "--out", files / name)


def test_a_second_study_over_the_first(files, capsys):
    command = ["project", files / "study.json", files / "reports.ndjson", "--out", files / "study.json"]
    refused(capsys, files, *command)


def test_findings_of_an_audit_over_the_study(files, capsys):
    refused(capsys, files, "audit", files / "study.json", "--out", files / "study.json")


def test_a_signed_study_over_the_key(files, capsys):
    key = files / "key.pem"
    assert main(["study", "keygen", "--out", str(key)]) == 0
    capsys.readouterr()
    refused(capsys, files, "study", "sign", files / "study.json", "--key", key, "--out", key)


def test_a_summary_elsewhere_is_written(files):
    out = files / "summary.json"
    for _ in range(2):
        assert (
            main(["summarize", *map(str, [files / "study.json", files / "reports.ndjson", "--out", out])])
            == 0
        )
    assert out.read_text().startswith('{"digest"')
