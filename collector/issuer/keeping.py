"""Keeping an issuer's database: `ldpkit issuer restored`, and what a backup says of itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ldp_client.commands.parsers import add_command
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.storage.database import Database

DATABASE_NAME = "issuer.sqlite3"
DEFAULT_DATABASE = f"sqlite:///{DATABASE_NAME}"
BUSY_SECONDS = 10.0
ENDED = (
    "{codes} ended: whoever has no token needs a new code, and who got one after the backup would get a "
    "second one.\nList those alone who say that they have none: "
    "ldpkit issuer invite STUDY_ID --again --second-token"
)
# A copy says of itself that it is one, for the day on which it is put back.
IS_COPY = "UPDATE issuer SET is_copy = TRUE"


def add_keeping(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register restored."""
    text = "have a database that was put back from a backup give tokens again"
    restored = with_database(add_command(commands, "restored", text, "issuer restored --end-unused"))
    which = restored.add_mutually_exclusive_group(required=True)
    text = "codes that it knows no token of end: whoever has no token yet needs a new code"
    which.add_argument("--end-unused", action="store_true", help=text)
    text = "they stay good: whoever got a token after the backup can get a second one, and send two reports"
    which.add_argument("--keep", action="store_true", help=text)
    restored.set_defaults(run=run_restored)


def with_database(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add --database; the parser."""
    parser.add_argument("--database", metavar="URL", default=DEFAULT_DATABASE, help="default %(default)s")
    return parser


@contextmanager
def opened_by(arguments: argparse.Namespace) -> Iterator[Database]:
    """The database that a command names. Raises InputError for all that it refuses."""
    from collector.issuer.models import ISSUER
    from collector.storage.migrating import opened

    with opened(arguments.database, BUSY_SECONDS, ISSUER) as database:
        yield database


def run_restored(arguments: argparse.Namespace) -> int:
    """ldpkit issuer restored --end-unused | --keep"""
    from collector.issuer.book import accept_copy

    with opened_by(arguments) as database, database.write() as session:
        ended = accept_copy(session, arguments.end_unused)
    if arguments.end_unused:
        print(ENDED.format(codes=counted(ended, "unused code")), file=sys.stderr)
    return 0
