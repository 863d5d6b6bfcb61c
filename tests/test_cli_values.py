"""Every command refuses an empty value, such as an unset variable of a shell, before it reads anything."""

from __future__ import annotations

import argparse

import pytest

from collector.remote.dataset import write_dataset
from ldp_client.documents.errors import InputError
from ldpkit.cli import build_parser, main
from summaries import summarize_dataset
from tests.kit.errors import raises
from tests.summaries.engines_data import STUDY


def values_of(parser, words=()):
    """Every value of every command, with the words that come before it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from values_of(command, (*words, name))
        elif action.nargs != 0:
            yield words, action


TAKEN = list(values_of(build_parser()))


def call(words, action, value):
    """The command with this value, behind good ones for what stands before it."""
    if action.option_strings:
        return [*words, action.option_strings[-1], *[value] * (action.nargs or 1)]
    before = [one for found, one in TAKEN if found == words and not one.option_strings]
    return [*words, *("x" for _ in before[: before.index(action)]), value]


def test_every_command_is_covered():
    assert {"--out", "--collector", "--database", "--folder"} < {
        one for _, action in TAKEN for one in action.option_strings
    }
    assert len(TAKEN) > 150


@pytest.mark.parametrize(
    ("words", "action"), TAKEN, ids=[f"{'-'.join(words)} {one.dest}" for words, one in TAKEN]
)
def test_empty_value_is_rejected_before_reading(capsys, tmp_path, monkeypatch, words, action):
    monkeypatch.chdir(tmp_path)
    for value in ("", "  "):
        with pytest.raises(SystemExit) as ended:
            main(call(words, action, value))
        assert ended.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1].endswith("give a value")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["", " "])
def test_empty_address_in_python_is_rejected(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises(InputError, "export.empty_address"):
        write_dataset([], "habits", address, lambda *_: STUDY)
    with raises(InputError, "merge.address_empty"):
        summarize_dataset(STUDY, address)
    assert list(tmp_path.iterdir()) == []
