"""Options of all commands: a second value never takes the place of the first in silence."""

from __future__ import annotations

import click
import pytest

from tests.kit.commands import exit_code, leaves


def values_of(option: click.Option) -> list[str]:
    """Return two values that the option takes."""
    if isinstance(option.type, click.Choice):
        return [str(one) for one in option.type.choices][:2]
    return ["1", "2"]


@pytest.mark.attack(14)
def test_second_value_of_an_option_is_rejected(capsys):
    """Append a second key of another role to a command: it took the place of the first."""
    stated = [
        (words, one)
        for words, command in leaves()
        for one in command.params
        if isinstance(one, click.Option) and not one.is_flag and not one.multiple
    ]
    assert len(stated) > 60
    assert {words[0] for words, _ in stated} > {"answer", "export", "fit", "keys", "serve"}
    for words, option in stated:
        given = [word for value in values_of(option) for word in (option.opts[0], *[value] * option.nargs)]
        assert exit_code([*words, *given]) == 2
        said = capsys.readouterr().err
        assert "it has two values: give one" in said or "Invalid value" in said or "invalid" in said, words
