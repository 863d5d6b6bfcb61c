"""docs/operating.md says what is so."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path

import pytest

from collector.cli import add_commands
from collector.http import problems
from collector.http.problems import Kind
from collector.settings import Settings

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
OTHERS = ("answer", "fit", "study")


def commands():
    lines = re.findall(r"^(?:LDPKIT_\S+ |ExecStart=\S*/)?ldpkit ([^#\n]+)", TEXT, re.MULTILINE)
    return [line.strip() for line in lines]


def test_every_setting_is_documented_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", TEXT, re.MULTILINE))
    defaults = {field.name: "none" if field.default is None else field.default for field in fields(Settings)}
    shown = {name: text.strip("`") for name, text in rows.items()}
    assert shown == {
        name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in defaults.items()
    }


@pytest.mark.parametrize("command", [line for line in commands() if line.split()[0] not in OTHERS])
def test_every_command_is_one(command):
    parser = ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    assert parser.parse_args(shlex.split(command)).run


def test_there_are_commands_to_test():
    assert {line.split()[0] for line in commands()} >= {"serve", "admin", "backup", "export"}


def test_the_statuses_of_overload_and_faults_are_the_problems():
    kinds = [value for value in vars(problems).values() if isinstance(value, Kind)]
    waiting = {str(kind.status) for kind in kinds if kind.retry_after is not None}
    for status in waiting - {"425"}:
        assert re.search(rf"\| {status}, `Retry-After` \|", TEXT), status
