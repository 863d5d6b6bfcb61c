"""Tries to have `ldpkit derive` write over another study, or over the second as its author has edited it.

Defence: `derive`: replaces no document, and asks for keys of the second study's own. The collector:
publishes no study with a token key of another one there, deleted ones too.
"""

from __future__ import annotations

import pytest

from inference.projection import second_study as projecting
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.secure_sum.test_two_rounds import first_study, write_posterior


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The command, its search left out: it takes a moment, and finds what it finds."""
    study = first_study()
    (tmp_path / "first.json").write_text(study.to_json())
    write_posterior(study, tmp_path / "fit")
    found = projecting.find_thresholds(2, 1000, lambda norm: norm)
    monkeypatch.setattr(projecting, "find_thresholds", lambda *_: found)
    monkeypatch.setattr("inference.projection.rounds.doubts_of", lambda *_: [])

    def run(*options, out=tmp_path / "second.json"):
        first, fit = tmp_path / "first.json", tmp_path / "fit"
        return main(["derive", *map(str, (first, fit, "--out", out, *options))])

    return run


def test_project_does_not_overwrite_other_study(project, tmp_path, capsys):
    other = tmp_path / "other.json"
    other.write_text(Study(studies.document(studies.YES_NO)).to_json())
    before = other.read_bytes()
    assert project(out=other) == 3
    assert "has another study document: choose another file" in capsys.readouterr().err
    assert other.read_bytes() == before


def test_project_does_not_overwrite_edited_second_study(project, tmp_path, capsys):
    second = tmp_path / "second.json"
    assert project() == 0
    edited = second.read_text().replace('"version": 1', '"version": 2').replace('"version":1', '"version":2')
    second.write_text(edited)
    assert project() == 3
    assert "has another study document" in capsys.readouterr().err
    assert second.read_text() == edited


def test_repeated_project_prints_that_nothing_changed(project, tmp_path, capsys):
    assert project() == 0
    before = (tmp_path / "second.json").read_bytes()
    capsys.readouterr()
    assert project() == 0
    assert "nothing is changed" in capsys.readouterr().out
    assert (tmp_path / "second.json").read_bytes() == before


def test_project_rejects_id_of_first_study(project, tmp_path, capsys):
    assert project("--id", first_study().id) == 2
    assert "is the first study's" in capsys.readouterr().err
    assert not (tmp_path / "second.json").exists()
