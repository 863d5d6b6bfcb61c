"""The command `ldpkit serve`: a collector, a node of secure sums, or an issuer of blind tickets."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import COUNT, command
from ldpkit.cli.output import warn
from ldpkit.cli.places import ISSUER, KEY_FILE, NODE, kind_option
from schemas.disk import replacing

if TYPE_CHECKING:
    from flask import Flask

    from collector.settings import Settings

# How long `serve` waits for PostgreSQL, and how long between two attempts.
START_SECONDS, PAUSE_SECONDS = 60.0, 5.0
FILE = click.Path(path_type=Path)


@command("serve", "serve --port 8000")
@kind_option
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on")
@click.option("--port", type=int, default=8000, show_default=True, help="0 takes any free port")
@click.option("--workers", type=COUNT, default=1, show_default=True, help="processes")
@click.option(
    "--tls-certificate",
    type=FILE,
    metavar="FILE",
    help="for https without a proxy: a PEM file, the server's own certificate first",
)
@click.option("--tls-key", type=FILE, metavar="FILE", help="its private key in PEM")
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
    """Run a server in the folder that `ldpkit init` made. Its settings are in ldpkit.toml."""
    from collector.db import sqlite_file
    from collector.server import Endpoint, serve_collector
    from collector.settings import server_settings
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
    if ready_file is not None and not os.path.isdir(os.path.dirname(os.path.abspath(ready_file))):
        raise click.BadParameter("there is no such folder", param_hint="--ready-file")
    endpoint = Endpoint(host, port, workers, certificate=tls_certificate, key=tls_key)
    settings = server_settings()
    wait_for_database(settings)
    if settings.token is None:
        warn("no token is set: keys that were made before are good; set one to make or revoke keys")
    if tls_certificate is None and host not in LOOPBACK:
        warn(
            f"--host {host} without https: tokens and reports can be read on the network. Put a proxy with "
            "TLS in front, or name --tls-certificate and --tls-key"
        )
    file = sqlite_file(settings.database)
    if file is not None and workers > 1:
        warn(f"{workers} processes on one SQLite file wait for each other: one is faster, or take PostgreSQL")
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
    from collector.issuer.app import create_issuer_app

    return create_issuer_app(settings)


def wait_for_database(settings: Settings) -> None:
    """Wait until the database answers: PostgreSQL may start later when a machine starts. Print its warnings.

    Raises InputError after START_SECONDS.
    """
    from collector.db import postgresql_warnings
    from collector.migrations import UnreachedError, opened

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with opened(settings.database, settings.lock_timeout) as database:
                for line in [] if database.file else postgresql_warnings(database):
                    warn(line)
            return
        except UnreachedError as error:
            if time.monotonic() > deadline:
                raise
            warn(f"waiting for the database: {error}")
            time.sleep(PAUSE_SECONDS)


def _announce(url: str, ready_file: str | None) -> None:
    print(f"ldpkit collector listens on {url}", file=sys.stderr, flush=True)
    if ready_file is not None:
        with replacing(ready_file) as file:
            file.write(url + "\n")
