"""A dataset in an object store, here a server of S3's kind on loopback, and stores that are missing."""

from __future__ import annotations

import logging
import sys

import pytest

from ldp_client.documents.errors import InputError, MissingExtraError, TransferError, UsageError
from ldpkit.cli.dataset import MANIFEST, _upload, write_dataset
from summaries.engines.stores import below, opened
from tests.collector.downloads import Many, contents
from tests.kit.errors import raises
from tests.kit.programs import need


@pytest.fixture
def many(empty):
    return Many(empty)


@pytest.fixture(scope="module")
def served():
    """The store's address, in the environment as S3's own programs read it."""
    need("moto", "s3fs")
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "of-a-test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import s3fs

        s3fs.S3FileSystem().mkdir("bucket")
        yield "s3://bucket"
    server.stop()


@pytest.mark.slow
def test_store_and_folder_receive_the_same_bytes(served, many, tmp_path):
    root, address = tmp_path / "out", f"{served}/out/"
    assert many.write(address) == many.write(root)
    local = contents(root)
    assert sorted(below(address)) == sorted(local)
    for name, content in local.items():
        with opened(f"{address}{name}") as file:
            assert file.read() == content
    with raises(InputError, "export.place_not_empty"):
        many.write(address)


def test_failed_upload_is_deleted(tmp_path):
    class Full:
        removed = ""

        def put_file(self, *_paths):
            raise OSError("full")

        def rm(self, target, recursive):
            self.removed = target if recursive else ""

    (tmp_path / MANIFEST).write_text("{}")
    store = Full()
    with pytest.raises(OSError, match="full"):
        _upload(tmp_path, store, "bucket/x")
    assert store.removed == "bucket/x"


@pytest.mark.slow
@pytest.mark.usefixtures("served")
def test_rejecting_store_is_reported_in_one_line(many):
    with pytest.raises(TransferError, match=r"cannot (read|list|write) s3://nowhere/x") as refused:
        many.write("s3://nowhere/x")
    assert "\n" not in str(refused.value)


def test_missing_store_library_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "adlfs", None)
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    for address, extra in (
        ("az://container/x", "az"),
        ("abfss://container@x/y", "az"),
        ("gs://bucket/x", "gs"),
    ):
        with raises(MissingExtraError, "extra.missing", f"ldpkit[{extra}]"):
            write_dataset([], "habits", address, None)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("memory://exports", "export.unknown_store"),
        ("simplecache::file:///tmp/x", "export.unknown_store"),
        ("ftp://somewhere/x", "export.unknown_store"),
        ("s3://user:secret@bucket/x", "export.password_in_address"),
        ("s3://", "export.unknown_store"),
        ("s3://[bucket", "export.unknown_store"),
    ],
)
def test_non_persistent_addresses_are_rejected(address, code):
    with pytest.raises((InputError, UsageError)) as refused:
        write_dataset([], "habits", address, None)
    assert refused.value.code == code
    assert "secret" not in str(refused.value)
