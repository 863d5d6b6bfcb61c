"""Dask and Spark summarise as one process does: datasets, files and frames, also when a worker is killed."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ldp_client.cli import main
from ldp_client.documents.errors import InputError, MissingExtraError, TransferError, UsageError
from summaries import count_dataset, dask_summary, spark_summary, summarize, summarize_dataset
from summaries.engines import on_spark
from summaries.engines.on_dask import HERE
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.engines_data import (
    FEW,
    REPEATED,
    REPORTS,
    RIGHT,
    STUDY,
    changed,
    made,
    write,
    write_dataset,
)
from tests.summaries.killing import batches_after_killing, frame_after_killing

AGAIN = "21 reports stood more than once and were counted once\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset, one.parquet and two.parquet; some reports are in both of these, and one twice."""
    root = tmp_path_factory.mktemp("reports")
    write_dataset(root, REPORTS)
    write(root / "one.parquet", REPORTS[:170])
    write(root / "two.parquet", [*REPORTS[170:], *REPEATED])
    return root


@pytest.fixture(scope="module")
def scheduler():
    """The address of a Dask cluster of two processes."""
    need("dask")
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=HERE, silence_logs=50) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def spark():
    """A session of Spark with two workers: to start one takes as long as all tests with it."""
    need("java", "pyspark")
    import pyspark.sql as pyspark

    kept = os.environ.get("PYTHONPATH")
    os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    builder = pyspark.SparkSession.builder.master("local[2,4]")
    for name, value in {**on_spark.SETTINGS, **on_spark.HERE, "spark.sql.shuffle.partitions": "3"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    os.environ["PYTHONPATH"] = kept or ""


def test_dask_summarises_a_dataset_and_files(folder, scheduler, tmp_path, capsys):
    assert summarize_dataset(STUDY, folder, "dask", cluster=scheduler).to_json() == RIGHT
    study, out = tmp_path / "study.json", tmp_path / "summary.json"
    study.write_text(STUDY.to_json())
    files = [str(folder / "one.parquet"), str(folder / "two.parquet")]
    call = ["summarize", str(study), *files, "--engine", "dask", "--cluster", scheduler, "--out", str(out)]
    assert main(call) == 0
    assert out.read_text() == RIGHT + "\n"
    said = capsys.readouterr().err
    assert AGAIN in said
    assert "321 reports read" in said


def test_dask_summarises_frames_though_a_worker_is_killed(folder, scheduler, tmp_path):
    import dask.dataframe
    from distributed import Client

    frame = dask.dataframe.read_parquet([str(folder / "one.parquet"), str(folder / "two.parquet")])
    with Client(scheduler):
        kill = partial(frame_after_killing, tmp_path / "mark")
        found = dask_summary(STUDY, frame.map_partitions(kill, meta=frame._meta))
    assert (tmp_path / "mark").exists()
    assert found.to_json() == RIGHT


def test_dask_counts_and_refuses(tmp_path, scheduler):
    reports = made(FEW, 60)
    clash = changed(
        reports[3], payloads={**reports[3].payloads, "ever": bytes([1 - reports[3].payloads["ever"][0]])}
    )
    paths = [write(tmp_path / "a.parquet", reports), write(tmp_path / "b.parquet", [clash])]
    counts = count_dataset(FEW, paths[0], ["ever", "region"], "dask", cluster=scheduler)
    assert counts.seen == count_dataset(FEW, paths[0], ["ever", "region"]).seen
    with raises(
        InputError,
        "reports.many_refused",
        "61",
        f"b.parquet, row 1: report: id: {clash.id} stands twice",
    ):
        summarize_dataset(FEW, paths, "dask", cluster=scheduler)
    Path(paths[1]).write_bytes(b"PAR1")
    with pytest.raises(InputError, match=rf"^{paths[1]} is damaged"):
        summarize_dataset(FEW, paths, "dask", cluster=scheduler)


@pytest.mark.slow
def test_spark_summarises_a_dataset_and_files(folder, spark, capsys):
    assert spark is not None
    assert summarize_dataset(STUDY, folder, "spark").to_json() == RIGHT
    told = []
    files = [folder / "one.parquet", folder / "two.parquet"]
    assert (
        summarize_dataset(STUDY, files, "spark", told=lambda *counts: told.append(counts)).to_json() == RIGHT
    )
    assert capsys.readouterr().err.endswith(AGAIN)
    assert told[-1] == (321, 321)


@pytest.mark.slow
def test_spark_summarises_frames_though_a_worker_is_killed(folder, spark, tmp_path):
    frame = spark.read.parquet(str(folder / "one.parquet"), str(folder / "two.parquet"))
    kill = partial(batches_after_killing, tmp_path / "mark")
    found = spark_summary(STUDY, frame.mapInArrow(kill, frame.schema))
    assert (tmp_path / "mark").exists()
    assert found.to_json() == RIGHT


def test_spark_reads_a_programs_frame_in_batches_as_large_as_the_program_has_them(spark, folder, tmp_path):
    frame = spark.read.parquet(str(folder / "one.parquet"))

    def noted(batches):
        for batch in batches:
            with open(tmp_path / "sizes", "a") as file:
                file.write(f"{batch.num_rows}\n")
            yield batch

    found = spark_summary(STUDY, frame.mapInArrow(noted, frame.schema))
    assert found.to_json() == summarize(STUDY, REPORTS[:170]).to_json()
    assert (tmp_path / "sizes").read_text().split() == ["170"]


@pytest.mark.parametrize("values", ["10000", "8", "0", "99999999"])
def test_what_goes_to_sparks_workers_at_once_is_bounded_however_many_values_the_program_allows(values):
    rows = np.arange(300_000, dtype=np.uint8).reshape(-1, 30)
    block = on_spark._block_of(SimpleNamespace(conf={on_spark.PER_BATCH: values}))
    batches = list(on_spark._blocks([(1, rows), (2, rows[:9])], block))
    buckets, parts = zip(*(pair for one in batches for pair in zip(*one.to_pydict().values())))
    assert b"".join(parts) == rows.tobytes() + rows[:9].tobytes()
    assert buckets == tuple(sorted(buckets))
    longest = max(map(len, parts))
    assert longest == 30 or longest * max(1, int(values)) <= on_spark.TAKEN
    assert len(batches) == 1


def test_spark_leaves_the_programs_session_alone_from_whichever_thread_it_is_called(folder, spark):
    assert on_spark._running_session() is spark
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(summarize_dataset, STUDY, folder, "spark")
        assert call.result().to_json() == RIGHT
        refused = pool.submit(summarize_dataset, STUDY, folder, "spark", cluster="local[3]")
        with raises(UsageError, "engine.other_spark_session"):
            refused.result()
    assert spark.range(5).count() == 5


def test_what_waits_for_a_worker_of_spark_says_so_once(capsys, monkeypatch):
    monkeypatch.setattr(on_spark, "SECONDS_UNTIL_TOLD", 0)
    stage = SimpleNamespace(numActiveTasks=0, numCompletedTasks=0)
    waiting = on_spark._Waiting("spark://there:7077")
    waiting.look([])
    assert capsys.readouterr().err == ""
    for _ in range(3):
        waiting.look([stage])
    assert capsys.readouterr().err.startswith(
        "no worker of spark://there:7077 has begun yet: it may have none,"
    )
    assert waiting.is_idle
    stage.numActiveTasks = 1
    waiting.look([stage])
    assert not waiting.is_idle


def test_spark_refuses(tmp_path, spark):
    assert spark is not None
    with raises(UsageError, "engine.other_spark_session", "local[2,4]"):
        summarize_dataset(FEW, tmp_path / "a.parquet", "spark", cluster="local[4]")
    reports = made(FEW, 60)
    wrong = changed(reports[0], payloads={**reports[0].payloads, "ever": b"\2"})
    paths = [write(tmp_path / "a.parquet", reports), write(tmp_path / "b.parquet", [wrong])]
    with raises(
        InputError, "reports.many_refused", "61", "b.parquet, row 1: report: payloads.ever: is not one"
    ):
        summarize_dataset(FEW, paths, "spark")
    Path(paths[1]).write_bytes(b"PAR1")
    with pytest.raises(InputError, match=rf"^{paths[1]} is damaged"):
        summarize_dataset(FEW, paths, "spark")


@pytest.mark.needs("dask", "java", "pyspark")
def test_what_is_missing_is_one_line(folder, monkeypatch):
    monkeypatch.setattr("summaries.engines.clusters.PATIENCE", 1)
    with raises(TransferError, "engine.scheduler_unreachable", "tcp://127.0.0.1:9"):
        summarize_dataset(STUDY, folder, "dask", cluster="tcp://127.0.0.1:9")
    monkeypatch.setenv("JAVA_HOME", str(folder))
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with raises(InputError, "engine.java_missing"):
        summarize_dataset(STUDY, folder, "spark", cluster="local[2]")
    for engine, module in (("dask", "dask.dataframe"), ("spark", "pyspark.sql")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=rf"'ldpkit\[{engine}\]'"):
            summarize_dataset(STUDY, folder, engine)
