"""An option with a second value, which took the place of the first in silence: a key of another role."""

from __future__ import annotations

import argparse

import pytest

from ldpkit.cli import build_parser, main


def options_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()):
    """Every option of every command that keeps one value, with the words that come before it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from options_of(command, (*words, name))
        elif (
            action.option_strings
            and isinstance(action, argparse._StoreAction)
            and len(action.choices or "ab") > 1
        ):
            yield words, action


STATED = list(options_of(build_parser()))


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


def test_every_command_is_covered():
    assert {words[0] for words, _ in STATED} > {
        "answer",
        "export",
        "fit",
        "keys",
        "plan",
        "serve",
        "summarize",
    }
    assert len(STATED) > 100


@pytest.mark.parametrize(
    ("words", "action"), STATED, ids=[f"{'-'.join(words)}{one.option_strings[-1]}" for words, one in STATED]
)
def test_second_value_of_option_is_rejected(capsys, words, action):
    option, values = action.option_strings[-1], values_of(action)
    count = action.nargs if isinstance(action.nargs, int) else 1
    given = [f"{option}={value}" if count == 1 else (option, *[value] * count) for value in values]
    with pytest.raises(SystemExit) as ended:
        main([*words, *(word for one in given for word in ([one] if isinstance(one, str) else one))])
    assert ended.value.code == 2
    assert (
        f"argument {'/'.join(action.option_strings)}: it has two values: give one" in capsys.readouterr().err
    )
