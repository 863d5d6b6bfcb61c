"""The commands for secure sums: close a study at its nodes, and check a transcript."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import InputError, SummaryError, UsageError
from ldpkit.cli.commands import TOKEN_VARIABLE, group, out_option, require_yes, study_argument, yes_option
from ldpkit.cli.output import show, warn
from schemas.disk import read_bytes, refuse_existing, replacing

if TYPE_CHECKING:
    from ldpkit.cli.aggregator import NodeClient
    from schemas import Study


@group("node")
def node() -> None:
    """Close a secure sum at its nodes, or check what they signed."""


@node.command("close", example="node close study.json --out total.json")
@study_argument
@out_option("a summary for ldpkit fit; what the nodes signed goes into *.transcript.json", "TOTAL.json")
@yes_option
def close(study: Study, out: str, yes: bool) -> None:
    """Close a study at its nodes permanently, and get the total.

    LDPKIT_TOKEN has a key of each node, in the study's order, with spaces between.
    """
    from collector.settings import refuse_unknown_variables
    from ldpkit.cli.aggregator import collect

    # 1. Check what could fail after the nodes have closed, which is permanent.
    path = f"{out.removesuffix('.json')}.transcript.json"
    refuse_existing(path)
    refuse_unknown_variables()
    nodes = nodes_of(study, os.environ.get(TOKEN_VARIABLE, "").split())
    hours = 2 * study.channel.hours if study.channel else 0
    warn(
        f"shares to {study.id} leave up to {hours} hours after they were made, uncounted until then: "
        "after closing, late ones are refused permanently. Close that much later than the last answers"
    )
    require_yes(yes, f"closing {study.id} at its nodes")
    # 2. Close, draw and sum, with both files open. The transcript is kept also if a node or a device was
    # wrong: it is evidence.
    with replacing(out, is_new=True) as file:
        with replacing(path, is_new=True) as evidence:
            transcript = collect(study, nodes, warn)
            evidence.write(transcript.to_json())
        try:
            total = transcript.total(study)
        except SummaryError as error:
            raise InputError(
                f"{error}; what each node signed is in {path}", code="node.closing_failed"
            ) from None
        file.write(total.to_json())
    show([f"total in {out}, what the nodes signed in {path}"])


def nodes_of(study: Study, tokens: Sequence[str]) -> list[NodeClient]:
    """Return the clients of a study's nodes. tokens: the nodes' operator keys, in the study's order.

    Raises InputError for a study without nodes, and UsageError for another number of keys.
    """
    from ldpkit.cli.aggregator import NodeClient

    if study.protocol is None:
        raise InputError(
            f"study {study.id} has no protocol 'secure_sum': its reports go to a collector",
            code="study.not_secure_sum",
        )
    urls = [node.url for node in study.protocol.nodes]
    if len(tokens) != len(urls):
        raise UsageError(
            f"closing needs {len(urls)} keys in {TOKEN_VARIABLE}, each node's in the study's order, "
            f"with spaces between; it has {len(tokens)}",
            code="node.keys_needed",
        )
    return [NodeClient(url, token, study.id) for url, token in zip(urls, tokens)]


@node.command("verify", example="node verify study.json total.transcript.json")
@study_argument
@click.argument("transcript", metavar="TRANSCRIPT.json")
def verify(study: Study, transcript: str) -> None:
    """Check a transcript against its study."""
    from collector.nodes.transcript import Transcript

    signed = Transcript.from_json(read_bytes(transcript))
    total = signed.total(study)
    devices = next(iter(total.questions.values())).n
    held = ", ".join(str(each.devices) for each in signed.drawing.commitments)
    show(
        [
            f"{len(signed.sums)} nodes signed the same set of {devices} devices, and these sums",
            f"they drew it together after the close, when they held the shares of {held} devices",
        ]
    )
