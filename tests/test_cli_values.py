"""Every command refuses an empty value, such as an unset variable of a shell, before it reads anything."""

from __future__ import annotations

import click
import pytest

from ldp_client.documents.errors import InputError
from summaries import summarize_dataset
from tests.kit.commands import exit_code, leaves
from tests.kit.errors import raises
from tests.summaries.engines_data import STUDY

TAKEN = [
    (words, one)
    for words, command in leaves()
    for one in command.params
    if isinstance(one, click.Argument) or not one.is_flag
]


def call(words, parameter, value):
    """Return the command with this value, after good ones for the arguments before it."""
    if isinstance(parameter, click.Option):
        return [*words, parameter.opts[0], *[value] * parameter.nargs]
    before = [one for found, one in TAKEN if found == words and isinstance(one, click.Argument)]
    return [*words, *("x" for _ in before[: before.index(parameter)]), value]


def test_every_command_is_covered():
    assert {"--out", "--collector", "--database", "--folder"} < {
        word for _, one in TAKEN for word in one.opts
    }
    assert len(TAKEN) > 100


@pytest.mark.parametrize(
    ("words", "parameter"), TAKEN, ids=[f"{'-'.join(words)} {one.name}" for words, one in TAKEN]
)
def test_empty_value_is_rejected_before_reading(capsys, tmp_path, monkeypatch, words, parameter):
    monkeypatch.chdir(tmp_path)
    for value in ("", "  "):
        assert exit_code(call(words, parameter, value)) == 2
        assert "give a value" in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["", " "])
def test_empty_address_in_python_is_rejected(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises(InputError, "merge.address_empty"):
        summarize_dataset(STUDY, address)
    assert list(tmp_path.iterdir()) == []
