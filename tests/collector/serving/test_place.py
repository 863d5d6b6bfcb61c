"""Where a server listens, and what it writes where."""

from __future__ import annotations

import fcntl
import os
import socket
import sys

import pytest
from granian.net import SocketSpec

from collector.logs import refuse_ready, write_ready
from collector.serving.place import Place, held, listen, shared_metrics, turn
from collector.settings import METRICS_FOLDER
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises


def test_unwritable_ready_file_is_rejected_before_listening(tmp_path):
    """The server used to run on after a traceback, and a program that waited for the file waited forever."""
    settings = tmp_path / "ldpkit.toml"
    settings.write_text("# of the collector\n")
    absent = tmp_path / "absent"
    for path, code in (
        (settings, ("files.is_other", str(settings))),
        (absent / "ready", ("server.ready_file_folder_missing", str(absent))),
    ):
        with raises(InputError, code):
            refuse_ready(str(path))
    for path in (None, str(tmp_path / "ready"), "ready"):
        refuse_ready(path)
    write_ready(str(tmp_path / "ready"), "http://127.0.0.1:1")
    refuse_ready(str(tmp_path / "ready"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere granian's master binds")
def test_free_port_is_held_until_the_workers_bind():
    """Workers load the application first: meanwhile another program could get the port and answer on it."""
    with held(Place(port=0)) as (host, port, url, _):
        assert url == f"http://{host}:{port}"
        with pytest.raises(OSError, match="in use"):
            socket.create_server((host, port))
        SocketSpec(host, port, 1).build()


def test_port_used_on_ipv4_is_not_shared_by_a_dual_stack_server():
    """Otherwise each device would reach one server or the other, depending on how it resolves the name."""
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        raises(InputError, "server.port_not_free", "::"),
    ):
        listen(Place(host="::", port=other.getsockname()[1]))


def test_temporary_metrics_folder_is_locked_while_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv(METRICS_FOLDER, raising=False)
    with shared_metrics(2, None):
        # Another server that starts meanwhile leaves it alone; so do cleaners that look for the lock.
        del os.environ[METRICS_FOLDER]
        with shared_metrics(2, None):
            assert len(list(tmp_path.iterdir())) == 2
        (folder,) = tmp_path.iterdir()
        handle = os.open(folder, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)
    assert not list(tmp_path.iterdir())


@pytest.mark.attack(15)
def test_another_users_lock_delays_no_start(tmp_path, monkeypatch):
    """A user of the machine makes and locks the file with which servers take turns at a port."""
    monkeypatch.setattr("collector.serving.place.SHARED_MEMORY", str(tmp_path))
    monkeypatch.setattr("collector.serving.place.os.getuid", lambda: os.geteuid() + 1)
    monkeypatch.setattr("collector.serving.place.time.sleep", lambda _seconds: pytest.fail("it waits"))
    with (tmp_path / f"ldpkit-{os.geteuid() + 1}-8000.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        turn(Place(port=8000)).close()
