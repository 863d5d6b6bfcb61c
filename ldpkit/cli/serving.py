"""The command `ldpkit serve`: a collector, a node of secure sums, or an issuer of blind tickets."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import COUNT, command
from ldpkit.cli.output import warn
from ldpkit.cli.places import ISSUER, KEY_FILE, NODE, TOKEN_BYTES, kind_option
from schemas.disk import refuse_replacing_other, replacing

if TYPE_CHECKING:
    from flask import Flask

    from collector.settings import Settings

# How long `serve` waits for PostgreSQL.
START_SECONDS = 60.0
SEVERAL = (
    "{} processes on one SQLite file wait for each other's commits: one alone is faster, or take PostgreSQL"
)


@command("serve", "serve --port 8000")
@kind_option
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on")
@click.option("--port", type=int, default=8000, show_default=True, help="0 takes any free port")
@click.option("--workers", type=COUNT, default=1, show_default=True, help="processes")
@click.option(
    "--tls-certificate",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="for https without a proxy: a PEM file, the server's own certificate first",
)
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="its private key in PEM")
@click.option("--ready-file", metavar="FILE", help="gets the base URL once the server listens")
def serve(
    kind: str,
    host: str,
    port: int,
    workers: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    ready_file: str | None,
) -> None:
    """Run a server in the folder that `ldpkit init` made. Its settings are in ldpkit.toml.

    A collector without a token in the settings and without keys makes a token.
    """
    from collector.db import sqlite_file
    from collector.server import Endpoint, serve_collector
    from collector.wal import served_alone
    from ldp_client.device.arguments import LOOPBACK

    # 1. Check everything, and warn.
    if kind == NODE and not Path(KEY_FILE).exists():
        raise InputError(
            f"this folder has no node's keys, {KEY_FILE}: go to the node's folder, or make one with "
            "`ldpkit init --as node`",
            code="serve.no_place_of_a_node",
        )
    if kind != NODE and Path(KEY_FILE).exists():
        raise InputError(
            f"this folder has a node's keys, {KEY_FILE}: run `ldpkit serve --as node`, or go "
            "to another folder",
            code="serve.place_of_a_node",
        )
    refuse_ready(ready_file)
    endpoint = Endpoint(host, port, workers, certificate=tls_certificate, key=tls_key)
    settings = serve_settings()
    _warn_of_postgresql(settings)
    if tls_certificate is None and host not in LOOPBACK:
        warn(
            f"--host {host} without https: tokens and reports can be read on the network. Put a proxy with "
            "TLS in front, or name --tls-certificate and --tls-key"
        )
    file = sqlite_file(settings.database)
    if file is not None and workers > 1:
        warn(SEVERAL.format(workers))
    # 2. Serve.
    with served_alone(file):
        announce = partial(_announce, ready_file=ready_file)
        serve_collector(settings, endpoint, announce, {NODE: _node, ISSUER: _issuer}.get(kind))


def _node(settings: Settings) -> Flask:
    # Imported in each worker: prometheus_client looks for their shared folder when it is imported.
    from collector.nodes.app import create_node_app

    return create_node_app(settings, key_file=KEY_FILE)


def _issuer(settings: Settings) -> Flask:
    # As in `_node`.
    from collector.tickets.app import create_issuer_app

    return create_issuer_app(settings)


def serve_settings() -> Settings:
    """Return a server's settings, once its database answers."""
    from collector.keys import Role, list_keys, new_word
    from collector.migrations import opened
    from collector.settings import server_settings

    settings = server_settings()
    wait_for_database(settings)
    if settings.token is not None:
        return settings
    with opened(settings.database, settings.lock_timeout) as database, database.read() as session:
        has_operator = any(key.role is Role.OPERATE for key in list_keys(session))
    if has_operator:
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
    from collector.db import postgresql_warnings
    from collector.migrations import opened

    if not settings.database.startswith("sqlite"):
        with opened(settings.database, settings.lock_timeout) as database:
            for line in postgresql_warnings(database):
                warn(line)


def _announce(url: str, ready_file: str | None) -> None:
    print(f"ldpkit collector listens on {url}", file=sys.stderr, flush=True)
    write_ready(ready_file, url)


def refuse_ready(path: str | None) -> None:
    """Raise InputError if --ready-file cannot be written: another file exists, or the folder is missing."""
    if path is not None:
        refuse_replacing_other(path, "http")
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise InputError(
                f"--ready-file: there is no folder {folder}", code="server.ready_file_folder_missing"
            )


def write_ready(path: str | None, url: str) -> None:
    """Write a base URL to --ready-file, if it is given. Raises InputError if another file exists there."""
    if path is not None:
        refuse_replacing_other(path, "http")
        with replacing(path) as file:
            file.write(url + "\n")
