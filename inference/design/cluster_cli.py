"""`--cluster`: where a command's simulated studies are fitted, and the file from which it goes on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ldp_client.documents.errors import UsageError

if TYPE_CHECKING:
    from inference.design.many import Many, Progress

HELP = (
    "fit simulated studies on a Dask cluster: tcp://HOST:PORT of its scheduler, or local:N for N processes "
    "of this machine; the same numbers as without"
)
# What of a plan is not simulated.
FORMULAS = ("formula", "at_once", "difference", "towards_set")


def add_cluster(command: argparse.ArgumentParser) -> None:
    """Register --cluster."""
    command.add_argument("--cluster", metavar="ADDRESS", help=HELP)


def refuse_cluster(arguments: argparse.Namespace) -> None:
    """Raises UsageError where a plan's --cluster would have nothing to do."""
    if arguments.cluster is None:
        return
    for name in FORMULAS:
        if getattr(arguments, name) not in (None, False):
            raise UsageError(
                f"--cluster fits simulated studies: --{name.replace('_', '-')} has none",
                code="plan.cluster_option",
            )


@contextmanager
def many_of(
    cluster: str | None, kept: Path | None, progress: Progress = lambda _line: None
) -> Iterator[Many]:
    """Where the command's tasks run.

    cluster: as of `cluster.place_of`. kept: the file of an interrupted run; its `done` deletes it.
    """
    from inference.design.cluster import place_of
    from inference.design.journal import Journal
    from inference.design.many import Many

    with place_of(cluster, progress) as place:
        journal = Journal(kept)
        try:
            yield Many(place, journal)
        finally:
            journal.end()


def beside(out: str) -> Path:
    """DIR.unfinished beside the folder DIR, which is written whole, or not at all."""
    folder = Path(out).resolve()
    return folder.with_name(f"{folder.name}.unfinished")
