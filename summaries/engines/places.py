"""Forms of the addresses where workers are: Dask takes any word for a host, Spark refuses one in stacks."""

from __future__ import annotations

import re

from ldp_client.documents.errors import UsageError

# Of Dask's schedulers.
SCHEMES = ("tcp://", "tls://")
# Of Spark's masters: the workers of a process, and how often each task is tried; or a cluster.
_LOCAL = re.compile(r"local(?:\[ *([1-9]\d{0,4}|\*) *(?:, *([1-9]\d{0,4}) *)?\])?", re.ASCII)
_HOST = r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}"
_CLUSTER = re.compile(rf"spark://{_HOST}(?:,{_HOST})*|k8s://\S+|yarn|local-cluster\[[\d, ]+\]", re.ASCII)
_MEANT = re.compile(r"local\D?([1-9]\d{0,4})\D?", re.ASCII)


def is_scheduler(address: str) -> bool:
    """Whether it has the form of a Dask scheduler's address."""
    return address.startswith(SCHEMES) and len(address) > len(SCHEMES[0])


def refuse_other_than_scheduler(address: str) -> None:
    """Raises UsageError."""
    if not is_scheduler(address):
        raise UsageError(
            f"--cluster {address}: must be tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler; for "
            f"workers of this machine give --workers {_meant(address)} instead",
            code="engine.wrong_dask_cluster",
        )


def master_of(address: str, tries: int) -> str:
    """A Spark master's address; one on this machine tries tasks so often, unless it says itself how often.

    Raises UsageError for what is none.
    """
    here = _LOCAL.fullmatch(address)
    if here is not None:
        return f"local[{here[1] or 1},{here[2] or tries}]"
    if not _CLUSTER.fullmatch(address):
        raise UsageError(
            f"--cluster {address}: must be a master of Spark, such as spark://HOST:PORT, or "
            f"local[{_meant(address)}] for workers of this machine",
            code="engine.wrong_spark_master",
        )
    return address


def _meant(address: str) -> str:
    """How many workers of this machine somebody means by another engine's form."""
    number = _MEANT.fullmatch(address)
    return number[1] if number else "N"
