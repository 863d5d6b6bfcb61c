"""The parser that subcommands of `ldpkit` share, and how they are registered."""

import argparse
from typing import Any, TypeAlias

from ldp_client.words.text import nearest, visible

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


# The commands' short options. Any other short word may be part of an answer.
SHORT = ("-q", "-h")


class _Once(argparse._StoreAction):
    """An option that rejects a second, different value: it would silently replace the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        given = vars(namespace).setdefault("_given", {})
        # Compare as text: NaN, which is rejected later, is unequal to itself.
        if option_string and str(given.setdefault(self.dest, values)) != str(values):
            raise argparse.ArgumentError(self, "it has two values: give one")
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """A parser that suggests the command, or the choice, that the user may have meant.

    Its options take one value each, except options that collect several. No option takes an empty value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register("action", None, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, and store the innermost command's parser as `parser`."""
        found, beyond = super().parse_known_args(args, namespace)
        if not hasattr(found, "parser"):
            found.parser = self
        return found, beyond

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Read values as argparse does, but reject empty values: they would name the current folder."""
        # An unset shell variable leaves an empty value.
        # The words after a command's name are for its own parser.
        if action.nargs != argparse.PARSER and any(not word.strip() for word in arg_strings):
            raise argparse.ArgumentError(action, "it is empty, perhaps from an unset variable: give a value")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = nearest(str(value), [str(one) for one in action.choices])
            if near:
                raise argparse.ArgumentError(
                    action, f"there is no {visible(str(value))}: did you mean {near}?"
                )
        super()._check_value(action, value)


def near_option(parsed: argparse.Namespace, word: str) -> str:
    """Return an unknown option, with the option that the user may have meant."""
    known = [option[2:] for option in parsed.parser._option_string_actions if option.startswith("--")]
    near = nearest(word[2:], known, 0.7)
    return f"{word} (did you mean --{near}?)" if near else word


def add_command(subparsers: Subparsers, name: str, text: str, example: str = "") -> argparse.ArgumentParser:
    """Add a subcommand and return its parser. text: its description. example: a call, without `ldpkit`."""
    return subparsers.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"example:\n  ldpkit {example}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # `export --to URL` would mean `--token URL`, and `perturb --missing` would mean
        # `--missing-as-refusal`.
        allow_abbrev=False,
    )
