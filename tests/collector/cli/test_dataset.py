"""A study's reports as a dataset in a new place: where each lies, what the manifest says, all or nothing."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pandas
import pyarrow.dataset
import pyarrow.parquet
import pytest

from ldp_client.documents.errors import InputError, TransferError
from ldpkit.cli import dataset
from schemas import Study
from summaries import summarize_dataset
from tests.collector.downloads import Many, contents, run_export, serving
from tests.kit.errors import raises


@pytest.fixture
def place(tmp_path):
    """A folder that is not there yet."""
    return tmp_path / "new"


@pytest.fixture
def many(empty):
    return Many(empty)


def ids_in(root):
    return [
        report_id
        for path in root.rglob("*.parquet")
        for report_id in pyarrow.parquet.read_table(path)["report_id"].to_pylist()
    ]


@pytest.mark.parametrize("ending", ["", "/"])
def test_the_command_writes_every_report_once_into_a_new_place(many, place, capsys, token, ending):
    root = place / "out"
    place.mkdir()
    if not ending:
        root.mkdir()
    with serving(many.harness.app) as url:
        assert run_export(url, f"{root}{ending}", token) == 0
    assert sorted(ids_in(root)) == sorted(many.ids)
    files = len(list(root.rglob("*.parquet")))
    assert capsys.readouterr().out == f"120 reports in {files} files in {root}{ending}\n"
    for study in many.studies:
        assert summarize_dataset(study, root).questions["fruit"].n == 60


STUDY = "study_id=habits"


def manifest_of(root):
    return json.loads((root / STUDY / "_manifest.json").read_text())


def test_manifest_describes_each_file(many, place):
    parts = many.write(place)
    manifest = manifest_of(place)
    assert (manifest["format"], manifest["study"], manifest["reports"]) == (
        "ldpkit.dataset/1",
        "habits",
        120,
    )
    assert [one["path"] for one in manifest["files"]] == [part.path for part in parts]
    for one in manifest["files"]:
        content = (place / STUDY / one["path"]).read_bytes()
        assert (one["bytes"], one["sha256"]) == (len(content), sha256(content).hexdigest())
        table = pyarrow.parquet.read_table(place / STUDY / one["path"], partitioning=None)
        bucket = one["path"].removesuffix(".parquet")[-1]
        assert {report_id[0] for report_id in table["report_id"].to_pylist()} == {bucket}
        assert len(table) == one["reports"]
    for digest, version in manifest["documents"].items():
        assert Study.from_json((place / STUDY / f"_study-{version}.json").read_bytes()).digest == digest


def test_non_empty_target_is_rejected_and_unchanged(many, place):
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    with raises(InputError, "export.place_not_empty", "notes.txt"):
        many.write(place)
    assert contents(place) == {"notes.txt": b"mine"}
    many.write(place / "new")
    with raises(InputError, "export.place_not_empty"):
        many.write(place / "new")


@pytest.mark.parametrize("reports", [0, 119])
def test_failed_dataset_export_leaves_nothing(many, place, reports):
    def failing():
        yield from sorted(many.sent, key=lambda one: one.id)[:reports]
        raise TransferError("cut off", code="server.cut_off")

    with pytest.raises(TransferError):
        many.write(place / "out", failing())
    assert contents(place) == {}
    many.write(place / "out")
    assert sorted(ids_in(place)) == sorted(many.ids)


@pytest.mark.attack(10)
def test_all_files_are_on_the_disk_before_the_dataset_has_its_name(many, place, monkeypatch):
    """The operator deletes the collector's copy next, and the power fails."""
    synced, rename = [], os.rename

    def renaming(source, target):
        files = {path.name for path in Path(source).rglob("*")}
        assert files <= set(synced)
        assert any(name.endswith(".parquet") for name in files)
        synced.clear()
        rename(source, target)

    def syncing(path):
        synced.append(Path(path).name)

    monkeypatch.setattr(dataset, "sync", syncing)
    monkeypatch.setattr(dataset.os, "rename", renaming)
    many.write(place)
    assert synced == [place.name]


def test_unwritable_manifest_leaves_nothing(many, place, monkeypatch):
    def full(*_, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(dataset.json, "dumps", full)
    with pytest.raises(KeyboardInterrupt):
        many.write(place)
    assert contents(place) == {}


def test_a_dataset_without_its_manifest_is_refused(many, place):
    """A killed export leaves such a dataset."""
    many.write(place)
    (place / STUDY / "_manifest.json").unlink()
    with raises(InputError, "merge.dataset_unfinished"):
        summarize_dataset(many.studies[0], place)


def test_a_study_without_reports_makes_a_dataset_without_files(many, place):
    assert many.write(place, []) == []
    assert manifest_of(place)["files"] == []


def test_pandas_and_pyarrow_read_the_dataset(many, place):
    many.write(place / "out")
    table = pyarrow.dataset.dataset(place / "out", format="parquet", partitioning="hive").to_table()
    frame = pandas.read_parquet(place / "out")
    for ids, versions in (
        (table["report_id"].to_pylist(), table["version"].to_pylist()),
        (list(frame["report_id"]), [int(version) for version in frame["version"]]),
    ):
        assert sorted(ids) == sorted(many.ids)
        assert versions.count(1) == versions.count(2) == 60
    assert set(table["study"].to_pylist()) == {"habits"}
