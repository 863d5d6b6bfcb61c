"""The collector's commands, run as `ldpkit` runs them."""

from __future__ import annotations

import argparse

from collector.cli import add_commands


def parsed(*arguments):
    """What the command line makes of these arguments."""
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    return parser.parse_args(arguments)


def run(*arguments):
    """Run a command that succeeds."""
    found = parsed(*arguments)
    assert found.run(found) == 0
