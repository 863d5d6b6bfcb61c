"""A study's reports as a dataset: where each lies, what the manifest says, going on after an interruption."""

from __future__ import annotations

import json
import os
from datetime import date, timedelta
from functools import partial
from hashlib import sha256

import pandas
import pyarrow.dataset
import pyarrow.parquet
import pytest
from sqlalchemy.exc import OperationalError

from collector.exports import dataset, layout, parts
from collector.exports.dataset import Order, export_dataset
from collector.exports.layout import bucket_of, choose_buckets, ids_of
from collector.exports.store import Store
from collector.reports import paging
from collector.storage import audit_log
from ldp_client.cli import main
from ldp_client.documents.errors import InputError, UsageError
from schemas import Report, Study
from summaries.reading import summarize_files
from tests.collector.commands import parsed, run
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.killing import bucket_after_killing

STUDY = "study_id=habits"


class Many:
    """A collector with reports of two versions and three days, on a database that a command can name."""

    def __init__(self, harness, make_study, make_report):
        self.harness, self.url = harness, str(harness.collector.database.url)
        self.days = [harness.day + timedelta(number) for number in range(3)]
        self.studies = [make_study(1), make_study(2)]
        self.sent = {}
        for study in self.studies:
            harness.publish(study)
        for day in self.days:
            harness.day = day
            for study in self.studies:
                some = [make_report(study) for _ in range(20)]
                assert harness.post([one.to_document() for one in some]).status_code == 200
                self.sent[(study.version, day)] = some

    @property
    def ids(self):
        return {one.id for some in self.sent.values() for one in some}

    def order(self, address, **changes):
        fields = {"today": self.days[-1] + timedelta(1), "buckets": 4, "processes": 1, **changes}
        return Order(self.url, 5, "habits", str(address), **fields)


@pytest.fixture
def many(empty, make_study, make_report):
    found = Many(empty, make_study, make_report)
    # The study.
    empty.close()
    return found


def contents(root):
    """Every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def reports_in(path):
    """Every report of a file, in its order."""
    rows = pyarrow.parquet.ParquetFile(path).read().to_pylist()
    return [Report(id=row.pop("report_id"), **row) for row in rows]


def manifest_of(root):
    return json.loads((root / STUDY / "_manifest.json").read_text())


def test_every_report_lies_in_the_file_of_its_version_day_and_bucket(many, tmp_path, monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", 7)
    root = tmp_path / "out"
    done = export_dataset(many.order(root))
    manifest = manifest_of(root)
    assert (manifest["format"], manifest["study"], manifest["reports"]) == ("ldpkit.dataset/1", "habits", 120)
    assert manifest["documents"] == {study.digest: study.version for study in many.studies}
    for study in many.studies:
        assert (root / STUDY / f"_study-{study.version}.json").read_bytes() == study.canonical()
    seen = set()
    for file in manifest["files"]:
        path = root / STUDY / file["path"]
        content = path.read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), sha256(content).hexdigest())
        found = reports_in(path)
        ids = [one.id for one in found]
        assert ids == sorted(ids)
        assert len(ids) == file["reports"]
        version, day, name = file["path"].split("/")
        sent = many.sent[(int(version[14:]), date.fromisoformat(day[4:]))]
        assert {one.to_json() for one in found} <= {one.to_json() for one in sent}
        assert all(f"part-{bucket_of(bytes.fromhex(one), 4):02x}.parquet" == name for one in ids)
        assert pyarrow.parquet.read_schema(path).names == [
            "report_id",
            "study",
            "version",
            "digest",
            "payloads",
        ]
        assert path.stat().st_mode & 0o077 == 0
        seen |= set(ids)
    assert seen == many.ids
    assert (done.written, done.manifest.reports) == (len(manifest["files"]), 120)
    there = set(contents(root))
    wanted = {f"{STUDY}/{file['path']}" for file in manifest["files"]}
    assert there == wanted | {
        f"{STUDY}/{name}" for name in ("_manifest.json", "_study-1.json", "_study-2.json")
    }


def test_the_files_summarize_as_the_collector_does(many, tmp_path):
    export_dataset(many.order(tmp_path))
    for study in many.studies:
        files = [
            str(tmp_path / STUDY / file["path"])
            for file in manifest_of(tmp_path)["files"]
            if file["path"].startswith(f"study_version={study.version}/")
        ]
        own = many.harness.summary(version=study.version).get_json()
        assert json.loads(summarize_files(study, files).to_json()) == own


@pytest.mark.slow
def test_the_same_bytes_come_whatever_is_read_at_once_and_in_how_many_processes(many, tmp_path, monkeypatch):
    export_dataset(many.order(tmp_path / "one"))
    export_dataset(many.order(tmp_path / "two", processes=2))
    monkeypatch.setattr(parts, "MOST_IN_MEMORY", 1)
    export_dataset(many.order(tmp_path / "spooled"))
    first = contents(tmp_path / "one")
    assert first == contents(tmp_path / "two") == contents(tmp_path / "spooled")


def test_an_interrupted_export_goes_on_with_what_is_there(many, tmp_path, monkeypatch):
    export_dataset(many.order(tmp_path / "whole"))
    whole = contents(tmp_path / "whole")
    root = tmp_path / "cut"
    genuine, left = dataset._put, 5

    def put(*arguments):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return genuine(*arguments)

    monkeypatch.setattr(dataset, "_put", put)
    with pytest.raises(KeyboardInterrupt):
        export_dataset(many.order(root))
    monkeypatch.undo()
    assert f"{STUDY}/_manifest.json" not in contents(root)
    assert f"{STUDY}/_unfinished.json" in contents(root)
    # One of those that were written is not what it was.
    damaged = min(root.rglob("part-*.parquet"))
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    # And what a killed process was about to write.
    (damaged.parent / ".ldpkit-0123456789abcdef").write_bytes(b"half of it")
    done = export_dataset(many.order(root))
    assert contents(root) == whole
    assert done.written == len(done.manifest.parts) - 4
    assert export_dataset(many.order(root)).written == 0


@pytest.mark.slow
def test_a_process_that_is_killed_is_one_line_and_the_same_call_goes_on(many, tmp_path, monkeypatch, capsys):
    export_dataset(many.order(tmp_path / "whole"))
    kill = partial(bucket_after_killing, tmp_path / "mark", "write_bucket")
    monkeypatch.setattr(dataset, "write_bucket", kill)
    to = ["--format", "parquet", "--out", f"{tmp_path}/cut", "--database", many.url, "-q"]
    call = ["export", "habits", *to, "--buckets", "4", "--processes", "2"]
    assert main(call) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("the same call goes on with what is there")
    assert main(call) == 0
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_withdrawn_report_leaves_the_dataset_with_the_next_export(many, tmp_path):
    export_dataset(many.order(tmp_path))
    gone = many.sent[(2, many.days[0])][0]
    many.harness.withdraw(gone.id, secret=gone.secret)
    done = export_dataset(many.order(tmp_path))
    assert (done.written, done.manifest.reports) == (1, 119)
    found = {one.id for path in tmp_path.rglob("*.parquet") for one in reports_in(path)}
    assert found == many.ids - {gone.id}


def test_with_other_buckets_no_file_of_the_former_ones_is_left(many, tmp_path):
    export_dataset(many.order(tmp_path / "other", buckets=16))
    export_dataset(many.order(tmp_path / "other", buckets=2))
    export_dataset(many.order(tmp_path / "new", buckets=2))
    assert contents(tmp_path / "other") == contents(tmp_path / "new")
    # Unless others are named, they stay as they are.
    assert export_dataset(many.order(tmp_path / "new", buckets=None)).written == 0


def test_a_dataset_that_grows_gets_more_buckets_and_keeps_them(many, tmp_path, monkeypatch):
    for per_part, buckets in ((20, 1), (6, 4), (20, 4)):
        monkeypatch.setattr(layout, "REPORTS_PER_PART", per_part)
        exported = export_dataset(many.order(tmp_path / "out", buckets=None))
        assert (exported.manifest.buckets, exported.manifest.reports, exported.gone[:2]) == (
            buckets,
            120,
            (0, 0),
        )
        files = {str(path.relative_to(tmp_path / "out" / STUDY)) for path in tmp_path.rglob("*.parquet")}
        assert files == {part.path for part in exported.manifest.parts}


def test_of_a_study_that_takes_reports_today_is_left_out(many, tmp_path):
    many.harness.client.post("/v1/studies/habits/open", headers=many.harness.operator)
    order = many.order(tmp_path, today=many.days[-1])
    done = export_dataset(order)
    assert (done.manifest.reports, done.manifest.through, done.is_open) == (80, str(many.days[1]), True)
    assert not any(str(many.days[-1]) in path for path in contents(tmp_path))
    whole = export_dataset(many.order(tmp_path, today=many.days[-1], with_today=True))
    assert (whole.manifest.reports, whole.manifest.through) == (120, None)
    assert whole.written == len(whole.manifest.parts) - len(done.manifest.parts)


def test_another_collectors_study_of_that_name_is_not_written_over(many, make_harness, make_study, tmp_path):
    other = make_harness("other.sqlite3")
    other.publish(make_study(1, title="Something else"))
    export_dataset(many.order(tmp_path / "out"))
    before = contents(tmp_path / "out")
    with raises(InputError, "export.study_of_other_collector"):
        export_dataset(
            Order(str(other.collector.database.url), 5, "habits", str(tmp_path / "out"), many.days[0])
        )
    assert contents(tmp_path / "out") == before


def test_a_system_that_does_not_say_which_processors_are_its_own(many, tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert export_dataset(many.order(tmp_path, processes=None)).manifest.reports == 120


def test_a_folder_with_brackets_in_its_name_is_no_host():
    assert Store("//[x]/y").read("nothing") is None


def test_what_cannot_be_is_refused_before_anything_is_written(many, tmp_path):
    (tmp_path / "file").write_text("")
    for address, said in (
        (tmp_path / "file" / "x", "cannot (read|write)"),
        ("nothing://x/y", "is no place that files are written to"),
        ("memory://archive", "memory:// is no place that files are written to"),
        ("http://example.org/x", "is no place that files are written to"),
        ("filecache::s3://bucket/x", ":: is no place that files are written to"),
        (f"dir::file://{tmp_path}/x", ":: is no place that files are written to"),
        ("s3://ann:secret@bucket/x", "must not hold a password"),
        ("s3://[bucket/x", r"s3://\[bucket/x is no address: Invalid IPv6 URL"),
        ("s3://", "s3:// names no place"),
    ):
        with pytest.raises(InputError, match=said) as refused:
            export_dataset(many.order(address))
        assert "\n" not in str(refused.value)
        assert "secret" not in str(refused.value)
    for buckets in (0, 3, 512):
        with raises(UsageError, "export.wrong_bucket_count"):
            export_dataset(many.order(tmp_path / "out", buckets=buckets))
    with raises(InputError, "study.unknown_in_database", "noth"):
        run("export", "nothing", "--format", "parquet", "--out", f"{tmp_path}/out", "--database", many.url)
    assert not (tmp_path / "out").exists()


def test_the_command_says_where_a_dataset_goes(many, tmp_path, capsys):
    root = str(tmp_path / "out")
    run("export", "habits", "--format", "parquet", "--out", root, "--database", many.url, "--json", "-q")
    said = json.loads(capsys.readouterr().out)
    assert said == {"study": "habits", "address": root, "reports": 120, "files": 6, "written": 6,
                    "withdrawn": 0, "forgotten": 0, "deleted_files": 0,
                    "through": None, "open": False}  # fmt: skip
    wrong = (
        (["--out", root], "add --format parquet"),
        (["--out", "s3://bucket/x"], "add --format parquet"),
        (["--out", "x.csv", "--format", "parquet"], "is one file, and a dataset many"),
        (
            ["--out", root, "--format", "parquet", "--token", "x"],
            "--token: a dataset comes from the database",
        ),
        (["--out", "x.csv", "--with-today"], "--with-today goes with --format parquet"),
    )
    for arguments, problem in wrong:
        found = parsed("export", "habits", *arguments)
        with pytest.raises(UsageError, match=problem):
            found.run(found)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("~/out", "export.relative_address"),
        ("file://~/out", "export.relative_address"),
        ("file:out", "export.relative_address"),
        ("out.parquet/", "export.dataset_named_as_file"),
        ("s3://bucket/out.Parquet/", "export.dataset_named_as_file"),
        ("s3://[bucket/out", "export.wrong_address"),
        ("s3:/bucket/out", ("export.one_slash", "s3")),
        ("GS:bucket/out", ("export.one_slash", "GS")),
    ],
)
def test_an_address_at_which_nobody_would_find_the_dataset_is_refused(
    many, tmp_path, monkeypatch, address, problem
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = set(tmp_path.rglob("*"))
    for command in (
        ["export", "habits", "--format", "parquet", "--out", address],
        ["admin", "archive", "habits", "--to", address, "--yes"],
    ):
        found = parsed(*command, "--database", many.url)
        with raises((UsageError, InputError), problem):
            found.run(found)
    assert set(tmp_path.rglob("*")) == before


def test_every_id_is_in_the_range_of_its_bucket():
    for buckets in (1, 2, 16, 256):
        for first in range(256):
            for rest in (b"\0" * 15, b"\xff" * 15):
                report_id = bytes([first]) + rest
                after, last = ids_of(bucket_of(report_id, buckets), buckets)
                assert after < report_id <= last
    counts = (0, 50_000, 50_001, 1e6, 1e8, 1e9)
    assert [choose_buckets([count]) for count in counts] == [1, 1, 2, 16, 128, 256]
    # Also of many small days no bucket has more than a worker holds.
    assert choose_buckets([40_000] * 100) == 4


def test_documents_of_the_dataset_are_the_studys_own(many, tmp_path):
    export_dataset(many.order(tmp_path))
    for digest, version in manifest_of(tmp_path)["documents"].items():
        assert Study.from_json((tmp_path / STUDY / f"_study-{version}.json").read_bytes()).digest == digest


def test_other_programs_read_the_folder_as_it_is(many, tmp_path):
    need("dask")
    import dask.dataframe

    export_dataset(many.order(tmp_path / "out"))
    table = pyarrow.dataset.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table()
    frame = pandas.read_parquet(tmp_path / "out")
    assert len(dask.dataframe.read_parquet(tmp_path / "out")) == 120
    for ids, versions in (
        (table["report_id"].to_pylist(), table["version"].to_pylist()),
        (list(frame["report_id"]), [int(version) for version in frame["version"]]),
    ):
        assert sorted(ids) == sorted(many.ids)
        assert versions.count(1) == versions.count(2) == 60
    assert set(table["study"].to_pylist()) == {"habits"}


def test_one_line_a_day_says_that_reports_were_exported(many, tmp_path, monkeypatch, caplog):
    for _ in range(2):
        export_dataset(many.order(tmp_path))
    with many.harness.collector.database.read() as session:
        lines = audit_log.entries(session, 100)
    assert [line[1:] for line in lines if line.action == "export"] == [("(database)", "export", "habits", "")]

    def refuse(*_, **__):
        raise OperationalError("INSERT", None, Exception("permission denied"))

    # As to a user of the database that may only read it.
    monkeypatch.setattr(audit_log, "is_said_today", refuse)
    assert export_dataset(many.order(tmp_path)).manifest.reports == 120
    assert "a line of the audit log cannot be written: " in caplog.text
