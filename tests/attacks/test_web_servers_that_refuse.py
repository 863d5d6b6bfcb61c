"""Summarise files of a web server that is away or says no: it was told as a dataset that is damaged."""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ldp_client.documents.errors import InputError, LdpkitError, TransferError
from summaries import summarize_dataset
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.engines_data import REPORTS, RIGHT, STUDY, write, write_dataset


class Refusing(ThreadingHTTPServer):
    """Serves a folder, but what ends in `ending` with this status."""

    def __init__(self, folder):
        self.status, self.ending, self.hides, self.is_chunked = 200, ".", False, False
        super().__init__(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Files(SimpleHTTPRequestHandler):
    def do_GET(self):
        assert isinstance(self.server, Refusing)
        is_absent = not os.path.exists(self.translate_path(self.path))
        if self.path.endswith(self.server.ending):
            self.send_error(self.server.status)
        elif self.server.hides and is_absent:
            self.send_error(403)
        elif self.server.is_chunked:
            self._in_one_chunk()
        else:
            super().do_GET()

    def _in_one_chunk(self):
        with open(self.translate_path(self.path), "rb") as file:
            content = file.read()
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content))

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def server(tmp_path):
    need("aiohttp")
    write_dataset(tmp_path / "out", REPORTS)
    write(tmp_path / "one.parquet", REPORTS)
    server = Refusing(tmp_path)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_dataset_on_web_server_is_read(server):
    assert summarize_dataset(STUDY, f"{server.url}/out").to_json() == RIGHT
    assert summarize_dataset(STUDY, f"{server.url}/one.parquet").to_json() == RIGHT


@pytest.mark.parametrize("status", [401, 403, 503])
@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_http_error_is_not_reported_as_damaged_dataset(server, status, ending):
    server.status, server.ending = status, ending
    name = "out" if ending == ".json" else "one.parquet"
    for where in {name, "out"}:
        code = "files.store_refused" if status < 500 else "transfer.failed"
        with raises(TransferError, code, f"{server.url}/{where}", str(status)):
            summarize_dataset(STUDY, f"{server.url}/{where}")


def test_unreachable_web_server_raises_transfer_error(server):
    server.shutdown()
    server.server_close()
    with raises(TransferError, "transfer.failed", f"{server.url}/out", "Connect call failed"):
        summarize_dataset(STUDY, f"{server.url}/out")


def test_missing_manifest_is_reported_as_unfinished_dataset(server):
    server.status, server.ending = 404, "_manifest.json"
    with raises(InputError, "merge.dataset_unfinished", "_manifest.json"):
        summarize_dataset(STUDY, f"{server.url}/out")


def test_server_that_hides_missing_files_is_read(server):
    """S3 answers 403 for files that do not exist; one of two places has no manifest."""
    server.hides = True
    assert summarize_dataset(STUDY, f"{server.url}/out").to_json() == RIGHT
    with raises(TransferError, "files.store_refused", "_manifest.json", "403"):
        summarize_dataset(STUDY, f"{server.url}/elsewhere")


def test_server_without_content_length_raises_plain_error(server):
    server.is_chunked = True
    with raises(LdpkitError, "files.not_readable", "http"):
        summarize_dataset(STUDY, f"{server.url}/one.parquet")
