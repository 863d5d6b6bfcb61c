"""Datasets and files summarised by processes, Dask and Spark: as by one process, each report once."""

import errno
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from summaries import Summary, dask_summary, spark_summary, summarize_dataset
from summaries.engines import running
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.engines_data import (
    FEW,
    OTHER,
    REPEATED,
    REPORTS,
    RIGHT,
    STUDY,
    changed,
    made,
    write,
    write_dataset,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset, one.parquet and two.parquet; some reports are in both of these, and one twice."""
    root = tmp_path_factory.mktemp("reports")
    write_dataset(root, REPORTS)
    write(root / "one.parquet", REPORTS[:170])
    write(root / "two.parquet", [*REPORTS[170:], *REPEATED])
    return root


@pytest.fixture
def small(monkeypatch):
    """Reports are split into many parts, though they are few."""
    monkeypatch.setattr(running, "PART", 1 << 12)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("where", ["", "*.parquet", "study_id=survey/**/*.parquet"])
def test_dataset_summary_equals_summary_of_one_process(folder, where):
    assert summarize_dataset(STUDY, folder / where).to_json() == RIGHT


@pytest.mark.slow
def test_several_processes_give_same_summary_and_progress(folder, capsys):
    told = []
    paths = [folder / "one.parquet", folder / "two.parquet"]
    found = summarize_dataset(STUDY, paths, workers=2, told=lambda *counts: told.append(counts))
    assert found.to_json() == RIGHT
    assert told[-1] == (321, 321)
    assert capsys.readouterr().err == "21 reports were repeated and counted once\n"


def test_id_with_two_contents_is_rejected(tmp_path):
    reports = made(FEW, 400)
    clash = changed(reports[3], public=reports[4].public)
    paths = [write(tmp_path / "a.parquet", reports), write(tmp_path / "b.parquet", [*reports[:2], clash])]
    where = f": b.parquet, row 3: report: id: {clash.id}"
    with raises(InputError, "reports.many_refused", "1 of 403 reports", where):
        summarize_dataset(FEW, paths)


def test_reports_on_other_versions_are_left_out_and_reported(tmp_path, capsys):
    others = made(OTHER, 5)
    write_dataset(tmp_path / "root", [*others, *REPORTS])
    for where in (write(tmp_path / "a.parquet", [*REPORTS, *others]), tmp_path / "root"):
        assert summarize_dataset(STUDY, where).to_json() == RIGHT
        said = "5 reports answer other versions of the study (version 2) and were left out"
        assert said in capsys.readouterr().err
    with raises(InputError, "reports.none_of_study", "survey"):
        summarize_dataset(STUDY, write(tmp_path / "b.parquet", others))


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-9])


def with_another_byte(path):
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)


def compressed_otherwise(path):
    """The same reports in a sound file, whose digest alone tells it from the dataset's own."""
    pq.write_table(pq.ParquetFile(path).read(), path, compression="gzip")


@pytest.mark.parametrize(
    "damage", [cut_off, with_another_byte, compressed_otherwise, lambda path: path.unlink()]
)
def test_a_damaged_file_is_named(tmp_path, damage):
    folder = write_dataset(tmp_path, REPORTS)
    path = sorted(folder.glob("study_version=1/*/*.parquet"))[1]
    damage(path)
    with pytest.raises(InputError, match=re.escape(str(path))):
        summarize_dataset(STUDY, tmp_path)
    if damage is cut_off:
        with raises(InputError, "files.not_parquet", str(path)):
            summarize_dataset(STUDY, path)


def test_a_manifest_that_lacks_a_file_or_is_damaged_is_rejected(tmp_path):
    folder = write_dataset(tmp_path, REPORTS)
    path = folder / "_manifest.json"
    manifest = json.loads(path.read_text())
    for damaged in ("{}", json.dumps({**manifest, "files": manifest["files"][1:]})):
        path.write_text(damaged)
        with raises(InputError, "merge.manifest_damaged", "_manifest.json"):
            summarize_dataset(STUDY, tmp_path)
    path.unlink()
    with raises(InputError, "merge.dataset_unfinished"):
        summarize_dataset(STUDY, tmp_path)


def killed(_items):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_process_is_an_error():
    with raises(InputError, "engine.processes_killed"):
        list(running._done(killed, [1, 2], 2))


def test_summarize_command_reads_a_dataset(folder, tmp_path):
    study, out = tmp_path / "study.json", tmp_path / "summary.json"
    study.write_text(STUDY.to_json())
    call = ["summarize", str(study), str(folder), "--out", str(out)]
    assert main(call) == 0
    assert out.read_text() == RIGHT + "\n"
    (tmp_path / "reports.ndjson").write_text(REPORTS[0].to_json())
    with raises(InputError, "merge.not_parquet_name"):
        summarize_dataset(STUDY, [tmp_path / "reports.ndjson", folder / "one.parquet"])


@pytest.mark.usefixtures("small")
def test_full_temporary_folder_is_named_in_error(folder, monkeypatch):
    """The system's error for a full disk names no file."""

    def full(*_given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(running, "open", full, raising=False)
    with raises(InputError, "engine.no_room", tempfile.gettempdir(), "No space left", "TMPDIR"):
        summarize_dataset(STUDY, folder)


Summarized = Callable[..., Summary]


@pytest.fixture(scope="module")
def of_dask() -> Iterator[Summarized]:
    """Summarises files as a Dask DataFrame."""
    need("dask")
    import dask.dataframe

    with dask.config.set(scheduler="synchronous"):
        yield lambda study, *paths: dask_summary(study, dask.dataframe.read_parquet(list(map(str, paths))))


@pytest.fixture(scope="module")
def of_spark() -> Iterator[Summarized]:
    """Summarises files as a Spark DataFrame: a session takes seconds to begin."""
    need("java", "pyspark")
    from pyspark.sql import SparkSession

    kept = os.environ.get("PYTHONPATH")
    os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "3")
    quiet = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.driver.host": "localhost"}
    for name, value in quiet.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield lambda study, *paths: spark_summary(study, session.read.parquet(*map(str, paths)))
    session.stop()
    os.environ["PYTHONPATH"] = kept or ""


@pytest.fixture(scope="module", params=["of_dask", "of_spark"])
def summarized(request: pytest.FixtureRequest) -> Any:
    """By both engines."""
    return request.getfixturevalue(request.param)


@pytest.mark.slow
def test_reports_in_two_partitions_count_once(
    summarized: Summarized, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write(tmp_path / "one.parquet", REPORTS[:170])]
    paths.append(write(tmp_path / "two.parquet", [*REPORTS[170:], *REPEATED]))
    assert summarized(STUDY, *paths).to_json() == RIGHT
    assert "21 reports were repeated and counted once\n" in capsys.readouterr().err
    clash = changed(REPORTS[3], public=REPORTS[4].public)
    paths.append(write(tmp_path / "three.parquet", [clash]))
    with raises(InputError, "reports.many_refused", f"report: id: {clash.id} stands twice"):
        summarized(STUDY, *paths)


@pytest.mark.parametrize("summary_of", [dask_summary, spark_summary])
def test_frame_without_export_columns_is_rejected_by_name(summary_of: Summarized) -> None:
    with raises(InputError, "engine.frame_column_missing", "report_id, version, digest, payloads"):
        summary_of(FEW, SimpleNamespace(columns=["id", "study"]))
