"""Frames of Dask and Spark give the summary that one process makes of the same reports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ldp_client.documents.errors import InputError
from summaries import Summary, dask_summary, spark_summary
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.engines_data import FEW, REPEATED, REPORTS, RIGHT, STUDY, changed, write

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
