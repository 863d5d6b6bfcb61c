"""A Dask cluster that is there: the connection, what its workers must have, and how its loss is said."""

from __future__ import annotations

import logging
import os
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ldp_client.documents.errors import InputError, LdpkitError, TransferError
from summaries.engines.addresses import line_of

# Seconds until a scheduler has answered.
PATIENCE = 10
# Seconds without any worker, until that is said.
SECONDS_UNTIL_TOLD = 5
# Dask gives the second a level of its own.
LOGGERS = ("distributed", "distributed.client")
NO_ROOM = (ENOSPC, EDQUOT, EFBIG)
_TOLD = re.compile(r"OSError\((\d+), |P2POutOfDiskError\(")


@contextmanager
def connected(distributed: Any, address: str, is_default: bool = True) -> Iterator[Any]:
    """A client of the scheduler there, without its own lines. Raises TransferError where none answers."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in before:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        try:
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=is_default)
        except (OSError, ValueError, RuntimeError) as error:
            raise TransferError(
                f"no Dask scheduler answers at {address}: {line_of(error)}",
                code="engine.scheduler_unreachable",
            ) from None
        with client:
            yield client
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def require_workers(client: Any, versions: Mapping[str, str], needed: str) -> None:
    """Look at the workers before anything of ldpkit is sent: one that cannot read it ends, and the next.

    Args:
        client: of the cluster.
        versions: of the packages that must be the same there.
        needed: what a worker must be able to import, "module:name".

    Raises:
        InputError: a worker has another version, or lacks something.
    """
    # Functions that workers without ldpkit have too.
    for name, own in versions.items():
        for worker, other in client.run(version, name, on_error="return").items():
            if isinstance(other, PackageNotFoundError):
                raise InputError(
                    f"worker {worker} has no {name}: install {name} {own} there",
                    code="engine.package_missing_at_worker",
                )
            if isinstance(other, str) and other != own:
                raise unlike(worker, name, other, own)
    for worker, found in client.run(pkgutil.resolve_name, needed, on_error="return").items():
        if isinstance(found, ImportError):
            raise InputError(
                f"worker {worker} cannot load {needed.partition(':')[0]}: {line_of(found)}; install there "
                "what is installed here",
                code="engine.module_missing_at_worker",
            )


def unlike(worker: str, name: str, other: str, own: str) -> InputError:
    """What is said of a worker with another version."""
    return InputError(
        f"worker {worker} has {name} {other}, this process {own}: install the same there",
        code="engine.versions_differ",
    )


def await_worker(client: Any, address: str, tell: Callable[[str], None]) -> None:
    """Wait until the cluster has a worker; one that starts workers for work is given some."""
    if client.nthreads():
        return
    future = client.submit(version, "ldpkit", pure=False)
    try:
        future.exception(timeout=SECONDS_UNTIL_TOLD)
    except TimeoutError:
        tell(f"{address} has no worker yet: waiting for one (dask worker {address})")
        future.exception()


@contextmanager
def saying_losses(client: Any, address: str, is_ours: bool = True) -> Iterator[None]:
    """Raises TransferError where the scheduler is lost, InputError where workers or their disks fail.

    is_ours: whether all that workers do is ldpkit's; else what a program's own part says of files stays.
    """
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        yield
    except LdpkitError:
        raise
    except KilledWorker:
        raise InputError(
            "workers that read reports were killed again and again: give each more memory, or take more",
            code="engine.workers_killed",
        ) from None
    except (CancelledError, CommClosedError):
        raise _lost(address) from None
    except Exception as error:
        if client.status != "running":
            raise _lost(address) from None
        of_system = next((one for one in _failures(error) if is_ours or one.errno in NO_ROOM), None)
        if of_system is None:
            raise
        raise InputError(
            f"a worker of {address} cannot keep its temporary files: {line_of(of_system)}; give it room, or "
            "another folder (dask worker --local-directory)",
            code="engine.worker_disk",
        ) from None


def _lost(address: str) -> TransferError:
    return TransferError(
        f"{address}: the scheduler was lost; the same command begins anew", code="engine.scheduler_lost"
    )


def _failures(error: BaseException) -> Iterator[OSError]:
    """What the system said, by what went wrong: of some workers' disks Dask tells the text alone."""
    for one in _causes(error):
        told = _TOLD.search(repr(one))
        if told is not None:
            number = int(told[1] or ENOSPC)
            yield OSError(number, os.strerror(number))
        elif isinstance(one, OSError):
            yield one


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
