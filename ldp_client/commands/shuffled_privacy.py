"""`ldpkit check --n N`: the privacy of a report towards an observer of only the set of reports."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import say, visible

if TYPE_CHECKING:
    from ldp_client.documents.study import Study

# Digits of a number of people: mankind needs ten.
MOST_DIGITS = 12
OWN = ("delta", "contamination", "smallest_cell")


def add_people(command: argparse.ArgumentParser) -> None:
    """Add --n and the options that need it."""
    command.add_argument("--n", metavar="N", help=say("cli.help.n"))
    add_set(command)


def add_set(command: argparse._ActionsContainer) -> None:
    """Add the options that describe a set of reports, except the number of people."""
    command.add_argument("--contamination", metavar="SHARE", help=say("cli.help.contamination"))
    command.add_argument("--delta", metavar="D", help=say("cli.help.delta"))
    command.add_argument("--smallest-cell", metavar="N", help=say("cli.help.smallest_cell"))


def count_of_people(text: str, option: str = "n") -> int:
    """Parse a number of people. Raises UsageError for any other text."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS and int(text)):
        raise UsageError.say("cli.people", option=option, people=visible(text[:40]))
    return int(text)


def refuse_without_people(arguments: argparse.Namespace) -> None:
    """Raise UsageError if options describe the set of reports without --n."""
    for name in OWN:
        if getattr(arguments, name) is not None:
            raise UsageError.say("cli.needs_n", option=name.replace("_", "-"))


def stated(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the given arguments of `shuffled_privacy`. Raises UsageError."""
    given = {name: getattr(arguments, name) for name in OWN if getattr(arguments, name) is not None}
    if "smallest_cell" in given:
        given["smallest_cell"] = count_of_people(given["smallest_cell"], "smallest-cell")
    return given


def set_in_words(
    study: Study, people: int, arguments: argparse.Namespace
) -> tuple[list[str], dict[str, Any] | None]:
    """Return the bound for the set in words, and for a program: None if no bound is known.

    Raises InputError for arguments that are out of range.
    """
    from ldp_client.shuffling.explain import lines_of
    from ldp_client.shuffling.mechanisms import law_of_report
    from ldp_client.shuffling.reports import shuffled_privacy

    given = stated(arguments)
    try:
        law_of_report(study)
    except InputError as error:
        return [str(error)], None
    found = shuffled_privacy(study, people, **given)
    return lines_of(study, found), asdict(found)
