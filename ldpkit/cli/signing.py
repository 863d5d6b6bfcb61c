"""The subcommands `ldpkit keygen` and `ldpkit sign`."""

import argparse
import os
import sys
from errno import EEXIST

from ldp_client.commands.parsers import Subparsers, add_command
from ldp_client.documents.errors import InputError
from ldp_client.documents.signed import FORMAT
from ldp_client.files.disk import (
    STREAM,
    read_bytes,
    refuse_replacing,
    refuse_replacing_other,
    replacing,
    write_new,
)
from ldp_client.words.text import say
from schemas.study import load_study


def add_signing(actions: Subparsers) -> None:
    """Register keygen and sign."""
    example = "keygen --out key.pem"
    keygen = add_command(actions, "keygen", say("cli.help.keygen"), example)
    keygen.add_argument("--out", required=True, metavar="KEY.pem", help=say("cli.help.private_key"))
    keygen.set_defaults(run=run_keygen)

    example = "sign study.json --signing-key key.pem --out signed.json"
    sign = add_command(actions, "sign", say("cli.help.sign"), example)
    sign.add_argument("study", metavar="STUDY.json")
    sign.add_argument("--signing-key", required=True, metavar="KEY.pem")
    sign.add_argument("--out", required=True, metavar="SIGNED.json")
    sign.set_defaults(run=run_sign)


def run_keygen(arguments: argparse.Namespace) -> int:
    """ldpkit keygen --out KEY.pem"""
    from ldp_client.core.public_keys import PublicKey
    from ldp_client.files.signing import new_key

    private, public = new_key()
    root, extension = os.path.splitext(arguments.out)
    public_path = f"{root}.pub{extension}"
    if os.path.lexists(public_path):
        # Check before writing the private half, which would lack its public half.
        raise InputError.say("files.cannot_write", path=public_path, reason=os.strerror(EEXIST))
    write_new(arguments.out, private, 0o600)
    try:
        write_new(public_path, public, 0o644)
    except InputError:
        # A private half alone would block another attempt under this name.
        os.unlink(arguments.out)
        raise
    print(say("cli.new_key", file=arguments.out, public=public_path, key=PublicKey.from_pem(public).id))
    return 0


def run_sign(arguments: argparse.Namespace) -> int:
    """ldpkit sign STUDY.json --signing-key KEY.pem --out SIGNED.json"""
    from ldp_client.files.signing import sign_study

    read = [arguments.signing_key, arguments.study]
    refuse_replacing(arguments.out, read)
    refuse_replacing_other(arguments.out, FORMAT)
    signed = sign_study(load_study(arguments.study), read_bytes(arguments.signing_key))
    with replacing(arguments.out, read=read) as file:
        file.write(signed.to_json() + "\n")
    line = say(
        "cli.signed", study=signed.study.id, version=signed.study.version, key=signed.signatures[0].key
    )
    print(line, file=sys.stderr if arguments.out == STREAM else sys.stdout)
    return 0
