"""A command deletes a folder that is not its own: pictures, data, reports, an older result.

Defence: The command: writes into a folder that did not exist or was empty, looks again at the end, and writes
nothing otherwise.
"""

from __future__ import annotations

import numpy as np
import pytest

import ldpkit
from inference.results.diagnostics import diagnose
from inference.results.posterior import Posterior
from inference.results.saving import new_folder
from ldp_client.documents.errors import InputError
from ldpkit import ask
from ldpkit.cli import main
from tests.kit.errors import raises


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder):
    before = files_in(folder)
    with raises(InputError, "result.exists"), new_folder(folder) as made:
        (made / "new").touch()
    assert files_in(folder) == before


@pytest.mark.parametrize(
    "name",
    ["wedding.png", "era5-2023.nc", "posterior.json", "raw.png/thesis.tex", "report.html", "study.json"],
)
def test_folder_with_files_is_kept(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("years of work")
    refused(tmp_path)


def test_folder_with_a_symbolic_link_is_kept(tmp_path):
    (tmp_path / "ever.png").symlink_to(tmp_path / "nowhere")
    refused(tmp_path)
    assert (tmp_path / "ever.png").is_symlink()


def test_present_folder_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(tmp_path)


def test_file_added_during_the_fit_is_kept(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    with raises(InputError, "files.not_writable"), new_folder(folder):
        (folder / "notes.txt").write_text("while you were away")
    assert set(files_in(tmp_path)) == {"out/notes.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_save_does_not_overwrite_an_older_result(tmp_path):
    draws = {"p": np.random.default_rng(1).normal(size=(4, 100))}
    found = diagnose(draws, np.zeros((4, 100), bool))
    posterior = Posterior("ever", "bernoulli", 9, draws, {"p": 1.0}, found, "0" * 64, 0)
    posterior.save(tmp_path / "out")
    before = files_in(tmp_path)
    with raises(InputError, "result.exists"):
        posterior.save(tmp_path / "out")
    assert files_in(tmp_path) == before


def test_calibration_does_not_overwrite_another(tmp_path, capsys):
    study, out = tmp_path / "study.json", tmp_path / "out"
    study.write_text(ldpkit.study("s", "Title", [ask.yes_no("ever", epsilon=2)]).to_json())
    out.mkdir()
    (out / "calibration.json").write_text("{}")
    before = files_in(out)
    assert main(["calibrate", str(study), "--out", str(out)]) == 3
    assert "is not a new folder" in capsys.readouterr().err
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
