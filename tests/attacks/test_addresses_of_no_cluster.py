"""Tries to end a summary with a traceback, or a riddle: addresses that are another engine's, and frames that
are no export's."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from ldp_client.cli import main
from ldp_client.documents.errors import EXIT_USAGE, InputError
from summaries import dask_summary, spark_summary, summarize
from summaries.engines import on_spark
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.engines_data import FEW, made, write

REPORTS = made(FEW, 30)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "own.parquet", REPORTS)


def said_of(file, tmp_path, capsys, engine, cluster):
    (tmp_path / "study.json").write_text(FEW.to_json())
    call = ["summarize", f"{tmp_path}/study.json", file, "--out", f"{tmp_path}/out.json", "-q"]
    assert main([*call, "--engine", engine, "--cluster", cluster]) == EXIT_USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--cluster {cluster}: must be" in line
    return line


@pytest.mark.parametrize(
    ("cluster", "meant"),
    [
        ("local:2", "2"), ("local[2", "2"), ("local[", "N"), ("local[]", "N"), ("local[0]", "N"),
        ("spark:/host:7077", "N"), ("spark://host", "N"), ("spark://my_host:7077", "N"),
        ("spark://host:7077/", "N"), ("tcp://host:8786", "N"), ("mesos://host:5050", "N"),
    ],
)  # fmt: skip
def test_spark_is_given_a_master_before_java_is_started(file, tmp_path, capsys, monkeypatch, cluster, meant):
    need("java", "pyspark")
    import pyspark.sql as pyspark

    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    monkeypatch.setattr(
        pyspark.SparkSession.Builder, "getOrCreate", lambda _self: pytest.fail("Java was started")
    )
    line = said_of(file, tmp_path, capsys, "spark", cluster)
    assert f"spark://HOST:PORT, or local[{meant}] for workers of this machine" in line


@pytest.mark.parametrize(
    ("cluster", "master"),
    [
        (None, "local[3,4]"), ("local", "local[1,4]"), ("local[2]", "local[2,4]"), ("local[*]", "local[*,4]"),
        ("local[2, 1]", "local[2,1]"), *[(one, one) for one in (
            "spark://host:7077", "spark://a.b-c:7077,10.0.0.1:7077", "spark://[::1]:7077", "yarn",
            "k8s://https://host:6443", "local-cluster[2,1,1024]",
        )],
    ],
)  # fmt: skip
def test_what_spark_takes_stays(cluster, master):
    assert on_spark._master(3, cluster) == master


def test_what_java_says_is_one_line(monkeypatch):
    need("java", "pyspark")
    import pyspark.sql as pyspark
    from py4j.protocol import Py4JError

    def getting(_self):
        raise Py4JError("An error occurred while calling x.\n: no such master\n\tat org.apache.spark")

    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    monkeypatch.setattr(on_spark, "which", lambda *_, **__: "java")
    monkeypatch.setattr(pyspark.SparkSession.Builder, "getOrCreate", getting)
    with (
        raises(InputError, "engine.spark_unreachable", "spark://1abc:7077: no such master"),
        on_spark._session(None, "spark://1abc:7077"),
    ):
        pass


@pytest.mark.parametrize(
    ("cluster", "meant"),
    [("local:2", "2"), ("local[2]", "2"), ("host:8786", "N"), ("tcp://", "N"), ("spark://host:7077", "N")],
)
def test_dask_takes_no_word_for_a_host(file, tmp_path, capsys, monkeypatch, cluster, meant):
    monkeypatch.setattr("distributed.Client", lambda *_, **__: pytest.fail("somebody was called"))
    line = said_of(file, tmp_path, capsys, "dask", cluster)
    assert "tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler; " in line
    assert f"for workers of this machine give --workers {meant} instead" in line


def test_texts_that_dask_made_of_payloads_are_named_with_what_helps(file, tmp_path):
    need("dask")
    import dask.dataframe

    own = pd.read_parquet(file)
    with raises(InputError, "engine.payloads_are_texts"):
        dask_summary(FEW, dask.dataframe.from_pandas(own, npartitions=2))
    with dask.config.set({"dataframe.convert-string": False, "scheduler": "synchronous"}):
        frame = dask.dataframe.from_pandas(own, npartitions=2)
        assert dask_summary(FEW, frame).to_json() == summarize(FEW, REPORTS).to_json()
        # By its path too, as others that take a study.
        (tmp_path / "study.json").write_text(FEW.to_json())
        assert dask_summary(tmp_path / "study.json", frame).to_json() == summarize(FEW, REPORTS).to_json()


def test_a_frame_without_an_exports_columns_names_them(file):
    need("dask")
    import dask.dataframe

    frame = dask.dataframe.read_parquet(file).set_index("report_id")
    with raises(InputError, "engine.frame_column_missing", "report_id, study"):
        dask_summary(FEW, frame)
    with raises(InputError, "engine.frame_column_missing", "report_id, version, digest, payloads"):
        spark_summary(FEW, SimpleNamespace(columns=["id", "study"]))


@pytest.mark.parametrize(
    ("engine", "cluster"),
    [("dask", "tcp://127.0.0.1:1"), ("spark", "spark://127.0.0.1:1"), ("spark", "local[4]")],
)
def test_workers_beside_a_cluster_are_not_ignored(file, tmp_path, capsys, engine, cluster):
    (tmp_path / "study.json").write_text(FEW.to_json())
    call = ["summarize", f"{tmp_path}/study.json", file, "--out", f"{tmp_path}/out.json", "--engine", engine]
    assert main([*call, "--cluster", cluster, "--workers", "3"]) == EXIT_USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("a cluster has its own workers: leave --workers out, or --cluster")
