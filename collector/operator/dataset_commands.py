"""`ldpkit export --format parquet`: a study's reports as a dataset, from the database itself."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from collector.operator.access_commands import day_of
from collector.settings import Settings, settings_with
from ldp_client.commands.output import Step, progress_of, show
from ldp_client.documents.errors import UsageError
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.exports.dataset import Exported, Order

# Of `ldpkit export`, beside --format parquet: what only the other kind of export takes.
REMOTE = ("collector", "token")
# And what only a dataset takes.
OWN = ("database", "buckets", "processes", "with_today", "forget_before")


def add_dataset_arguments(parser: argparse.ArgumentParser, what: argparse._MutuallyExclusiveGroup) -> None:
    """Register what a dataset takes."""
    text = (
        "a dataset in a folder or an object store, from the database itself: many files, written in parallel"
    )
    what.add_argument("--format", choices=("parquet",), help=text)
    group = parser.add_argument_group("with --format parquet")
    group.add_argument("--database", metavar="URL", help=f"default {Settings.database}")
    add_parallel(group)
    text = "also what comes today (UTC), of a study that takes reports: that day's files will change"
    group.add_argument("--with-today", action="store_true", help=text)
    text = "of days before that one also delete here what the database has no more, as it expired there"
    group.add_argument("--forget-before", metavar="YYYY-MM-DD", help=text)


def add_parallel(parser: argparse._ActionsContainer) -> None:
    """Register into how many files and with how many processes a dataset is written."""
    text = (
        "files a day and version, a power of two up to 256 (default: up to 16, by how many reports there are)"
    )
    parser.add_argument("--buckets", type=int, metavar="N", help=text)
    text = "write with so many processes (default: as many as pay)"
    parser.add_argument("--processes", type=at_least_one, metavar="N", help=text)


def wants_dataset(arguments: argparse.Namespace) -> bool:
    """Whether an export is to be a dataset. Raises UsageError where that is not clear."""
    out = arguments.out
    is_place = "://" in out or out.endswith("/") or os.path.isdir(out)
    if arguments.format is None:
        if is_place:
            raise UsageError(
                f"--out {out} is no file: add --format parquet for a dataset, or name a file",
                code="export.file_name_needed",
            )
        for name in OWN:
            if getattr(arguments, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} goes with --format parquet", code="export.option_of_dataset"
                )
        return False
    for name in REMOTE:
        if getattr(arguments, name):
            option = "from" if name == "collector" else name
            raise UsageError(
                f"--{option}: a dataset comes from the database itself, not from a server",
                code="export.dataset_from_server",
            )
    if out == "-" or os.path.splitext(out)[1] in (".parquet", ".csv", ".ndjson"):
        raise UsageError(
            f"--out {out} is one file, and a dataset many: name a folder, or leave --format out",
            code="export.dataset_needs_folder",
        )
    return True


def run_dataset(arguments: argparse.Namespace) -> int:
    """ldpkit export STUDY_ID --format parquet --out ADDRESS [--database URL] [--buckets N] [--processes N]"""
    from collector.exports.dataset import export_dataset

    if arguments.forget:
        raise UsageError(
            "--forget is for one file: a dataset takes --forget-before", code="export.forget_of_dataset"
        )
    order = order_of(arguments, arguments.out)
    exported = export_dataset(order, telling(arguments))
    show(arguments, in_lines(order, exported), document_of(order, exported))
    return 0


def order_of(arguments: argparse.Namespace, address: str) -> Order:
    """What a command asks for."""
    from collector.exports.dataset import Order
    from collector.exports.store import refuse_unreadable
    from collector.storage import upkeep

    refuse_unreadable(address)
    settings = settings_with(database=arguments.database)
    place = (settings.database, settings.busy_timeout, arguments.study, address, upkeep.utc_today())
    with_today = getattr(arguments, "with_today", False)
    before = getattr(arguments, "forget_before", None)
    day = None if before is None else day_of("--forget-before", before)
    return Order(*place, arguments.buckets, with_today, arguments.processes, day)


def telling(arguments: argparse.Namespace) -> Callable[[int, int], None]:
    """Progress, of reports that are in files."""
    progress = progress_of(arguments)
    return lambda done, total: progress(Step(f"{counted(done, 'report')} written", done, max(total, 1)))


def in_lines(order: Order, exported: Exported) -> list[str]:
    """What became of an export, for people."""
    manifest = exported.manifest
    files, new = counted(len(manifest.parts), "file"), exported.written
    reports = counted(manifest.reports, "report")
    lines = [f"{reports} in {files} in {order.address}, {new} of them written now"]
    if any(exported.gone):
        withdrawn, forgotten, deleted = exported.gone
        lines.append(
            f"deleted since the last export: {counted(withdrawn, 'withdrawn report')}, "
            f"{counted(forgotten, 'report')} that the database has no more, {counted(deleted, 'file')}"
        )
    if manifest.through is not None:
        lines.append(
            f"{order.study} takes reports: what came through {manifest.through} (UTC) is final but for "
            "withdrawals; today's are left out, and --with-today takes them"
        )
    elif exported.is_open:
        lines.append(f"{order.study} takes reports: what came on {order.today} (UTC) is not all of that day")
    return lines


def document_of(order: Order, exported: Exported) -> dict[str, Any]:
    """The same for programs."""
    manifest = exported.manifest
    counts = {"reports": manifest.reports, "files": len(manifest.parts), "written": exported.written}
    gone = exported.gone
    deleted = {"withdrawn": gone.withdrawn, "forgotten": gone.forgotten, "deleted_files": gone.files}
    place = {"study": order.study, "address": order.address}
    return {**place, **counts, **deleted, "through": manifest.through, "open": exported.is_open}


def at_least_one(text: str) -> int:
    """A number of processes or threads, as argparse reads it."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, is {text}")
    return int(text)
