"""What subcommands of `ldpkit` share: how they are registered, and how they print what others wrote."""

import argparse

from ldp_client.words.text import nearest, say, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

# The short options that some commands have; any other short word may be part of an answer.
SHORT = ("-q", "-h")


class _Once(argparse._StoreAction):
    """An option that is refused with a second value, which would drop the first in silence."""

    def __call__(self, parser: "Any", namespace: "Any", values: "Any", option_string: "Any" = None) -> None:
        given = vars(namespace).setdefault("_given", {})
        # As texts: not a number, which will be refused, is unequal to itself.
        if option_string and str(given.setdefault(self.dest, values)) != str(values):
            raise argparse.ArgumentError(self, say("cli.once"))
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """One that names the command, or the choice, that somebody may have meant.

    Its options take one value each, but for those that gather several; none takes an empty one.
    """

    def __init__(self, *args: "Any", **kwargs: "Any") -> None:
        super().__init__(*args, **kwargs)
        self.register("action", None, _Once)

    def parse_known_args(self, args: "Any" = None, namespace: "Any" = None) -> "Any":
        """As argparse does; the result also has the parser of the innermost command, as `parser`."""
        found, beyond = super().parse_known_args(args, namespace)
        if not hasattr(found, "parser"):
            found.parser = self
        return found, beyond

    def _get_values(self, action: argparse.Action, arg_strings: "list[str]") -> "Any":
        """As argparse reads them. What an unset variable leaves would name the folder one is in."""
        # A command has its own words among them, which its own parser reads.
        if action.nargs != argparse.PARSER and any(not word.strip() for word in arg_strings):
            raise argparse.ArgumentError(action, say("cli.empty"))
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: "Any") -> None:
        if action.choices is not None and value not in action.choices:
            near = nearest(str(value), [str(one) for one in action.choices])
            if near:
                raise argparse.ArgumentError(
                    action, say("cli.no_choice", word=visible(str(value)), near=near)
                )
        super()._check_value(action, value)


def actions_of(subparsers: "Subparsers", name: str) -> "Subparsers":
    """The actions of a command that has some, such as `study`, so that another package can add one."""
    command: argparse.ArgumentParser = subparsers.choices[name]
    (found,) = [one for one in command._actions if isinstance(one, argparse._SubParsersAction)]
    return found


def near_option(parsed: argparse.Namespace, word: str) -> str:
    """An option that its command does not have, with the one that may have been meant."""
    known = [option[2:] for option in parsed.parser._option_string_actions if option.startswith("--")]
    near = nearest(word[2:], known, 0.7)
    return say("cli.near", word=word, near=f"--{near}") if near else word


def add_command(subparsers: "Subparsers", name: str, text: str, example: str = "") -> argparse.ArgumentParser:
    """The parser of a new subcommand. text: what it does. example: a call, without `ldpkit`."""
    return subparsers.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"example:\n  ldpkit {example}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # `export --to URL` would be `--token URL`, and `perturb --blanks` answer that blanks are refusals.
        allow_abbrev=False,
    )
