"""A study's reports as a dataset in a new folder or object store: where each lies, all or nothing."""

import json
import logging
import os
import sys
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import pyarrow.parquet
import pytest

from ldp_client.documents.errors import InputError, MissingExtraError, TransferError, UsageError
from ldpkit.cli import dataset
from ldpkit.cli.dataset import MANIFEST, _upload, write_dataset
from schemas import Study
from summaries import summarize_dataset
from summaries.engines.stores import below, opened
from tests.kit.collectors import build_report, build_study
from tests.kit.errors import raises
from tests.kit.operators import run_export
from tests.kit.programs import need


@pytest.fixture
def place(tmp_path):
    """A folder that is not there yet."""
    return tmp_path / "new"


class Many:
    """A collector with reports of two versions, and the datasets that they make."""

    def __init__(self, harness):
        self.harness, self.sent = harness, []
        self.studies = [build_study(1), build_study(2)]
        for study in self.studies:
            harness.publish(study)
            some = [build_report(study) for _ in range(60)]
            assert harness.post([one.to_document() for one in some]).status_code == 200
            self.sent += some
        self.sent.sort(key=lambda one: one.id)

    def find(self, version, digest):
        (found,) = (study for study in self.studies if (study.version, study.digest) == (version, digest))
        return found

    def write(self, address, reports=None):
        return write_dataset(self.sent if reports is None else reports, "habits", str(address), self.find)


def contents(root):
    """Every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def many(empty):
    return Many(empty)


def ids_in(root):
    return [
        report_id
        for path in root.rglob("*.parquet")
        for report_id in pyarrow.parquet.read_table(path)["report_id"].to_pylist()
    ]


def test_the_command_writes_every_report_once_into_a_new_place(many, place, capsys, serve):
    run_export(serve(many.harness.app), f"{place}/")
    assert sorted(ids_in(place)) == [one.id for one in many.sent]
    files = len(list(place.rglob("*.parquet")))
    assert capsys.readouterr().out == f"120 reports in {files} files in {place}/\n"
    for study in many.studies:
        assert summarize_dataset(study, place).questions["fruit"].n == 60


STUDY = "study_id=habits"


@pytest.mark.attack(10)
def test_manifest_describes_each_file_that_is_on_the_disk(many, place, monkeypatch):
    """The operator deletes the collector's copy next, and the power fails."""
    synced, rename = [], os.rename

    def renaming(source, target):
        assert {path.name for path in Path(source).rglob("*")} <= set(synced)
        synced.clear()
        rename(source, target)

    monkeypatch.setattr(dataset, "sync", lambda path: synced.append(Path(path).name))
    monkeypatch.setattr(dataset.os, "rename", renaming)
    parts = many.write(place)
    assert synced == [place.name]
    manifest = json.loads((place / STUDY / "_manifest.json").read_text())
    facts = [manifest[name] for name in ("format", "study", "reports")]
    assert facts == ["ldpkit.dataset/1", "habits", 120]
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


@pytest.mark.parametrize("reports", [0, 119, 120], ids=["at once", "at the last report", "at the manifest"])
def test_failed_dataset_export_leaves_nothing(many, place, monkeypatch, reports):
    def failing():
        yield from many.sent[:reports]
        if reports < 120:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dataset.json, "dumps", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            many.write(place / "out", failing())
    assert contents(place) == {}
    many.write(place / "out")
    assert sorted(ids_in(place)) == [one.id for one in many.sent]


@pytest.fixture
def s3_store(monkeypatch):
    """The store's address, in the environment as S3's own programs read it."""
    need("moto", "s3fs")
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of-a-test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    import s3fs

    s3fs.S3FileSystem().mkdir("bucket")
    yield "s3://bucket"
    server.stop()


@pytest.mark.slow
def test_store_and_folder_receive_the_same_bytes(s3_store, many, tmp_path):
    root, address = tmp_path / "out", f"{s3_store}/out/"
    assert many.write(address) == many.write(root)
    local = contents(root)
    assert sorted(below(address)) == sorted(local)
    for name, content in local.items():
        with opened(f"{address}{name}") as file:
            assert file.read() == content
    with raises(InputError, "export.place_not_empty"):
        many.write(address)
    with pytest.raises(TransferError, match=r"cannot (read|list|write) s3://nowhere/x"):
        many.write("s3://nowhere/x")


def test_failed_upload_is_deleted(tmp_path):
    (tmp_path / MANIFEST).write_text("{}")
    store = Mock(**{"put_file.side_effect": OSError("full")})
    with pytest.raises(OSError, match="full"):
        _upload(tmp_path, store, "bucket/x")
    store.rm.assert_called_once_with("bucket/x", recursive=True)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("simplecache::file:///tmp/x", "export.unknown_store"),
        ("s3://user:secret@bucket/x", "export.password_in_address"),
        ("s3://[bucket", "export.unknown_store"),
    ],
)
def test_non_persistent_addresses_are_rejected(address, code):
    with pytest.raises((InputError, UsageError)) as refused:
        write_dataset([], "habits", address, None)
    assert refused.value.code == code
    assert "secret" not in str(refused.value)


def test_missing_store_library_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with raises(MissingExtraError, "extra.missing", "ldpkit[gs]"):
        write_dataset([], "habits", "gs://bucket/x", None)
