"""Tries to fill the folder for temporary files: what is full is named, and it is not standard output."""

from __future__ import annotations

import errno
import os
import tempfile

import pytest

from ldp_client.documents.errors import EXIT_OTHER, EXIT_REFUSED, InputError
from ldpkit import cli
from ldpkit.cli import main
from summaries import summarize_dataset
from summaries.engines import spilling, work
from tests.summaries.engines_data import FEW, made, write, write_dataset


class Full:
    """A file on a disk without room: its error names no file."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass

    def write(self, _content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["ds", "*.parquet"])
def test_full_temporary_folder_is_named_in_error(tmp_path, monkeypatch, capsys, where):
    write_dataset(tmp_path / "ds", made(FEW, 60))
    write(tmp_path / "one.parquet", made(FEW, 60))
    (tmp_path / "study.json").write_text(FEW.to_json())
    monkeypatch.setattr(work, "BUCKET", 1)
    monkeypatch.setattr(spilling, "open", lambda *_given: Full(), raising=False)
    call = [
        "summarize",
        f"{tmp_path}/study.json",
        f"{tmp_path}/{where}",
        "--out",
        f"{tmp_path}/out.json",
        "-q",
    ]
    assert main(call) == EXIT_REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"ldpkit: cannot keep temporary files in {tempfile.gettempdir()}: No space left on "
    )
    assert line.endswith("; set TMPDIR to a folder with more room")


def test_missing_temporary_folder_is_reported(tmp_path, monkeypatch):
    path = write(tmp_path / "one.parquet", made(FEW, 60))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [f"{tmp_path}/nowhere"])
    with pytest.raises(InputError, match=r"^cannot keep temporary files in any folder: No usable temporary"):
        summarize_dataset(FEW, path)


def test_other_full_disk_is_not_blamed_on_standard_output(monkeypatch, capsys):
    """The error names no file either."""
    monkeypatch.setattr(cli, "load_study", lambda _path: Full().write(""))
    assert main(["check", "study.json"]) == EXIT_OTHER
    assert capsys.readouterr().err == "ldpkit: No space left on device\n"
