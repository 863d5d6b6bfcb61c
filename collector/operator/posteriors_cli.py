"""The subcommand `ldpkit posteriors`, and starting it beside `ldpkit serve`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from collector.settings import TOKEN_VARIABLE, Settings, settings_with
from ldp_client.documents.errors import EXIT_OTHER, MissingExtraError

LOWEST_PRIORITY = 19
STOP_SECONDS = 10.0


def add_posteriors(parser: argparse.ArgumentParser) -> None:
    """Register posteriors' arguments."""
    parser.add_argument("--database", metavar="URL", help=f"default {Settings.database}")
    parser.add_argument("--once", action="store_true", help="fit what has changed, and end")
    # The process to end with; it may end before this one can ask who it was.
    parser.add_argument("--beside", type=int, metavar="PID", help=argparse.SUPPRESS)
    parser.set_defaults(run=run_posteriors)


def run_posteriors(arguments: argparse.Namespace) -> int:
    """ldpkit posteriors [--once]"""
    require_inference()
    from collector.operator.fitting import Fitter
    from collector.reports.paging import Opened
    from collector.reports.rules import RuleBook
    from collector.storage.database import Database
    from collector.storage.migrating import check

    settings = settings_with(database=arguments.database)
    database = Database(settings.database, settings.busy_timeout)
    check(database)
    os.nice(LOWEST_PRIORITY)
    fitter = Fitter(Opened(database, RuleBook(database)))
    if arguments.once:
        return 0 if fitter.fit_all() else EXIT_OTHER
    fitter.watch(arguments.beside or os.getppid())
    return 0


def require_inference() -> None:
    """Raises MissingExtraError unless posteriors can be fitted here."""
    if find_spec("inference") is None or find_spec("numpyro") is None:
        raise MissingExtraError("inference", "numpyro")


@contextmanager
def fitting_beside(settings: Settings) -> Iterator[None]:
    """One `ldpkit posteriors`, until the block is left; when this process is killed it ends by itself."""
    require_inference()
    from collector.operator.fitting import end_process

    server = os.getpid()
    command = [sys.executable, "-m", "ldp_client.cli", "posteriors", "--beside", str(server)]
    # In the environment: arguments can be read by every user of the machine.
    environment = {**os.environ, "LDPKIT_DATABASE": settings.database}
    environment.pop(TOKEN_VARIABLE, None)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
    try:
        yield
    finally:
        # A forked worker leaves through here too.
        if os.getpid() == server:
            end_process(process, STOP_SECONDS)
