"""Results are written whole, into a folder that was new or empty, with the mode that its owner chose."""

import errno
import os
import stat

import pytest

from inference.results.saving import new_folder
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from ldpkit.cli.report_files import write_reports
from schemas import Study
from tests import studies
from tests.kit.errors import raises


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["out", "out/folder"])
def test_folder_with_files_is_kept(tmp_path, name):
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "thesis.tex").write_text("years of work")
    with raises(InputError, "result.exists"), new_folder(tmp_path / "out") as made:
        (made / "new").touch()
    assert files_in(tmp_path) == {f"{name}/thesis.tex"}


def test_file_added_during_the_fit_is_kept(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    with raises(InputError, "files.not_writable"), new_folder(folder):
        (folder / "notes.txt").write_text("while you were away")
    assert files_in(tmp_path) == {"out/notes.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture(params=[0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_results_folder_keeps_chosen_mode(umask, tmp_path):
    target = tmp_path / "posterior"
    with new_folder(target):
        pass
    assert mode(target) == 0o777 & ~umask
    target.chmod(0o700)
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("whole")
    assert mode(target) == 0o700
    assert os.listdir(tmp_path) == ["posterior"]
    assert (target / "posterior.json").read_text() == "whole"


def test_report_files_are_private_to_owner(tmp_path):
    """Lines of a gateway's file are in the order of its people, and public fields are in clear."""
    (tmp_path / "study.json").write_text(Study(studies.document(studies.YES_NO)).to_json())
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    made = tmp_path / "perturbed.ndjson"
    command = ["perturb", str(tmp_path / "study.json"), str(tmp_path / "answers.csv"), "--out", str(made)]
    assert main(command) == 0
    assert write_reports([], tmp_path / "reports.ndjson") == 0
    assert mode(made) == mode(tmp_path / "reports.ndjson") == 0o600
    assert not list(tmp_path.glob(".ldpkit-*"))


def test_a_full_disk_is_an_input_error_and_leaves_nothing(tmp_path):
    with raises(InputError, "files.not_writable", "No space"), new_folder(tmp_path / "out") as folder:
        (folder / "posterior.json").write_text("half")
        # A process that is killed here leaves no result either.
        assert not (tmp_path / "out").exists()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []
