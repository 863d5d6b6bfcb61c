"""`ldpkit study check --people N`: what a report is worth towards whoever sees only the set of them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import say, visible

if TYPE_CHECKING:
    from ldp_client.documents.study import Study

# Of a number of people: the whole of mankind has ten.
MOST_DIGITS = 12
OWN = ("delta", "false_reports", "smallest_cell")


def add_people(command: argparse.ArgumentParser) -> None:
    """Add --people and what goes with it."""
    command.add_argument("--people", metavar="N", help=say("cli.help.people"))
    add_set(command)


def add_set(command: argparse._ActionsContainer) -> None:
    """Add what a set of reports is described by beside the number of people."""
    command.add_argument("--false-reports", metavar="SHARE", help=say("cli.help.false_reports"))
    command.add_argument("--delta", metavar="D", help=say("cli.help.delta"))
    command.add_argument("--smallest-cell", metavar="N", help=say("cli.help.smallest_cell"))


def count_of_people(text: str, option: str = "people") -> int:
    """Raises UsageError for what is no count."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS and int(text)):
        raise UsageError.say("cli.people", option=option, people=visible(text[:40]))
    return int(text)


def refuse_without_people(arguments: argparse.Namespace) -> None:
    """Raises UsageError where the set is described, and nobody says how large it is."""
    for name in OWN:
        if getattr(arguments, name) is not None:
            raise UsageError.say("cli.needs_people", option=name.replace("_", "-"))


def stated(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `towards_set` that were given. Raises UsageError."""
    given = {name: getattr(arguments, name) for name in OWN if getattr(arguments, name) is not None}
    if "smallest_cell" in given:
        given["smallest_cell"] = count_of_people(given["smallest_cell"], "smallest-cell")
    return given


def set_in_words(
    study: Study, people: int, arguments: argparse.Namespace
) -> tuple[list[str], dict[str, Any] | None]:
    """What is said of the set, and the same for a program, None where no bound is known.

    Raises InputError for arguments that are out of range.
    """
    from ldp_client.shuffling.mechanisms import law_of_report
    from ldp_client.shuffling.reports import towards_set
    from ldp_client.shuffling.telling import lines_of

    given = stated(arguments)
    try:
        law_of_report(study)
    except InputError as error:
        return [str(error)], None
    found = towards_set(study, people, **given)
    return lines_of(study, found), asdict(found)
