"""The command `ldpkit init`: it makes a folder for a server, from which `ldpkit serve` starts."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import command
from schemas.disk import write_new

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
    from collector.settings import FILE_NAME

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
    from collector.settings import FILE_NAME, Settings, refuse_unknown_variables

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
