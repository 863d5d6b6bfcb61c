"""Summarise files of a web server that is away or says no: it was told as a dataset that is damaged."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ldp_client.documents.errors import InputError, TransferError
from summaries import summarize_dataset
from tests.summaries.engines_data import REPORTS, RIGHT, STUDY, write, write_dataset


class Refusing(ThreadingHTTPServer):
    """Serves a folder, but what ends in `ending` with this status."""

    def __init__(self, folder):
        self.status, self.ending = 200, "."
        super().__init__(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Files(SimpleHTTPRequestHandler):
    def do_GET(self):
        assert isinstance(self.server, Refusing)
        if self.path.endswith(self.server.ending):
            self.send_error(self.server.status)
        else:
            super().do_GET()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def server(tmp_path):
    write_dataset(tmp_path / "out", REPORTS)
    write(tmp_path / "one.parquet", REPORTS)
    server = Refusing(tmp_path)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_is_read(server):
    assert summarize_dataset(STUDY, f"{server.url}/out").to_json() == RIGHT
    assert summarize_dataset(STUDY, f"{server.url}/one.parquet").to_json() == RIGHT


@pytest.mark.parametrize("status", [401, 403, 503])
@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_what_it_refuses_is_no_damaged_dataset(server, status, ending):
    server.status, server.ending = status, ending
    name = "out" if ending == ".json" else "one.parquet"
    for where in {name, "out"}:
        with pytest.raises(TransferError, match=rf"cannot read {server.url}/{where}.*: {status}, "):
            summarize_dataset(STUDY, f"{server.url}/{where}")


def test_where_nobody_listens_it_is_away(server):
    server.shutdown()
    server.server_close()
    with pytest.raises(TransferError, match=r"cannot read .*: Connect call failed"):
        summarize_dataset(STUDY, f"{server.url}/out")


def test_what_is_not_there_is_still_an_unfinished_dataset(server):
    server.status, server.ending = 404, "_manifest.json"
    with pytest.raises(InputError, match=r"has no _manifest\.json"):
        summarize_dataset(STUDY, f"{server.url}/out")
