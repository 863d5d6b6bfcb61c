"""The commands `ldpkit ohttp`, for a gateway's keys."""

from __future__ import annotations

import argparse
import os
import sys
from base64 import b64encode

from ldp_client.commands.parsers import add_command


def add_ohttp(parser: argparse.ArgumentParser) -> None:
    """Register show, rotate and retire."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "print the newest key as an app ships it"
    show = add_command(commands, "show", text, "ohttp show ohttp.keys")
    _add_file(show)
    show.set_defaults(run=run_show)
    text = "add a newer key, or the first one, for future apps; earlier keys stay valid"
    rotate = add_command(commands, "rotate", text, "ohttp rotate ohttp.keys")
    _add_file(rotate)
    rotate.set_defaults(run=run_rotate)
    text = "remove an older key that no app ships any more"
    retire = add_command(commands, "retire", text, "ohttp retire ohttp.keys --number 1")
    _add_file(retire)
    retire.add_argument("--number", required=True, type=int, metavar="N", help="the key's, as rotate says it")
    retire.set_defaults(run=run_retire)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="of the setting ohttp_keys")


def run_show(arguments: argparse.Namespace) -> int:
    """ldpkit ohttp show FILE"""
    from collector.oblivious.keys import GatewayKeys

    print(b64encode(GatewayKeys.load(arguments.file).keys[0].configuration).decode())
    return 0


def run_rotate(arguments: argparse.Namespace) -> int:
    """ldpkit ohttp rotate FILE"""
    from collector.oblivious.keys import GatewayKeys

    if os.path.lexists(arguments.file):
        keys = GatewayKeys.load(arguments.file).rotated()
        keys.replace(arguments.file)
        older = ", ".join(str(key.number) for key in keys.keys[1:])
        done = f"key {keys.keys[0].number} is the newest, {older} stay valid: start the collector again"
    else:
        keys = GatewayKeys.generate()
        keys.save(arguments.file)
        done = f"the key is in {arguments.file}"
    print(f"{done}; the key for an app is", file=sys.stderr)
    print(b64encode(keys.keys[0].configuration).decode())
    return 0


def run_retire(arguments: argparse.Namespace) -> int:
    """ldpkit ohttp retire FILE --number N"""
    from collector.oblivious.keys import GatewayKeys

    GatewayKeys.load(arguments.file).without(arguments.number).replace(arguments.file)
    gone = f"key {arguments.number} is gone: start the collector again"
    print(f"{gone}; apps that ship the key keep their reports and cannot withdraw", file=sys.stderr)
    return 0
