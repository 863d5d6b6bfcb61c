"""The subcommands of `ldpkit node`: keygen, close, verify."""

from __future__ import annotations

import argparse
import os
import sys

from collector.settings import TOKEN_VARIABLE, refuse_unknown_variables
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError, SummaryError, UsageError
from ldp_client.files.disk import STREAM, read_bytes
from schemas import Study
from schemas.study import load_study


def add_node(parser: argparse.ArgumentParser) -> None:
    """Register keygen, close and verify."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    keygen = add_command(commands, "keygen", "make a node's keys", "node keygen --out node.key")
    keygen.add_argument("--out", required=True, metavar="FILE", help="gets the private keys; must be new")
    keygen.set_defaults(run=run_keygen)
    text = "close a study at its nodes and get the total"
    close = add_command(commands, "close", text, "node close study.json --out total.json")
    close.add_argument("study", metavar="STUDY.json")
    close.add_argument(
        "--token",
        action="append",
        help=f"a node's operator key, once for each in the study's order; better set {TOKEN_VARIABLE}",
    )
    close.add_argument(
        "--same-token",
        action="store_true",
        help="send one key to all nodes: the operator of any node could use it at the others",
    )
    close.add_argument("--out", required=True, metavar="TOTAL.json", help="a summary for ldpkit fit")
    text = "do it without asking, where shares may still wait for their window"
    close.add_argument("--yes", action="store_true", help=text)
    close.set_defaults(run=run_close)
    text = "check a transcript against its study"
    verify = add_command(commands, "verify", text, "node verify study.json total.transcript.json")
    verify.add_argument("study", metavar="STUDY.json")
    verify.add_argument("transcript", metavar="TRANSCRIPT.json")
    verify.set_defaults(run=run_verify)


def run_keygen(arguments: argparse.Namespace) -> int:
    """ldpkit node keygen --out FILE"""
    from collector.nodes.keys import NodeKeys

    keys = NodeKeys.generate()
    keys.save(arguments.out)
    print(f"keys in {arguments.out}; in the study, name the node as", file=sys.stderr)
    print(f"https://NODE#{keys.fragment}")
    return 0


def run_close(arguments: argparse.Namespace) -> int:
    """ldpkit node close STUDY.json --out TOTAL.json"""
    from collector.nodes.aggregator import collect
    from collector.nodes.transcript import BEGINNINGS
    from ldp_client.files.disk import refuse_replacing, refuse_replacing_other, refuse_unwritable
    from summaries.summary import FORMAT as SUMMARY

    study = _read_study(arguments.study)
    if arguments.out == STREAM:
        raise UsageError(
            "--out -: closing writes two files, the total and what the nodes signed: name one",
            code="node.close_to_standard_output",
        )
    path = f"{arguments.out.removesuffix('.json')}.transcript.json"
    for written, kinds in ((arguments.out, (SUMMARY,)), (path, BEGINNINGS)):
        refuse_replacing(written, [arguments.study])
        refuse_replacing_other(written, *kinds)
        # The nodes close permanently before it is written.
        refuse_unwritable(written)
    tokens = _tokens(study, arguments)
    _require_yes(study, arguments)
    transcript = collect(study, tokens, lambda line: print(line, file=sys.stderr))
    try:
        total = transcript.total(study)
    except SummaryError as error:
        # A node or a device is at fault; the transcript shows who signed what.
        _write(path, transcript.to_json())
        raise InputError(f"{error}; what each node signed is in {path}", code="node.closing_failed") from None
    _write(path, transcript.to_json())
    _write(arguments.out, total.to_json())
    print(f"total in {arguments.out}, what the nodes signed in {path}")
    return 0


def _require_yes(study: Study, arguments: argparse.Namespace) -> None:
    """Warn what closing would lose of a study whose shares leave in windows, and ask. Raises InputError."""
    from collector.operator.at_a_collector import require_yes

    hours = 0 if study.channel is None else study.channel.hours
    if not hours:
        return
    print(
        f"shares to {study.id} leave up to {2 * hours} hours after they were made, uncounted until then: "
        "after closing, late ones are refused permanently. Close that much later than the last people "
        "answered",
        file=sys.stderr,
    )
    require_yes(arguments, f"closing {study.id} at its nodes")


def _tokens(study: Study, arguments: argparse.Namespace) -> list[str]:
    refuse_unknown_variables()
    tokens: list[str] = arguments.token or os.environ.get(TOKEN_VARIABLE, "").split()
    if not tokens:
        raise UsageError(
            f"closing needs the nodes' operator keys, in the study's order and with spaces between: "
            f"{TOKEN_VARIABLE}, or --token for each",
            code="node.keys_needed",
        )
    assert study.protocol is not None
    if len(tokens) == 1 < len(study.protocol.nodes) and not arguments.same_token:
        raise InputError(
            f"one key for {len(study.protocol.nodes)} nodes: each would see it, and could use it at the "
            "others. Give one for each in the study's order; --same-token sends this one to all",
            code="node.one_key_for_all",
        )
    if not all(token.isascii() and token.isprintable() and token.strip() == token for token in tokens):
        raise UsageError("a token must be printable ASCII", code="node.token_not_ascii")
    return tokens


def run_verify(arguments: argparse.Namespace) -> int:
    """ldpkit node verify STUDY.json TRANSCRIPT.json"""
    from collector.nodes.transcript import Transcript

    transcript = Transcript.from_json(read_bytes(arguments.transcript))
    total = transcript.total(_read_study(arguments.study))
    devices = next(iter(total.questions.values())).n
    print(f"{len(transcript.sums)} nodes signed the same set of {devices} devices, and these sums")
    held = ", ".join(str(each.devices) for each in transcript.drawing.commitments)
    print(f"they drew it together after the close, when they held the shares of {held} devices")
    return 0


def _write(path: str, text: str) -> None:
    from ldp_client.files.disk import replacing

    with replacing(path) as file:
        file.write(text)


def _read_study(path: str) -> Study:
    study = load_study(path)
    if study.protocol is None:
        raise InputError(
            f"study {study.id} has no protocol 'secure_sum': its reports go to a collector",
            code="study.not_secure_sum",
        )
    return study
