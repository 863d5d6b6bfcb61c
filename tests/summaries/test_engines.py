"""Datasets and files summarised by processes, Dask and Spark: as by one process, each report once."""

import errno
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from ldp_client.documents.errors import InputError, TransferError
from ldpkit.cli import main
from summaries import dask_summary, spark_summary, summarize_dataset
from summaries.engines import running
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries import engines_data as data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset, one.parquet and two.parquet; some reports are in both of these, and one twice."""
    root = tmp_path_factory.mktemp("reports")
    data.write_dataset(root, data.REPORTS)
    data.write(root / "one.parquet", data.REPORTS[:170])
    data.write(root / "two.parquet", [*data.REPORTS[170:], *data.REPEATED])
    return root


@pytest.fixture
def small(monkeypatch):
    """Reports are split into many parts, though they are few."""
    monkeypatch.setattr(running, "PART", 1 << 10)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("where", ["", "*.parquet", "study_id=survey/**/*.parquet"])
def test_dataset_summary_equals_summary_of_one_process(folder, where):
    assert summarize_dataset(data.STUDY, folder / where).to_json() == data.RIGHT


@pytest.mark.slow
def test_several_processes_give_same_summary_and_progress(folder, capsys):
    told = []
    paths = [folder / "one.parquet", folder / "two.parquet"]
    found = summarize_dataset(data.STUDY, paths, workers=2, told=lambda *counts: told.append(counts))
    assert found.to_json() == data.RIGHT
    assert told[-1] == (321, 321)
    assert capsys.readouterr().err == "21 reports were repeated and counted once\n"


def test_id_with_two_contents_is_rejected(tmp_path):
    reports = data.made(data.FEW, 400)
    clash = data.changed(reports[3], public=reports[4].public)
    paths = [
        data.write(tmp_path / "a.parquet", reports),
        data.write(tmp_path / "b.parquet", [*reports[:2], clash]),
    ]
    where = f": b.parquet, row 3: report: id: {clash.id}"
    with raises(InputError, "reports.many_refused", "1 of 403 reports", where):
        summarize_dataset(data.FEW, paths)


def test_reports_on_other_versions_are_left_out_and_reported(tmp_path, capsys):
    others = data.made(data.OTHER, 5)
    data.write_dataset(tmp_path / "root", [*others, *data.REPORTS])
    for where in (data.write(tmp_path / "a.parquet", [*data.REPORTS, *others]), tmp_path / "root"):
        assert summarize_dataset(data.STUDY, where).to_json() == data.RIGHT
        said = "5 reports answer other versions of the study (version 2) and were left out"
        assert said in capsys.readouterr().err
    with raises(InputError, "reports.none_of_study", "survey"):
        summarize_dataset(data.STUDY, data.write(tmp_path / "b.parquet", others))


def compressed_otherwise(path):
    """The same reports in a sound file, whose digest alone tells it from the dataset's own."""
    pq.write_table(pq.ParquetFile(path).read(), path, compression="gzip")


def without_its_first_file(path):
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "files": manifest["files"][1:]}))


PARTS, MANIFEST = "*/*.parquet", "_manifest.json"


@pytest.mark.parametrize(
    ("name", "damage", "code"),
    [
        (PARTS, compressed_otherwise, "merge.file_damaged"),
        (PARTS, Path.unlink, "files.not_readable"),
        (MANIFEST, without_its_first_file, "merge.manifest_damaged"),
        (MANIFEST, lambda path: path.write_text("{}"), "merge.manifest_damaged"),
        (MANIFEST, Path.unlink, "merge.dataset_unfinished"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, damage, code):
    path = min(data.write_dataset(tmp_path, data.REPORTS).glob(name))
    damage(path)
    with raises(InputError, code, path.name):
        summarize_dataset(data.STUDY, tmp_path)


def killed(_items):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_process_is_an_error():
    with raises(InputError, "engine.processes_killed"):
        list(running._done(killed, [1, 2], 2))


def test_summarize_command_reads_a_dataset(folder, tmp_path):
    study, out = tmp_path / "study.json", tmp_path / "summary.json"
    study.write_text(data.STUDY.to_json())
    call = ["summarize", str(study), str(folder), "--out", str(out)]
    assert main(call) == 0
    assert out.read_text() == data.RIGHT + "\n"
    (tmp_path / "reports.ndjson").write_text(data.REPORTS[0].to_json())
    with raises(InputError, "merge.not_parquet_name"):
        summarize_dataset(data.STUDY, [tmp_path / "reports.ndjson", folder / "one.parquet"])


@pytest.mark.usefixtures("small")
def test_full_temporary_folder_is_named_in_error(folder, monkeypatch):
    """The system's error for a full disk names no file."""

    def full(*_given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(running, "open", full, raising=False)
    with raises(InputError, "engine.no_room", tempfile.gettempdir(), "No space left", "TMPDIR"):
        summarize_dataset(data.STUDY, folder)


@pytest.mark.attack(19)
def test_unlisted_files_in_a_dataset_are_reported_with_a_fix(tmp_path):
    """Put another file into a dataset's folder, whose manifest does not list it."""
    folder = data.write_dataset(tmp_path, data.REPORTS[:200])
    data.write(folder / "study_version=1" / "part-99.parquet", data.REPORTS[200:])
    named = f"{folder}/**/*.parquet"
    for where in (tmp_path, folder):
        with raises(InputError, "merge.dataset_copied", "study_version=1/part-99.parquet", f"'{named}'"):
            summarize_dataset(data.STUDY, where)
    assert summarize_dataset(data.STUDY, named).to_json() == data.RIGHT


@pytest.mark.parametrize(
    "name",
    [
        "study_id=other/study_version=1/part-00.parquet",
        "study_id=survey/study_version=2/part-00.parquet",
        "study_id=survey/study_version=1/._part-00.parquet",
        "study_id=survey/study_version=1/_temporary/part-00.parquet",
    ],
)
def test_unrelated_files_in_a_dataset_are_ignored(tmp_path, name):
    data.write_dataset(tmp_path, data.REPORTS)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    assert summarize_dataset(data.STUDY, tmp_path).to_json() == data.RIGHT


@pytest.mark.attack(19)
def test_pattern_finds_new_files(monkeypatch, tmp_path):
    """Let files arrive after a store's library has listed their folder."""
    fsspec = pytest.importorskip("fsspec")
    store = type(fsspec.filesystem("memory"))
    genuine, listings = store.ls, {}

    def ls(self, path, detail=True, **_named):
        if path not in listings:
            listings[path] = genuine(self, path, detail=True)
        return listings[path] if detail else [one["name"] for one in listings[path]]

    # Listings are kept as S3's are.
    monkeypatch.setattr(store, "ls", ls)
    monkeypatch.setattr(store, "find", fsspec.AbstractFileSystem.find)
    monkeypatch.setattr(store, "invalidate_cache", lambda _self, _path=None: listings.clear())
    memory, reports = fsspec.filesystem("memory"), data.made(data.FEW, 50)
    for name, some, total in (("a", reports[:20], 20), ("b", reports[20:], 50)):
        kept = dict(listings)
        memory.put_file(data.write(tmp_path / name, some), f"/day/{name}.parquet")
        # Of what another program writes this one's library hears nothing.
        listings.update(kept)
        assert summarize_dataset(data.FEW, "memory://day/*.parquet").questions["ever"].n == total
    monkeypatch.undo()
    memory.rm("/day", recursive=True)


@pytest.mark.attack(19)
def test_a_linked_folder_in_a_dataset_is_refused(tmp_path):
    """A link puts a second dataset into the folder of the first, so that its reports would be left out."""
    folder = data.write_dataset(tmp_path / "first", data.REPORTS[:200])
    data.write(tmp_path / "second" / "part-00.parquet", data.REPORTS[200:])
    (folder / "study_version=1" / "more").symlink_to(tmp_path / "second")
    with raises(InputError, "merge.dataset_copied", "more"):
        summarize_dataset(data.STUDY, tmp_path / "first")


class NoCredentialsError(Exception):
    """As the libraries of stores have them: none of Python's own."""


@pytest.fixture
def store(tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    data.write_dataset(tmp_path, data.made(data.FEW, 60))
    memory.put(f"{tmp_path}/study_id=survey", "/away/study_id=survey", recursive=True)
    memory.put(data.write(tmp_path / "one.parquet", data.made(data.FEW, 60)), "/files/one.parquet")
    yield memory
    memory.rm("/away", recursive=True)
    memory.rm("/files", recursive=True)


@pytest.mark.parametrize(("address", "after"), [("memory://away", 1), ("memory://files/*.parquet", 0)])
@pytest.mark.parametrize("error", [NoCredentialsError("no credentials,\nnowhere"), TimeoutError()])
def test_failing_store_gives_an_error_of_one_line(store, monkeypatch, address, after, error):
    genuine, left = type(store).open, iter(range(after))

    def failing(self, path, *arguments, **named):
        if path.endswith(".parquet") and next(left, None) is None:
            raise error
        return genuine(self, path, *arguments, **named)

    monkeypatch.setattr(type(store), "open", failing)
    with raises(TransferError, "files.store_not_readable") as caught:
        summarize_dataset(data.FEW, address)
    assert "part-0" in str(caught.value) or "files/one.parquet" in str(caught.value)
    assert "no credentials, nowhere" in str(caught.value) or "TimeoutError" in str(caught.value)


def test_damaged_content_is_distinguished_from_failing_store(store):
    store.pipe_file("/files/two.parquet", b"PAR1 and nothing")
    with raises(InputError, "files.not_parquet", "two.parquet"):
        summarize_dataset(data.FEW, "memory://files/*.parquet")


@pytest.fixture(scope="module", params=["dask", "spark"])
def summarized(request):
    """Summarises files as a frame of Dask or Spark, whose session takes seconds to begin."""
    if request.param == "dask":
        need("dask")
        import dask
        import dask.dataframe as frames

        with dask.config.set(scheduler="synchronous"):
            yield lambda study, *paths: dask_summary(study, frames.read_parquet(list(map(str, paths))))
        return
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


@pytest.mark.slow
def test_reports_in_two_partitions_count_once(summarized, tmp_path, capsys):
    paths = [data.write(tmp_path / "one.parquet", data.REPORTS[:170])]
    paths.append(data.write(tmp_path / "two.parquet", [*data.REPORTS[170:], *data.REPEATED]))
    assert summarized(data.STUDY, *paths).to_json() == data.RIGHT
    assert "21 reports were repeated and counted once\n" in capsys.readouterr().err
    clash = data.changed(data.REPORTS[3], public=data.REPORTS[4].public)
    paths.append(data.write(tmp_path / "three.parquet", [clash]))
    with raises(InputError, "reports.many_refused", f"report: id: {clash.id} stands twice"):
        summarized(data.STUDY, *paths)


@pytest.mark.parametrize("summary_of", [dask_summary, spark_summary])
def test_frame_without_export_columns_is_rejected_by_name(summary_of):
    with raises(InputError, "engine.frame_column_missing", "report_id, version, digest, payloads"):
        summary_of(data.FEW, SimpleNamespace(columns=["id", "study"]))
