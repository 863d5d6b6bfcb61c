"""Maintain an issuer's database: `ldpkit issuer resume-after-restore`, and the mark that backups carry."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ldp_client.commands.parsers import add_command
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.db import Database

DATABASE_NAME = "issuer.sqlite3"
DEFAULT_DATABASE = f"sqlite:///{DATABASE_NAME}"
BUSY_SECONDS = 10.0
ENDED = (
    "{codes} ended: people without a token need a new code. With it, people who got a token after the backup "
    "would get a second one.\nList only people who say that they have none: "
    "ldpkit issuer invite STUDY_ID --again --second-token"
)
# Each backup is marked as a copy, for the day on which it is restored.
IS_COPY = "UPDATE issuer SET is_copy = TRUE"


def add_keeping(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register resume-after-restore."""
    text = "let a database that was restored from a backup give tokens again"
    restored = with_database(
        add_command(commands, "resume-after-restore", text, "issuer resume-after-restore --end-unused")
    )
    which = restored.add_mutually_exclusive_group(required=True)
    text = "end codes without a known token: people without a token need a new code"
    which.add_argument("--end-unused", action="store_true", help=text)
    text = (
        "keep them valid: people who got a token after the backup can get a second one, and send two reports"
    )
    which.add_argument("--keep", action="store_true", help=text)
    restored.set_defaults(run=run_resume)


def with_database(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add --database; return the parser."""
    parser.add_argument("--database", metavar="URL", default=DEFAULT_DATABASE, help="default %(default)s")
    return parser


@contextmanager
def opened_by(arguments: argparse.Namespace) -> Iterator[Database]:
    """Open the database that a command names. Raises InputError for everything that it refuses."""
    from collector.issuer.models import ISSUER
    from collector.migrations import opened

    with opened(arguments.database, BUSY_SECONDS, ISSUER) as database:
        yield database


def run_resume(arguments: argparse.Namespace) -> int:
    """ldpkit issuer resume-after-restore --end-unused | --keep"""
    from collector.issuer.store import accept_copy

    with opened_by(arguments) as database, database.write() as session:
        ended = accept_copy(session, arguments.end_unused)
    if arguments.end_unused:
        print(ENDED.format(codes=counted(ended, "unused code")), file=sys.stderr)
    return 0
