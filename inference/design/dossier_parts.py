"""The parts of a dossier for an ethics board, and statements that several of its sections share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ldp_client.words.channel import channel_lines
from schemas import Study


class Part(NamedTuple):
    """A paragraph, a list, a table (its head and rows), or a blank: what the owner must write."""

    kind: str
    text: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Section(NamedTuple):
    """title, and the parts below it."""

    title: str
    parts: tuple[Part, ...]


def says(text: str) -> Part:
    """Return a paragraph that the study or the code proves."""
    return Part("text", text)


def blank(text: str) -> Part:
    """Return a blank: text that the owner must write."""
    return Part("blank", text)


def listed(lines: Sequence[str]) -> Part:
    """Statements, one by one."""
    return Part("list", rows=tuple((line,) for line in lines))


def once(study: Study) -> str:
    """Return how often a device answers."""
    if study.respondent == "holder":
        return "Each holder answers once, with a table of many records; a person below is one record of it."
    again = [one.id for one in study.questions if one.repeats]
    if not again:
        return "Each device answers once."
    others = len(again) < len(study.questions)
    return (
        f"Each device answers {', '.join(again)} (memoized) once in each version, and repeats its first "
        f"noisy answer with fresh noise{'; the other questions once in all versions' if others else ''}."
    )


def together(study: Study) -> str:
    """Return the name that tables give to all answers of a device."""
    return "all that a device answers" if study.sample_one_question else "all questions together"


def how_it_leaves(study: Study) -> Iterator[Part]:
    """Yield who else takes part in sending a report, if the study states a channel."""
    head, *lines = channel_lines(study) or [""]
    if lines:
        yield says(head)
        yield listed([line.strip() for line in lines])
