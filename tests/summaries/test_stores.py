"""Stores of reports that are away, break off or refuse are told from damaged datasets."""

from __future__ import annotations

import pytest

from ldp_client.documents.errors import EXIT_NETWORK, InputError
from ldpkit.cli import main
from summaries import summarize_dataset
from tests.kit.errors import raises
from tests.summaries.engines_data import FEW, made, write, write_dataset

fsspec = pytest.importorskip("fsspec")
MemoryFileSystem = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem


class NoCredentialsError(Exception):
    """As the libraries of stores have them: none of Python's own."""


@pytest.fixture
def store(tmp_path):
    """A store with a dataset and files."""
    memory = fsspec.filesystem("memory")
    write_dataset(tmp_path, made(FEW, 60))
    memory.put(f"{tmp_path}/study_id=survey", "/away/study_id=survey", recursive=True)
    memory.put(write(tmp_path / "one.parquet", made(FEW, 60)), "/files/one.parquet")
    yield memory
    memory.rm("/away", recursive=True)
    memory.rm("/files", recursive=True)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(("address", "after"), [("memory://away", 1), ("memory://files/*.parquet", 0)])
@pytest.mark.parametrize("error", [NoCredentialsError("no credentials,\nnowhere"), TimeoutError()])
def test_failing_store_prints_one_line_and_exits_with_network_code(
    tmp_path, monkeypatch, capsys, address, after, error
):
    genuine, left = MemoryFileSystem.open, iter(range(after))

    def failing(self, path, *arguments, **named):
        if path.endswith(".parquet") and next(left, None) is None:
            raise error
        return genuine(self, path, *arguments, **named)

    monkeypatch.setattr(MemoryFileSystem, "open", failing)
    (tmp_path / "study.json").write_text(FEW.to_json())
    call = ["summarize", f"{tmp_path}/study.json", address, "--out", f"{tmp_path}/summary.json"]
    assert main(call) == EXIT_NETWORK
    (line,) = capsys.readouterr().err.splitlines()
    assert "part-0" in line or "files/one.parquet" in line
    assert "no credentials, nowhere" in line or "TimeoutError" in line
    assert not (tmp_path / "summary.json").exists()


def test_damaged_content_is_distinguished_from_failing_store(store):
    store.pipe_file("/files/two.parquet", b"PAR1 and nothing")
    with raises(InputError, "files.not_parquet", "two.parquet"):
        summarize_dataset(FEW, "memory://files/*.parquet")
