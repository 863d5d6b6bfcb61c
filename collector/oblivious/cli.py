"""The commands `ldpkit ohttp`, for a gateway's keys."""

from __future__ import annotations

import argparse
import os
import sys
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING

from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from collector.oblivious.key_usage import Needing


def add_ohttp(parser: argparse.ArgumentParser) -> None:
    """Register show, rotate and retire."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "print the newest key as a study states it"
    show = add_command(commands, "show", text, "ohttp show ohttp.keys")
    _add_file(show)
    show.set_defaults(run=run_show)
    text = "add a newer key, or the first one, for future studies; earlier keys stay valid"
    rotate = add_command(commands, "rotate", text, "ohttp rotate ohttp.keys")
    _add_file(rotate)
    rotate.set_defaults(run=run_rotate)
    text = "remove an older key that no open study states and no device needs to withdraw"
    retire = add_command(commands, "retire", text, "ohttp retire ohttp.keys --number 1")
    _add_file(retire)
    retire.add_argument("--database", metavar="URL", help="the collector's, if not the setting's")
    retire.add_argument("--number", required=True, type=int, metavar="N", help="the key's, as rotate says it")
    text = "also if devices could then no longer withdraw stored reports: for a key that leaked"
    retire.add_argument("--end-withdrawals", action="store_true", help=text)
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
    print(f"{done}; in studies to come, channel.oblivious.keys is", file=sys.stderr)
    print(b64encode(keys.keys[0].configuration).decode())
    return 0


def run_retire(arguments: argparse.Namespace) -> int:
    """ldpkit ohttp retire FILE --number N [--end-withdrawals]"""
    from collector.oblivious.key_usage import open_studies, withdrawable
    from collector.oblivious.keys import GatewayKeys
    from collector.settings import settings_with
    from collector.storage.migrating import opened

    keys = GatewayKeys.load(arguments.file)
    left = keys.without(arguments.number)
    settings = settings_with(database=arguments.database)
    with opened(settings.database, settings.lock_timeout) as database:
        with database.read() as session:
            stated, needing = open_studies(session, keys, left), withdrawable(session, keys, left)
        if stated:
            raise InputError(
                f"key {arguments.number} is stated by {', '.join(stated)}, which would get no reports: "
                "close it, or publish a version that states the newest key",
                code="oblivious.key_in_open_study",
            )
        if needing and not arguments.end_withdrawals:
            raise InputError(
                f"devices need key {arguments.number} to withdraw from {_listed(needing)}: retire it once "
                "these are deleted, or if it leaked, now with --end-withdrawals",
                code="oblivious.key_needed_for_withdrawals",
            )
        if needing:
            # Logged before the key is removed: if the process is killed in between, the same command
            # completes it.
            database.act(partial(_note_end, number=arguments.number, needing=needing))
    left.replace(arguments.file)
    print(_retired(arguments.number, needing), file=sys.stderr)
    return 0


def _note_end(session: Session, number: int, needing: list[Needing]) -> None:
    """Record in the audit log the versions whose reports devices can no longer withdraw."""
    from collector.storage import audit_log

    for one in needing:
        detail = f"key {number} of the gateway, version {one.version}"
        audit_log.record(session, audit_log.AT_DATABASE, "end withdrawals", one.study, detail)


def _retired(number: int, needing: list[Needing]) -> str:
    gone = f"key {number} is gone: start the collector again; "
    if not needing:
        return gone + "a report to a study that states it stays on its device"
    return (
        f"{gone}devices can no longer withdraw from {_listed(needing)}: tell the participants, and delete "
        "on request with an operator's key"
    )


def _listed(needing: list[Needing]) -> str:
    return "; ".join(map(str, needing))
