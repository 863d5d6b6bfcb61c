"""The subcommands `ldpkit init`, `serve`, `export` and `secure-sum`, and the operators' commands."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from collector.database_commands import add_database_commands
from collector.issuer.cli import add_issuer
from collector.operator.access_commands import add_access_commands
from collector.operator.init_cli import TOKEN_BYTES, add_init, make_database
from collector.settings import JSON_LINES, TOKEN_VARIABLE, Settings, server_settings
from ldp_client.commands.parsers import add_command
from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    pass

REPORTS_BETWEEN_LINES = 1000
# How long `serve` waits for PostgreSQL.
START_SECONDS = 60.0
Fetched = TypeVar("Fetched")
SEVERAL = (
    "%d processes on one SQLite file wait for each other's commits: one alone is faster, or take PostgreSQL"
)
IN_CLEAR = (
    "--host {host} without https: tokens and reports can be read on the network. Put a proxy with TLS in "
    "front, or name --tls-certificate and --tls-key"
)


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "make a place for a collector: database, token, settings"
    add_init(add_command(subparsers, "init", text, "init"))
    _add_serve(add_command(subparsers, "serve", "run the collector", "serve --port 8000"))
    add_access_commands(subparsers)
    add_database_commands(subparsers)
    text = "give people one token each, which cannot be linked to their reports"
    add_issuer(add_command(subparsers, "issuer", text))


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="URL", help=f"default {Settings.database}")
    parser.add_argument("--new", action="store_true", help="make the database if there is none")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes any free port (default 8000)")
    parser.add_argument(
        "--token", help=f"operator's token; better set {TOKEN_VARIABLE}; without keys one is made"
    )
    parser.add_argument("--workers", type=_at_least_one, default=1, help="processes (default 1)")
    parser.add_argument("--threads", type=_at_least_one, default=64, help="threads a process (default 64)")
    text = "refuse reports that do not come through a relay"
    parser.add_argument("--require-ohttp", action="store_true", default=None, help=text)
    text = "for https without a proxy: a PEM file, the server's own certificate first"
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help=text)
    parser.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="its private key in PEM, readable only by its owner"
    )
    parser.add_argument("--ready-file", metavar="FILE", help="gets the base URL once the server listens")
    parser.set_defaults(run=run_serve, create=None)


def _at_least_one(text: str) -> int:
    """Parse a number of processes or threads for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, is {text}")
    return int(text)


def run_serve(arguments: argparse.Namespace) -> int:
    """ldpkit serve [--database URL]"""
    from collector.db import sqlite_file
    from collector.logs import log_event, refuse_ready, write_logs
    from collector.server import Endpoint, serve_collector
    from collector.wal import LOGGER, served_alone

    refuse_ready(arguments.ready_file)
    certificate, key = arguments.tls_certificate, arguments.tls_key
    endpoint = Endpoint(
        arguments.host, arguments.port, arguments.workers, arguments.threads, certificate, key
    )
    settings = _serve_settings(arguments)
    _warn_of_postgresql(settings)
    if certificate is None and arguments.host not in LOOPBACK:
        print(IN_CLEAR.format(host=arguments.host), file=sys.stderr)
    file, master = sqlite_file(settings.database), os.getpid()
    write_logs(settings.log_format)
    log_event("start", "the server starts", workers=endpoint.workers)
    if file is not None and endpoint.workers > 1:
        LOGGER.warning(SEVERAL, endpoint.workers, extra={"code": "several-processes"})
    try:
        with served_alone(file):
            announce = partial(_announce, settings, ready_file=arguments.ready_file)
            serve_collector(settings, endpoint, announce, arguments.create)
    finally:
        # A worker also leaves through here.
        if os.getpid() == master:
            log_event("stop", "the server has stopped")
    return 0


def _serve_settings(arguments: argparse.Namespace) -> Settings:
    settings = server_settings(
        database=arguments.database,
        token=arguments.token,
        require_ohttp=arguments.require_ohttp,
    )
    wait_for_database(settings)
    if arguments.new:
        make_database(settings)
    return _with_token(settings) if settings.token is None else settings


def wait_for_database(
    settings: Settings,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until PostgreSQL answers, which may start later than this server when a machine starts.

    Raises InputError after START_SECONDS.
    """
    from collector.migrations import UnreachedError, opened

    if settings.database.startswith("sqlite"):
        return
    deadline, is_told = clock() + START_SECONDS, False
    while True:
        try:
            with opened(settings.database, settings.lock_timeout):
                return
        except UnreachedError as error:
            if clock() > deadline:
                raise
            if not is_told:
                print(f"waiting {START_SECONDS:.0f} s for the database: {error}", file=sys.stderr)
            is_told = True
            sleep(1)
        except InputError:
            # It answers: what is wrong with it is told where it is used.
            return


def _with_token(settings: Settings) -> Settings:
    """Make a token if no operator could act otherwise. A made token is printed, so it may stay in a log."""
    from collector.keys import new_word

    if _has_keys(settings):
        print(
            "no token is set: keys that were made before are good; set one to make or revoke keys",
            file=sys.stderr,
        )
        return settings
    made = replace(settings, token=new_word(TOKEN_BYTES))
    print(f"operator's token: {made.token}", file=sys.stderr, flush=True)
    return made


def _warn_of_postgresql(settings: Settings) -> None:
    from collector.daily import telltale_settings
    from collector.db import has_lagging_replica
    from collector.migrations import opened

    if settings.database.startswith("sqlite"):
        return
    with opened(settings.database, settings.lock_timeout) as database:
        for setting in telltale_settings(database):
            print(f"PostgreSQL has {setting}: it records when each report came", file=sys.stderr)
        if has_lagging_replica(database):
            advice = "see synchronous_standby_names in docs/operate.md"
            print(f"a replica follows PostgreSQL, and may lack the last reports: {advice}", file=sys.stderr)


def _has_keys(settings: Settings) -> bool:
    """Return True if a key has the operator's role."""
    from collector.keys import Role, list_keys
    from collector.migrations import opened

    with opened(settings.database, settings.lock_timeout) as database, database.read() as session:
        return any(key.role is Role.OPERATE for key in list_keys(session))


def _announce(settings: Settings, url: str, ready_file: str | None) -> None:
    from collector.logs import log_event, write_ready

    if settings.log_format == JSON_LINES:
        log_event("listening", f"ldpkit collector listens on {url}", url=url)
    else:
        print(f"ldpkit collector listens on {url}", file=sys.stderr, flush=True)
    write_ready(ready_file, url)
