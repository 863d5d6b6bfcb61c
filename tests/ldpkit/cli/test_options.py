"""Options of all commands: a second value never takes the place of the first in silence."""

from __future__ import annotations

import argparse

import pytest

from ldpkit.cli import build_parser


def options_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()):
    """Every option of every command that keeps one value: its command's parser, its words, itself."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from options_of(command, (*words, name))
        elif (
            isinstance(action, argparse._StoreAction)
            and action.option_strings
            and len(action.choices or "ab") > 1
        ):
            yield parser, words, action


def values_of(action: argparse.Action) -> list[str]:
    """Two values that the option takes."""
    for one, other in (list(action.choices or ("a", "b"))[:2], ["1", "2"], ["a=1", "b=2"]):
        try:
            for value in (one, other):
                (action.type or str)(value)
        except (ValueError, TypeError, argparse.ArgumentTypeError):
            continue
        return [one, other]
    raise AssertionError(action)


@pytest.mark.attack(14)
def test_second_value_of_an_option_is_rejected(capsys):
    """Append a second key of another role to a command: it took the place of the first."""
    stated = list(options_of(build_parser()))
    assert len(stated) > 100
    assert {words[0] for _, words, _ in stated} > {"answer", "export", "fit", "keys", "serve"}
    for parser, words, action in stated:
        option, count = action.option_strings[-1], action.nargs if isinstance(action.nargs, int) else 1
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([word for value in values_of(action) for word in (option, *[value] * count)])
        assert ended.value.code == 2
        said = f"argument {'/'.join(action.option_strings)}: it has two values: give one"
        assert said in capsys.readouterr().err, words
