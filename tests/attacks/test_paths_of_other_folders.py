"""Tries to have workers read other files than those that were named: each opens paths in its own folder.

Defence: `ldpkit summarize`, `summarize_dataset`, `count_dataset`: paths go to workers from the root.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ldp_client.documents.errors import InputError
from summaries import summarize, summarize_dataset
from summaries.engines import running
from summaries.engines.dataset import find_dataset
from tests.kit.errors import raises
from tests.summaries.engines_data import FEW, made, write, write_dataset


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Reports in a folder in which the process is, whose name has signs that elsewhere stand for others."""
    folder = tmp_path / "a[1]"
    reports = made(FEW, 60)
    write_dataset(folder / "ds", reports)
    write(folder / "files" / "one.parquet", reports)
    monkeypatch.chdir(folder)
    return reports


@pytest.mark.parametrize(
    "given",
    ["ds", "ds/study_id=survey/", "files/one.parquet", "files/*.parquet", Path("ds"), "file://ds", "local://ds"],
)  # fmt: skip
def test_workers_get_absolute_paths(reports, given, tmp_path, monkeypatch):
    if "://" in str(given):
        pytest.importorskip("fsspec")
    files = find_dataset(FEW, given).files
    assert files
    assert all(os.path.isabs(file.path.partition("://")[2] or file.path) for file in files)
    genuine = running.run_local

    def elsewhere(*arguments):
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        return genuine(*arguments)

    monkeypatch.setattr("summaries.engines.running.run_local", elsewhere)
    assert summarize_dataset(FEW, given).to_json() == summarize(FEW, reports).to_json()


@pytest.mark.usefixtures("reports")
def test_same_named_file_on_other_machine_is_rejected(monkeypatch):
    genuine = running.run_local

    def on_another_machine(job, dataset, *arguments):
        write(Path(dataset.files[0].path), made(FEW, 40, seed=2))
        return genuine(job, dataset, *arguments)

    monkeypatch.setattr("summaries.engines.running.run_local", on_another_machine)
    with raises(InputError, "merge.file_changed_meanwhile", "one.parquet", "40", "60"):
        summarize_dataset(FEW, "files/one.parquet")
