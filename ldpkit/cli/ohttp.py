"""The commands `ldpkit ohttp`, for the keys of a collector's gateway."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import TYPE_CHECKING

import click

from ldpkit.cli.commands import group
from ldpkit.cli.output import warn

if TYPE_CHECKING:
    from collector.oblivious import GatewayKeys


@group("ohttp")
def ohttp() -> None:
    """Make and change the keys of a collector's gateway; FILE is the setting ohttp_keys."""


@ohttp.command("show", example="ohttp show ohttp.keys")
@click.argument("file", metavar="FILE")
def show(file: str) -> None:
    """Print the newest key as an app ships it."""
    from collector.oblivious import GatewayKeys

    _print_newest(GatewayKeys.load(file))


@ohttp.command("rotate", example="ohttp rotate ohttp.keys")
@click.argument("file", metavar="FILE")
def rotate(file: str) -> None:
    """Add a newer key, or the first one, for future apps; earlier keys stay valid."""
    from collector.oblivious import GatewayKeys

    if os.path.lexists(file):
        keys = GatewayKeys.load(file).rotated()
        keys.replace(file)
        older = ", ".join(str(key.number) for key in keys.keys[1:])
        done = f"key {keys.keys[0].number} is the newest, {older} stay valid: start the collector again"
    else:
        keys = GatewayKeys.generate()
        keys.save(file)
        done = f"the key is in {file}"
    warn(f"{done}; the key for an app is")
    _print_newest(keys)


@ohttp.command("retire", example="ohttp retire ohttp.keys --number 1")
@click.argument("file", metavar="FILE")
@click.option("--number", required=True, type=int, metavar="N", help="the key's, as rotate says it")
def retire(file: str, number: int) -> None:
    """Remove an older key that no app ships any more."""
    from collector.oblivious import GatewayKeys

    GatewayKeys.load(file).without(number).replace(file)
    gone = f"key {number} is gone: start the collector again"
    warn(f"{gone}; apps that ship the key keep their reports and cannot withdraw")


def _print_newest(keys: GatewayKeys) -> None:
    print(b64encode(keys.keys[0].configuration).decode())
