"""The command `ldpkit serve`, and the options of servers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import COUNT, command
from ldpkit.cli.output import warn

if TYPE_CHECKING:
    from flask import Flask

    from collector.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
# How long `serve` waits for PostgreSQL.
START_SECONDS = 60.0
SEVERAL = (
    "%d processes on one SQLite file wait for each other's commits: one alone is faster, or take PostgreSQL"
)


def server_options(function: F) -> F:
    """Add the options of a server, which `run_server` takes."""
    file = click.Path(path_type=Path)
    text = "for https without a proxy: a PEM file, the server's own certificate first"
    for option in (
        click.option("--ready-file", metavar="FILE", help="gets the base URL once the server listens"),
        click.option("--tls-key", type=file, metavar="FILE", help="its private key in PEM"),
        click.option("--tls-certificate", type=file, metavar="FILE", help=text),
        click.option("--threads", type=COUNT, default=64, show_default=True, help="threads a process"),
        click.option("--workers", type=COUNT, default=1, show_default=True, help="processes"),
        click.option("--port", type=int, default=8000, show_default=True, help="0 takes any free port"),
        click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on"),
        click.option("--database", metavar="URL", help="another database than the settings name"),
    ):
        function = option(function)
    return function


@command("serve", "serve --port 8000")
@server_options
@click.option("--new", is_flag=True, help="make the database if there is none")
@click.option("--require-ohttp", is_flag=True, help="refuse reports that do not come through a relay")
def serve(database: str | None, new: bool, require_ohttp: bool, **options: Any) -> None:
    """Run the collector. Without a token in the settings and without keys, it makes a token."""
    if Path("node.key").exists():
        raise InputError(
            "this folder has a node's keys, node.key: run `ldpkit node serve`, or go to the collector's",
            code="serve.place_of_a_node",
        )
    run_server(database, new, require_ohttp, None, **options)


def run_server(
    database: str | None,
    new: bool,
    require_ohttp: bool,
    create: Callable[[Settings], Flask] | None,
    *,
    host: str,
    port: int,
    workers: int,
    threads: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    ready_file: str | None,
) -> None:
    """Serve a collector, or another application, until it is told to stop.

    Args:
        database: the database, None for the settings' own.
        new: make the database if there is none.
        require_ohttp: refuse reports that do not come through a relay.
        create: makes the application; None for a collector.
        host: the address to listen on.
        port: its port.
        workers: processes.
        threads: threads of each process.
        tls_certificate: for https, a PEM file.
        tls_key: its private key.
        ready_file: gets the base URL.
    """
    from collector.db import sqlite_file
    from collector.logs import log_event, refuse_ready, write_logs
    from collector.server import Endpoint, serve_collector
    from collector.wal import LOGGER, served_alone
    from ldp_client.device.arguments import LOOPBACK

    # 1. Check everything, and warn.
    refuse_ready(ready_file)
    endpoint = Endpoint(host, port, workers, threads, tls_certificate, tls_key)
    settings = serve_settings(database, new, require_ohttp)
    _warn_of_postgresql(settings)
    if tls_certificate is None and host not in LOOPBACK:
        warn(
            f"--host {host} without https: tokens and reports can be read on the network. Put a proxy with "
            "TLS in front, or name --tls-certificate and --tls-key"
        )
    file, master = sqlite_file(settings.database), os.getpid()
    write_logs(settings.log_format)
    log_event("start", "the server starts", workers=workers)
    if file is not None and workers > 1:
        LOGGER.warning(SEVERAL, workers, extra={"code": "several-processes"})
    # 2. Serve.
    try:
        with served_alone(file):
            announce = partial(_announce, settings, ready_file=ready_file)
            serve_collector(settings, endpoint, announce, create)
    finally:
        # A worker also leaves through here.
        if os.getpid() == master:
            log_event("stop", "the server has stopped")


def serve_settings(database: str | None = None, new: bool = False, require_ohttp: bool = False) -> Settings:
    """Return a server's settings, once its database answers. See `run_server` for the arguments."""
    from collector.keys import new_word
    from collector.settings import server_settings
    from ldpkit.cli.places import TOKEN_BYTES, make_database

    settings = server_settings(database=database, require_ohttp=require_ohttp or None)
    wait_for_database(settings)
    if new:
        make_database(settings)
    if settings.token is not None:
        return settings
    if _has_keys(settings):
        warn("no token is set: keys that were made before are good; set one to make or revoke keys")
        return settings
    # No operator could act otherwise. A made token is printed, so it may stay in a log.
    made = replace(settings, token=new_word(TOKEN_BYTES))
    print(f"operator's token: {made.token}", file=sys.stderr, flush=True)
    return made


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
                warn(f"waiting {START_SECONDS:.0f} s for the database: {error}")
            is_told = True
            sleep(1)
        except InputError:
            # It answers: what is wrong with it is told where it is used.
            return


def _warn_of_postgresql(settings: Settings) -> None:
    from collector.daily import telltale_settings
    from collector.db import has_lagging_replica
    from collector.migrations import opened

    if settings.database.startswith("sqlite"):
        return
    with opened(settings.database, settings.lock_timeout) as database:
        for setting in telltale_settings(database):
            warn(f"PostgreSQL has {setting}: it records when each report came")
        if has_lagging_replica(database):
            advice = "see synchronous_standby_names in docs/operate.md"
            warn(f"a replica follows PostgreSQL, and may lack the last reports: {advice}")


def _has_keys(settings: Settings) -> bool:
    """Return True if a key has the operator's role."""
    from collector.keys import Role, list_keys
    from collector.migrations import opened

    with opened(settings.database, settings.lock_timeout) as database, database.read() as session:
        return any(key.role is Role.OPERATE for key in list_keys(session))


def _announce(settings: Settings, url: str, ready_file: str | None) -> None:
    from collector.logs import log_event, write_ready
    from collector.settings import JSON_LINES

    if settings.log_format == JSON_LINES:
        log_event("listening", f"ldpkit collector listens on {url}", url=url)
    else:
        print(f"ldpkit collector listens on {url}", file=sys.stderr, flush=True)
    write_ready(ready_file, url)
