"""The commands init and serve: a folder for a collector, a node or an issuer, and the server in it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collector.settings import FILE_NAME, Settings, refuse_unknown_variables, server_settings
from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import COUNT, command
from ldpkit.cli.output import warn
from schemas.disk import replacing, write_new

if TYPE_CHECKING:
    from flask import Flask

COLLECTOR, NODE, ISSUER = "collector", "node", "issuer"
DATABASE_NAME = "ldpkit.sqlite3"
GATEWAY_KEYS_NAME = "ohttp.keys"
# A node's keys.
KEY_FILE = "node.key"
TOKEN_BYTES = 32
OWNER_ONLY = 0o600
SETTINGS = """\
# Settings of a server: see docs/operate.md. Keep them to yourself: the token may do everything.
database = {database}
token = {token}
ticket_key = {ticket_key}
"""
NEXT = {
    COLLECTOR: """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve                                   # start it; in another terminal of this folder:
  export LDPKIT_TOKEN="$(ldpkit token)"          # the operator's token, to publish and export with
""",
    NODE: """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve --as node                         # start it, behind TLS
a study names the node by its own address and these keys:
""",
    ISSUER: """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve --as issuer --port 8100           # behind TLS; in another terminal of this folder:
  export LDPKIT_TOKEN="$(ldpkit token)"          # the operator's token
  ldpkit tickets key STUDY_ID --collector http://127.0.0.1:8100
""",
}
kind_option = click.option(
    "--as",
    "kind",
    type=click.Choice([COLLECTOR, NODE, ISSUER]),
    default=COLLECTOR,
    help="a collector (default), a node of secure sums, or an issuer of blind tickets",
)


@command("init", "init survey")
@click.argument("folder", default=".", metavar="[FOLDER]")
@kind_option
@click.option("--database", metavar="URL", help=f"an empty one; default FOLDER/{DATABASE_NAME}, new")
def init(folder: str, kind: str, database: str | None) -> None:
    """Make a place for a server: database, token, settings. Default: this folder.

    For a node it prints what a study names the node as, https://NODE#KEYS. In its place, only that.
    """
    place = Path(os.path.abspath(folder))
    if kind != NODE or not (place / FILE_NAME).exists() or not (place / KEY_FILE).exists():
        shown = make_place(place, database, kind)
        text = NEXT[kind].format(settings=place / FILE_NAME, database=shown, folder=place)
        print(text, end="", file=sys.stderr)
    if kind == NODE:
        from collector.nodes.keys import NodeKeys

        print(f"https://NODE#{NodeKeys.load(place / KEY_FILE).fragment}")


def make_place(folder: Path, database: str | None, kind: str) -> str:
    """Make a place with its database; return where the database is, in words.

    Raises InputError; then what was made is gone again.
    """
    from collector.db import Database, sqlite_url
    from collector.keys import new_word
    from collector.migrations import make
    from collector.nodes.keys import NodeKeys
    from collector.oblivious import GatewayKeys

    # 1. Refuse a folder that cannot be made, or is a place already.
    refuse_unknown_variables()
    settings = folder / FILE_NAME
    if settings.exists():
        raise InputError(
            f"{settings} is there: this is a server's place already; start it with ldpkit serve, or correct "
            "what the file says",
            code="settings.place_exists",
        )
    with _all_or_nothing(folder):
        # 2. Make keys. Existing ones stay: studies state them.
        if kind == NODE and not (folder / KEY_FILE).exists():
            NodeKeys.generate().save(folder / KEY_FILE)
        if kind == COLLECTOR and not (folder / GATEWAY_KEYS_NAME).exists():
            GatewayKeys.generate().save(folder / GATEWAY_KEYS_NAME)
        # 3. Make the database, and write the settings. A copy of the folder uses its own copy of a database
        # inside, so its path is relative.
        made = Database(database or sqlite_url(folder / DATABASE_NAME), Settings.lock_timeout)
        make(made)
        stored = database
        if made.file is not None:
            file = Path(os.path.abspath(made.file))
            stored = sqlite_url(file.relative_to(folder) if file.is_relative_to(folder) else file)
        values = {"database": stored, "token": new_word(TOKEN_BYTES), "ticket_key": new_word(TOKEN_BYTES)}
        text = SETTINGS.format(**{name: json.dumps(value) for name, value in values.items()})
        if kind == COLLECTOR:
            text += f'ohttp_keys = "{GATEWAY_KEYS_NAME}"\n'
        write_new(settings, text, OWNER_ONLY)
    return made.shown


@contextmanager
def _all_or_nothing(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing. If the block raises, remove what it made. Raises InputError."""
    before = set(folder.iterdir()) if folder.is_dir() else None
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}", code="files.folder_not_made") from None
    try:
        yield
    except BaseException:
        for path in set(folder.iterdir()) - (before or set()):
            path.unlink()
        if before is None:
            folder.rmdir()
        raise


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
    from collector.server import serve_collector
    from collector.wal import served_alone

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

    def announce(url: str) -> None:
        print(f"ldpkit collector listens on {url}", file=sys.stderr, flush=True)
        if ready_file is not None:
            with replacing(ready_file) as ready:
                ready.write(url + "\n")

    # 2. Serve.
    with served_alone(file):
        create = {NODE: _node, ISSUER: _issuer}.get(kind)
        serve_collector(
            settings,
            host=host,
            port=port,
            workers=workers,
            certificate=tls_certificate,
            key=tls_key,
            announce=announce,
            create=create,
        )


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
    from collector.migrations import UnreachedError, opened, postgresql_warnings

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
