"""Tasks on a Dask cluster: one that is there, at its scheduler's address, or processes of this machine.

A task that was on a worker that died is done again elsewhere, and gives the same numbers there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

from inference.design.many import DECIDING, Here, Place, Prepared, Progress, Task, Tell, versions
from ldp_client.documents.errors import MissingExtraError, TransferError, UsageError
from summaries.engines.clusters import await_worker, connected, require_workers, saying_losses, unlike
from summaries.engines.places import is_scheduler

LOCAL = "local:"
# What a worker must be able to load.
NEEDED = f"{__name__}:LOCAL"
MOST_PROCESSES = 1024
# Programs that a worker holds at once.
MOST_PREPARED = 4

_one_at_a_time = Lock()
_prepared: dict[str, Prepared] = {}


@contextmanager
def place_of(address: str | None, progress: Progress = lambda _line: None) -> Iterator[Place]:
    """Where tasks run: in this process for None, else on a cluster, to which this process stays connected.

    Args:
        address: "tcp://HOST:PORT" or "tls://HOST:PORT" of a scheduler, or "local:N" for N processes of this
            machine, which end with the work.
        progress: is told where there is no worker yet.

    Raises:
        UsageError: an address of no such form.
        MissingExtraError: Dask is not installed.
        TransferError: nothing answers there, or the scheduler was lost while a worker was waited for.
        InputError: a worker has another version of what decides numbers, or not at all.
    """
    if address is None:
        yield Here()
        return
    processes = _checked(address)
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise MissingExtraError("dask", error.name or "distributed") from None
    if processes is None:
        with connected(distributed, address, is_default=False) as client:
            yield Dask(client, address, progress)
        return
    import dask

    # Workers compute as this process does: Dask would give their linear algebra one thread, and other bits.
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": {}}),
        distributed.LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        connected(distributed, cluster.scheduler_address, is_default=False) as client,
    ):
        yield Dask(client, address, progress)


def _checked(address: str) -> int | None:
    """How many processes of this machine; None for a cluster elsewhere. Raises UsageError."""
    if is_scheduler(address):
        return None
    number = address.removeprefix(LOCAL)
    if address.startswith(LOCAL) and number.isdecimal() and 1 <= int(number) <= MOST_PROCESSES:
        return int(number)
    raise UsageError(
        f"--cluster {address}: must be tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler, or local:N "
        "for N processes of this machine",
        code="plan.wrong_cluster",
    )


class Dask:
    """A cluster as a place for tasks."""

    def __init__(self, client: Any, address: str, progress: Progress) -> None:
        self._client, self._address = client, address
        with saying_losses(client, address):
            await_worker(client, address, progress)
            require_workers(client, dict(zip(DECIDING, versions(), strict=True)), NEEDED)

    def results(self, tasks: Sequence[Task], tell: Tell) -> Iterator[tuple[Task, Any]]:
        """Each task as it is done. Raises TransferError where the cluster is lost."""
        from distributed import KilledWorker, as_completed

        del tell
        own = versions()
        run = partial(self._client.submit, run_task, pure=False)
        futures = {run(task.work.digest, task.work.prepare, task.number, own): task for task in tasks}
        try:
            with self._client.as_current():
                done = as_completed(list(futures))
            for future in done:
                task = futures.pop(future)
                yield task, _known(future.result(), own)
        except KilledWorker:
            raise TransferError(
                f"{self._address}: one part ended worker after worker, which may have too little memory",
                code="plan.cluster_workers_ended",
            ) from None
        except (CancelledError, OSError):
            raise TransferError(
                f"{self._address}: the scheduler was lost; the same command goes on from there",
                code="plan.scheduler_lost",
            ) from None


def run_task(digest: str, prepare: Callable[[], Prepared], number: int, wanted: list[str]) -> Any:
    """Do one task, on a worker: its address and versions, and what was found where those are the wanted."""
    from distributed import get_worker

    from inference.compiling import use_compile_cache

    own, address = versions(), get_worker().address
    if own != wanted:
        return address, own, None
    # JAX traces in one thread at a time, and a program holds memory.
    with _one_at_a_time:
        use_compile_cache()
        if digest not in _prepared:
            while len(_prepared) >= MOST_PREPARED:
                del _prepared[next(iter(_prepared))]
            _prepared[digest] = prepare()
        return address, own, _prepared[digest](number, lambda _share: None)


def _known(told: tuple[str, list[str], Any], wanted: list[str]) -> Any:
    worker, own, found = told
    for name, other, here in zip(DECIDING, own, wanted, strict=True):
        if other != here:
            raise unlike(worker, name, other, here)
    return found
