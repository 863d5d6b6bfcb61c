"""The workers' shared metrics are deleted under a running server, as by cleaners of /tmp, or are left behind.

Defence: The collector: keeps them in the database's folder, recreates their folder, and logs that counts
were lost.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal

import pytest

from collector.serving.place import METRICS_PREFIX, shared_metrics
from collector.settings import METRICS_FOLDER
from tests.attacks.test_killed_workers import wait_for_another
from tests.collector.conftest import START_SECONDS, build_report, build_study


def test_server_recreates_its_deleted_metrics_folder(start_server, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    left_over = tmp_path / f"{METRICS_PREFIX}left-over"
    left_over.mkdir()
    (left_over / "counter_1.db").write_bytes(b"")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    server = start_server("--workers", "2", environment=environment)
    study = build_study()
    server.request("POST", "/v1/studies", study.document)
    assert not list(temporary.glob("*metrics*"))
    assert not left_over.exists()
    (folder,) = tmp_path.glob(f"{METRICS_PREFIX}*")
    shutil.rmtree(folder)
    server.read("/metrics")
    # What a worker leaves that is killed as it starts.
    (folder / "counter_1.db").write_bytes(b"")
    for worker in server.children()[-2:]:
        os.kill(worker, signal.SIGKILL)
    wait_for_another(server, worker)
    assert server.put_until_taken(build_report(study)) in (200, 201)
    assert "ldpkit_reports_accepted_total" in server.read("/metrics")
    assert server.logged("were deleted with")
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=START_SECONDS)
    assert not folder.exists()


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
