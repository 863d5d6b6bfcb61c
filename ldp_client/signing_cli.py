"""The subcommands `ldpkit study keygen` and `ldpkit study sign`."""

import argparse
import os

from ldp_client.documents import load_study, read_bytes
from ldp_client.files import replacing
from schemas.errors import InputError
from schemas.signed import ED25519, RSA


def add_signing(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register keygen and sign."""
    keygen = actions.add_parser("keygen", help="make a key pair for signing studies")
    keygen.add_argument("--out", required=True, metavar="KEY.pem", help="private key; KEY.pub.pem is public")
    keygen.add_argument("--algorithm", choices=[RSA, ED25519], default=RSA, help=f"default {RSA}")
    keygen.set_defaults(run=run_keygen)

    sign = actions.add_parser("sign", help="sign a study, for devices that trust the key")
    sign.add_argument("study", metavar="STUDY.json")
    sign.add_argument("--key", required=True, metavar="KEY.pem")
    sign.add_argument("--out", required=True, metavar="SIGNED.json")
    sign.set_defaults(run=run_sign)


def run_keygen(arguments: argparse.Namespace) -> int:
    """ldpkit study keygen --out KEY.pem"""
    from ldp_client.core.public_keys import PublicKey
    from ldp_client.signing import new_key

    private, public = new_key(arguments.algorithm)
    root, extension = os.path.splitext(arguments.out)
    public_path = f"{root}.pub{extension}"
    _write_new(arguments.out, private, 0o600)
    _write_new(public_path, public, 0o644)
    print(f"keep {arguments.out} secret; devices pin {public_path}, key {PublicKey.from_pem(public).id}")
    return 0


def run_sign(arguments: argparse.Namespace) -> int:
    """ldpkit study sign STUDY.json --key KEY.pem --out SIGNED.json"""
    from ldp_client.signing import sign_study

    signed = sign_study(load_study(arguments.study), read_bytes(arguments.key))
    with replacing(arguments.out) as file:
        file.write(signed.to_json() + "\n")
    print(f"signed {signed.study.id}, version {signed.study.version}, by key {signed.signatures[0].key}")
    return 0


def _write_new(path: str, text: str, mode: int) -> None:
    """Write a file that does not exist yet; nobody else can read it even for a moment."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
