"""Tries to have a command wait for ever, or end with a traceback: clusters without workers, without ldpkit on
them, without room on their disks, and schedulers that go away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace

import pytest

from inference.design.cluster import place_of
from ldp_client.cli import main
from ldp_client.documents.errors import EXIT_NETWORK, EXIT_REFUSED, InputError, TransferError
from summaries import dask_summary, summarize
from summaries.engines import clusters, on_spark
from summaries.telling import tell_waiting
from tests.collector.conftest import wait_for
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.summaries.engines_data import FEW, made, write, write_dataset

SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
# A worker of the same cluster on which nobody installed ldpkit.
WITHOUT = "import sys; sys.modules |= dict.fromkeys(['ldp_client', 'summaries', 'inference', 'schemas'])\n"
WORKER = "from distributed.cli.dask_worker import main; main()"
SECONDS = 60


@pytest.fixture(autouse=True, scope="module")
def dask_packages():
    """Imported here: that takes three seconds, and a package that `make test` does without."""
    need("dask")
    global Client, dask
    import dask.dataframe
    from distributed import Client


@pytest.fixture
def start(tmp_path):
    """Starts programs of Dask, of which none is left behind."""
    started = []

    def start_one(program, *arguments, prefix=()):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [*prefix, sys.executable, "-c", program, *arguments, "--no-dashboard"]
        with open(tmp_path / f"{len(started)}.log", "w") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path, env=environment))
        return started[-1]

    yield start_one
    for one in started:
        one.kill()
        one.wait()


@pytest.fixture
def scheduler(start, tmp_path):
    """A scheduler without workers, on a port of its own choice: its address, and its process."""
    file, found = tmp_path / "scheduler.json", []
    process = start(SCHEDULER, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))

    def is_written():
        # At first it is not there, and then not whole.
        with suppress(OSError, ValueError):
            found.append(json.loads(file.read_text())["address"])
        return found

    wait_for(is_written, SECONDS)
    return found[0], process


@pytest.fixture
def soon_given_up(monkeypatch):
    """What answers at first has a minute for it; once it is lost, nobody waits long for it to come back."""
    monkeypatch.setattr(clusters, "PATIENCE", SECONDS)
    genuine = Client._reconnect

    async def reconnect(client):
        client._timeout = 0.5
        await genuine(client)

    monkeypatch.setattr(Client, "_reconnect", reconnect)


@pytest.fixture
def once_told(monkeypatch):
    """Has something happen when it was said that there is no worker: by then the scheduler has answered."""
    monkeypatch.setattr(clusters, "SECONDS_UNTIL_TOLD", 0.5)

    def set_act(act):
        def tell(line):
            tell_waiting(line)
            act()

        monkeypatch.setattr("summaries.engines.on_dask.tell_waiting", tell)

    return set_act


@pytest.fixture
def call(tmp_path):
    """How `ldpkit summarize` is called, but for its cluster."""
    write_dataset(tmp_path / "ds", made(FEW, 60))
    (tmp_path / "study.json").write_text(FEW.to_json())

    def called(address, where="ds"):
        study, out = f"{tmp_path}/study.json", f"{tmp_path}/summary.json"
        return main(
            [
                "summarize",
                study,
                f"{tmp_path}/{where}",
                "--engine",
                "dask",
                "--cluster",
                address,
                "--out",
                out,
            ]
        )

    return called


def workers_of(address, count):
    with Client(address) as client:
        client.wait_for_workers(count, timeout=SECONDS)
        return len(client.nthreads())


@pytest.mark.slow
def test_workers_without_ldpkit_are_refused_and_live_on(start, scheduler, call, capsys):
    address, _ = scheduler
    start(WITHOUT + WORKER, address, "--no-nanny", "--nthreads", "1")
    workers_of(address, 1)
    assert call(address) == EXIT_REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"worker tcp://\S+ cannot load summaries.engines.on_dask: .*install there", line)
    assert workers_of(address, 1) == 1


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused(start, scheduler, call, capsys, monkeypatch):
    address, _ = scheduler
    start(WORKER, address, "--no-nanny", "--nthreads", "1")
    workers_of(address, 1)
    monkeypatch.setattr("summaries.engines.on_dask.version", lambda _name: "0.0.7")
    assert call(address) == EXIT_REFUSED
    assert re.search(r"has ldpkit \S+, this process 0.0.7: install the same there", capsys.readouterr().err)


@pytest.mark.slow
def test_a_cluster_without_workers_is_spoken_of_and_waited_for(
    start, scheduler, call, capsys, tmp_path, once_told
):
    address, _ = scheduler
    once_told(lambda: start(WORKER, address, "--no-nanny", "--nthreads", "1"))
    assert call(address) == 0
    assert f"{address} has no worker yet: waiting for one (dask worker {address})" in capsys.readouterr().err
    assert (tmp_path / "summary.json").exists()


@pytest.mark.usefixtures("soon_given_up")
def test_a_scheduler_that_is_lost_is_one_line(scheduler, call, capsys, once_told):
    address, process = scheduler
    once_told(process.kill)
    assert call(address) == EXIT_NETWORK
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == f"ldpkit: {address}: the scheduler was lost; the same command begins anew"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("soon_given_up")
def test_a_scheduler_that_is_lost_while_tasks_run_is_one_line(start, scheduler, call, capsys, monkeypatch):
    address, process = scheduler
    start(WORKER, address, "--no-nanny", "--nthreads", "1")
    workers_of(address, 1)
    genuine = clusters.require_workers

    def kill_soon(*arguments):
        genuine(*arguments)
        process.kill()

    monkeypatch.setattr("summaries.engines.on_dask.require_workers", kill_soon)
    assert call(address) == EXIT_NETWORK
    assert "the scheduler was lost; the same command begins anew" in capsys.readouterr().err


@pytest.mark.slow
def test_a_worker_without_room_on_its_disk_is_one_line(start, scheduler, call, capsys, tmp_path):
    # Of several files rows go through the disks of workers.
    for seed in (1, 2):
        write(tmp_path / f"{seed}.parquet", made(FEW, 3000, seed))
    address, _ = scheduler
    limited = ("bash", "-c", 'ulimit -f 8; exec "$@"', "bash")
    start(WORKER, address, "--no-nanny", "--nthreads", "1", prefix=limited)
    workers_of(address, 1)
    assert call(address, "?.parquet") == EXIT_REFUSED
    assert "cannot keep its temporary files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Exception(\"OSError(27, 'File too large')\")", "File too large"),
        ("Exception('P2POutOfDiskError()')", "No space left on device"),
    ],
)
def test_a_disk_of_which_dask_tells_the_text_alone_is_one_line(said, reason):
    said = f"Unexpected error encountered during P2P barrier: {said}"
    with (
        pytest.raises(InputError, match=f"there cannot keep its temporary files: {reason}; give it room"),
        clusters.saying_losses(SimpleNamespace(status="running"), "there", is_ours=False),
    ):
        raise RuntimeError("P2P 1d3e failed during barrier phase") from RuntimeError(said)


@pytest.mark.slow
def test_a_worker_without_ldpkit_that_comes_late_is_refused_before_fits_are_sent(
    start, scheduler, monkeypatch
):
    monkeypatch.setattr(clusters, "SECONDS_UNTIL_TOLD", 0.5)
    address, _ = scheduler
    told = []
    command = (WITHOUT + WORKER, address, "--no-nanny", "--nthreads", "1")

    def tell(line):
        told.append(line)
        start(*command)

    with (
        raises(InputError, "engine.module_missing_at_worker", "tcp", "inference.design.cluster"),
        place_of(address, tell),
    ):
        pass
    assert told == [f"{address} has no worker yet: waiting for one (dask worker {address})"]
    assert workers_of(address, 1) == 1


@pytest.mark.usefixtures("soon_given_up")
def test_a_scheduler_that_is_lost_before_fits_are_sent_is_one_line(scheduler, monkeypatch):
    address, process = scheduler
    submit = Client.submit

    def kill_soon(*arguments, **options):
        future = submit(*arguments, **options)
        process.kill()
        return future

    # It has answered by then, and a worker is waited for.
    monkeypatch.setattr(Client, "submit", kill_soon)
    with raises(TransferError, "engine.scheduler_lost"), place_of(address):
        pass


@pytest.fixture
def frame(tmp_path):
    """A Dask DataFrame of a program's own."""
    return dask.dataframe.read_parquet(write(tmp_path / "own.parquet", made(FEW, 60)))


@pytest.mark.slow
def test_workers_without_ldpkit_are_refused_before_a_programs_frame_is_sent(
    start, scheduler, frame, monkeypatch
):
    address, _ = scheduler
    start(WITHOUT + WORKER, address, "--no-nanny", "--nthreads", "1")
    workers_of(address, 1)
    monkeypatch.setattr("summaries.engines.on_dask._ended", lambda *_: pytest.fail("work was sent"))
    with (
        Client(address),
        raises(InputError, "engine.module_missing_at_worker", "summaries.engines.on_dask"),
    ):
        dask_summary(FEW, frame)
    assert workers_of(address, 1) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("soon_given_up")
def test_a_scheduler_that_is_lost_under_a_programs_frame_is_one_line(start, scheduler, frame, tmp_path):
    address, process = scheduler
    start(WORKER, address, "--no-nanny", "--nthreads", "1")
    workers_of(address, 1)
    begun = tmp_path / "begun"

    def slowed(_some):
        """A task that the worker is killed in."""
        begun.touch()
        time.sleep(10 * SECONDS)

    def kill_once_begun():
        wait_for(begun.exists, SECONDS)
        process.kill()

    with Client(address, timeout=SECONDS):
        slow = frame.map_partitions(slowed, meta=frame._meta)
        killer = Thread(target=kill_once_begun)
        killer.start()
        with raises(TransferError, "engine.scheduler_lost"):
            dask_summary(FEW, slow)
        killer.join()


@pytest.mark.slow
def test_what_a_programs_frame_says_of_its_own_files_stays(start, scheduler, frame):
    address, _ = scheduler
    start(WORKER, address, "--no-nanny", "--nthreads", "1")
    workers_of(address, 1)
    right = summarize(FEW, made(FEW, 60)).to_json()

    def none_there(_some):
        raise FileNotFoundError("my.txt")

    with Client(address):
        assert dask_summary(FEW, frame).to_json() == right
        with pytest.raises(FileNotFoundError, match=r"my\.txt"):
            dask_summary(FEW, frame.map_partitions(none_there, meta=frame._meta))
    with dask.config.set(scheduler="threads"):
        assert dask_summary(FEW, frame).to_json() == right


def test_spark_s_workers_without_ldpkit_are_told_of_with_what_helps():
    said = "Job aborted:\nTraceback\n  File x\nModuleNotFoundError: No module named 'summaries'\n\tat org.y"
    line = on_spark._last_line(RuntimeError(said))
    assert line.startswith(
        "ModuleNotFoundError: No module named 'summaries'; install ldpkit for the workers'"
    )
    assert "PYSPARK_PYTHON" in line
