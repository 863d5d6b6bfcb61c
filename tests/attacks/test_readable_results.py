"""Other users of a machine read what a command wrote: reports, or what replaced a private result.

Defence: The command: reports are their owner's alone, other results as the umask says, and what is replaced
keeps its mode.
"""

import os
import stat
from pathlib import Path

import pytest

from collector.remote.writing import write_reports
from inference.results.saving import new_folder
from ldp_client.files.disk import replacing
from ldpkit.cli import main
from schemas import Study
from tests import studies

STUDY = Study(studies.document(studies.YES_NO))


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture(params=[0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_result_file_keeps_chosen_mode(umask, tmp_path):
    path = tmp_path / "result"
    with replacing(str(path)) as file:
        file.write("new")
    assert mode(path) == 0o666 & ~umask
    for chosen in (0o600, 0o640, 0o664):
        path.chmod(chosen)
        with replacing(str(path)) as file:
            file.write("again")
        assert (mode(path), path.read_text()) == (chosen, "again")


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


@pytest.mark.parametrize("name", ["reports.ndjson", "reports.csv", "reports.parquet"])
def test_report_files_are_private_to_owner(tmp_path, name):
    """Lines of a gateway's file are in the order of its people, and public fields are in clear."""
    (tmp_path / "study.json").write_text(STUDY.to_json())
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    made = tmp_path / "perturbed.ndjson"
    command = ["perturb", str(tmp_path / "study.json"), str(tmp_path / "answers.csv"), "--out", str(made)]
    assert main(command) == 0
    assert write_reports([], tmp_path / name) == 0
    assert mode(made) == mode(tmp_path / name) == 0o600
    assert not list(Path(tmp_path).glob(".ldpkit-*"))
