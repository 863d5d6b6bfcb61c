"""The command `ldpkit ohttp`, for the keys of a collector's gateway."""

from __future__ import annotations

import os
from base64 import b64encode

import click

from ldpkit.cli.commands import command
from ldpkit.cli.output import warn


@command("ohttp", "ohttp ohttp.keys --rotate")
@click.argument("file", metavar="FILE")
@click.option("--rotate", is_flag=True, help="add a newer key, or the first one; earlier keys stay valid")
@click.option("--retire", type=int, metavar="N", help="remove key N, which no app ships any more")
def ohttp(file: str, rotate: bool, retire: int | None) -> None:
    """Print the newest key of a collector's gateway as an app ships it.

    FILE is the setting ohttp_keys.
    """
    from collector.oblivious import GatewayKeys

    if rotate and retire is not None:
        raise click.UsageError("--rotate and --retire exclude each other")
    if rotate and not os.path.lexists(file):
        keys = GatewayKeys.generate()
        keys.save(file)
        warn(f"the key is in {file}; the key for an app is")
    elif rotate:
        keys = GatewayKeys.load(file).rotated()
        keys.replace(file)
        older = ", ".join(str(key.number) for key in keys.keys[1:])
        warn(f"key {keys.keys[0].number} is the newest, {older} stay valid: start the collector again")
        warn("the key for an app is")
    else:
        keys = GatewayKeys.load(file)
    if retire is not None:
        keys = keys.without(retire)
        keys.replace(file)
        warn(
            f"key {retire} is gone: start the collector again; apps that ship the key keep their reports and "
            "cannot withdraw"
        )
    print(b64encode(keys.keys[0].configuration).decode())
