"""`ldpkit derive` replaces no study document but its own."""

from __future__ import annotations

import json

import pytest

from inference.projection import second_study as projecting
from ldpkit.cli import main
from schemas import Study
from tests.kit.secure_sum import build_study

SPREADS = {"age": (1.0, 0.5), "rate": (5.0, 3.0)}


def first_study():
    """A secure sum of a number and of its response, of which a share of the budget is spent."""
    document = build_study("spread", devices=1000, max_faulty=50).document
    asked = document["questions"][0]
    stated = {**asked["mechanism"], "epsilon": "0.2", "delta": "2e-7", "share": "0.2"}
    age, rate = {"id": "age", "bounds": ["-10", "10"]}, {"id": "rate", "bounds": ["-80", "80"]}
    return Study(
        {**document, "questions": [{**asked, "features": [age], "response": rate, "mechanism": stated}]}
    )


def write_posterior(study, folder):
    rows = {}
    for name, (mean, sd) in SPREADS.items():
        rows |= {f"mean[{name}]": {"mean": mean, "sd": 0.0}, f"sd[{name}]": {"mean": sd, "sd": 0.0}}
    folder.mkdir()
    found = {"study_digest": study.digest, "questions": {"spread": {"parameters": rows}}}
    (folder / "posterior.json").write_text(json.dumps(found))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The command, its search left out: it takes a moment, and finds what it finds."""
    study = first_study()
    (tmp_path / "first.json").write_text(study.to_json())
    write_posterior(study, tmp_path / "fit")
    found = projecting.find_thresholds(1, 1000, lambda norm: norm)
    monkeypatch.setattr(projecting, "find_thresholds", lambda *_: found)
    monkeypatch.setattr("inference.projection.second_study.doubts_of", lambda *_: [])

    def run(*options, out=tmp_path / "second.json"):
        first, fit = tmp_path / "first.json", tmp_path / "fit"
        return main(["derive", *map(str, (first, fit, "--out", out, *options))])

    return run


@pytest.mark.slow
def test_project_does_not_overwrite_edited_second_study(project, tmp_path, capsys):
    second = tmp_path / "second.json"
    assert project() == 0
    edited = second.read_text().replace('"version": 1', '"version": 2').replace('"version":1', '"version":2')
    second.write_text(edited)
    assert project() == 3
    assert "is there already" in capsys.readouterr().err
    assert second.read_text() == edited
