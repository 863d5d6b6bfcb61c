"""The subcommands `ldpkit issuer`."""

from __future__ import annotations

import argparse

from collector.issuer.cli import add_issuer
from ldp_client.commands.parsers import add_command


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "give people one token each, which cannot be linked to their reports"
    add_issuer(add_command(subparsers, "issuer", text))
