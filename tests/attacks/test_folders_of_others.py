"""A command deletes a folder that is not its own: pictures, data, reports, a symbolic link.

Defence: The command: replaces only regular files that its own document in that folder lists, checks again
before it does, and writes nothing otherwise.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import ldpkit
from inference.demo.run import older_files
from inference.demo.survey import study_for
from inference.design.folders import CALIBRATION_FILES as CALIBRATION
from inference.design.folders import PLAN_FILES as PLAN
from inference.results.diagnostics import diagnose
from inference.results.folder import FIT_FILES, whole_folder
from inference.results.posterior import Posterior
from ldp_client.cli import main
from ldp_client.documents.errors import InputError
from ldpkit import ask
from schemas import Study
from tests import studies
from tests.kit.errors import raises

KINDS = [pytest.param(FIT_FILES, id="fit"), pytest.param(PLAN, id="plan"), pytest.param(CALIBRATION, id="c")]
MARK = json.dumps({"study_digest": "0" * 64, "questions": {"ever": {}}})


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder, own):
    before = files_in(folder)
    with raises(InputError, "result.foreign_file"), whole_folder(folder, own) as made:
        (made / "new").touch()
    assert files_in(folder) == before


@pytest.mark.parametrize("own", KINDS)
@pytest.mark.parametrize(
    "name",
    ["wedding.png", "era5-2023.nc", "ever.png", "raw.png/thesis.tex", "ever.png/thesis.tex", "report.html"],
)
def test_foreign_files_with_result_names_are_kept(tmp_path, own, name):
    """Covers files and folders of such names; without this command's document none counts as its own."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("years of work")
    refused(tmp_path, own)


@pytest.mark.parametrize("own", KINDS)
@pytest.mark.parametrize("name", ["wedding.png", "other.nc", "ever.png/thesis.tex"])
def test_foreign_files_in_a_result_folder_are_kept(tmp_path, own, name):
    (tmp_path / own.mark).write_text(MARK)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("years of work")
    refused(tmp_path, own)


@pytest.mark.parametrize("own", KINDS)
def test_invalid_result_document_does_not_mark_the_folder(tmp_path, own):
    for text in ("[]", "{}", '{"study_digest": 3, "questions": {}}', "\xff"):
        (tmp_path / own.mark).write_text(text)
        refused(tmp_path, own)


def test_symbolic_link_named_like_a_picture_is_kept(tmp_path):
    (tmp_path / "posterior.json").write_text(MARK)
    (tmp_path / "ever.png").symlink_to(tmp_path / "posterior.json")
    refused(tmp_path, FIT_FILES)


def test_file_added_during_the_fit_is_kept(tmp_path):
    (tmp_path / "posterior.json").write_text(MARK)
    with raises(InputError, "result.foreign_file", "notes.txt"), whole_folder(tmp_path):
        (tmp_path / "notes.txt").write_text("while you were away")
    assert set(files_in(tmp_path)) == {"posterior.json", "notes.txt"}


@pytest.mark.parametrize("own", KINDS)
def test_complete_older_result_is_replaced(tmp_path, own):
    """Replacing must keep working, and leave no other files behind."""
    target = tmp_path / "out"
    target.mkdir()
    for name in (own.mark, *own.others, *(pattern.replace("{}", "ever") for pattern in own.each)):
        (target / name).write_text(MARK)
    with whole_folder(target, own) as made:
        (made / "new").touch()
    assert set(files_in(tmp_path)) == {"out/new"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_demo_does_not_delete_collected_reports(tmp_path):
    """Reports of a real study cannot be collected again; the demo's can."""
    demo = study_for("1")
    (tmp_path / "posterior.json").write_text(MARK)
    for name in ("reports.ndjson", "study.json"):
        (tmp_path / name).write_text(Study(studies.document(studies.YES_NO)).to_json())
    refused(tmp_path, older_files(tmp_path, demo))
    (tmp_path / "study.json").write_text(study_for("2").to_json())
    with whole_folder(tmp_path, older_files(tmp_path, demo)):
        pass
    assert files_in(tmp_path) == {}


def test_save_does_not_overwrite_foreign_draws(tmp_path):
    draws = {"p": np.random.default_rng(1).normal(size=(4, 100))}
    found = diagnose(draws, np.zeros((4, 100), bool))
    posterior = Posterior("ever", "bernoulli", 9, draws, {"p": 1.0}, found, "0" * 64, 0)
    (tmp_path / "ever.nc").write_text("years of data")
    with raises(InputError, "result.draws_of_other_fit", "ever"):
        posterior.save(tmp_path)
    assert files_in(tmp_path) == {"ever.nc": b"years of data"}


def test_fit_does_not_overwrite_result_of_another_study(tmp_path):
    mine, other = Study(studies.document()), Study(studies.document(version=2))
    folder = tmp_path / "posterior"
    folder.mkdir()
    (folder / "posterior.json").write_text(json.dumps({"study_digest": other.digest, "questions": {}}))
    with raises(InputError, "result.of_other_study", other.digest), whole_folder(folder, study=mine):
        pass
    with whole_folder(folder, study=other) as written:
        (written / "posterior.json").write_text("{}")
    assert (folder / "posterior.json").read_text() == "{}"


def test_calibration_does_not_overwrite_another_studys(tmp_path, capsys):
    """A calibration takes hours and used to be overwritten silently; a plan is expected to be repeated."""
    study, out = tmp_path / "study.json", tmp_path / "out"
    study.write_text(ldpkit.study("s", "Title", [ask.yes_no("ever", epsilon=2)]).to_json())
    out.mkdir()
    (out / CALIBRATION.mark).write_text(MARK)
    before = files_in(out)
    assert main(["calibrate", str(study), "--out", str(out)]) == 3
    said = capsys.readouterr().err
    assert "holds a result of another study, or of this one before it was edited" in said
    assert files_in(out) == before


SEARCHES = {
    "inference.design.difference.plan_difference": ("--difference", "ever=0.2,0.3"),
    "inference.design.device_epsilon.plan_shuffled": ("--shuffled", "0.5", "--n", "10000"),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_plan_refuses_foreign_folder_before_searching(tmp_path, monkeypatch, search):
    study, out = tmp_path / "study.json", tmp_path / "out"
    study.write_text(ldpkit.study("s", "Title", [ask.yes_no("ever", epsilon=2)]).to_json())
    out.mkdir()
    (out / "own.txt").write_text("not of a plan")
    monkeypatch.setattr(search, lambda *_, **__: pytest.fail("searched"))
    assert main(["plan", *SEARCHES[search], str(study), "--out", str(out)]) == 3
