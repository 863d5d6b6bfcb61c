"""Results are written whole, into a folder that was new or empty, with the mode that its owner chose."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from inference.results.saving import new_folder
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from ldpkit.cli.report_files import write_reports
from schemas import Study
from tests import studies
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
    ["wedding.png", "posterior.json", "raw.png/thesis.tex"],
)
def test_folder_with_files_is_kept(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("years of work")
    refused(tmp_path)


def test_file_added_during_the_fit_is_kept(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    with raises(InputError, "files.not_writable"), new_folder(folder):
        (folder / "notes.txt").write_text("while you were away")
    assert set(files_in(tmp_path)) == {"out/notes.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


STUDY = Study(studies.document(studies.YES_NO))


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture(params=[0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_results_folder_keeps_chosen_mode(umask, tmp_path):
    target = tmp_path / "posterior"
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("{}")
    assert mode(target) == 0o777 & ~umask
    (target / "posterior.json").unlink()
    target.chmod(0o700)
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("{}")
    assert mode(target) == 0o700
    assert os.listdir(tmp_path) == ["posterior"]


def test_report_files_are_private_to_owner(tmp_path):
    """Lines of a gateway's file are in the order of its people, and public fields are in clear."""
    (tmp_path / "study.json").write_text(STUDY.to_json())
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    made = tmp_path / "perturbed.ndjson"
    command = ["perturb", str(tmp_path / "study.json"), str(tmp_path / "answers.csv"), "--out", str(made)]
    assert main(command) == 0
    assert write_reports([], tmp_path / "reports.ndjson") == 0
    assert mode(made) == mode(tmp_path / "reports.ndjson") == 0o600
    assert not list(Path(tmp_path).glob(".ldpkit-*"))


def write_half(target):
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("half")
        raise RuntimeError("stopped")


def test_results_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(RuntimeError, match="stopped"):
        write_half(target)
    assert list(tmp_path.iterdir()) == []
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("whole")
    assert (target / "posterior.json").read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


KILLED = """
import os, signal, sys
from pathlib import Path
from inference.results.saving import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "posterior.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_fit_leaves_no_result(tmp_path):
    target = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()


def fill_the_disk(target):
    with new_folder(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_an_input_error_and_leaves_nothing(tmp_path):
    with raises(InputError, "files.not_writable", "No space"):
        fill_the_disk(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
