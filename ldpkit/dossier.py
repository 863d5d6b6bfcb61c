"""A dossier for an ethics board and a data protection impact assessment, written from a study.

Each statement follows from the study document or from the code; facts that only the owner can know are blanks
to fill in. All words are in the template dossier.txt.j2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from math import exp
from pathlib import Path
from typing import NamedTuple

from inference.results.rendering import environment, markdown
from inference.results.saving import new_folder
from ldp_client import mechanisms_of
from ldp_client.explain import (
    answers_in_words,
    cells_in_words,
    channel_lines,
    factors,
    in_words,
    kept_in_words,
    odds_of,
    public_lines,
    report_size,
    who_asks,
)
from ldp_client.words.text import rounded_up, visible
from schemas import Study
from schemas.warnings import notes_of, warnings_of

FILES = ("dossier.md", "dossier.html")
# How sure an observer may have been before, besides the even guess.
BEFORE = (0.01, 0.1, 0.5)


# Stands for a bar in a value; `block` shows this character itself as its escape.
BAR = "\ue000"
# Stands before a value that starts as a heading, a list or a blank does.
PLAIN = "\ue001"


def block(text: object) -> str:
    """Return a value for one cell of a table whose cells are separated by bars, or for a line of its own."""
    line = " ".join(visible(str(text)).split()).replace("|", BAR)
    return PLAIN + line if line.startswith(("#", "-", "?")) else line


def own_text(line: str) -> str:
    """Return a line without the marks of `block`."""
    return line.replace(BAR, "|").replace(PLAIN, "")


MARKDOWN, PAGES = environment(markdown, "ldpkit"), environment(None, "ldpkit")
BLOCKS = environment(block, "ldpkit")


class Part(NamedTuple):
    """A paragraph, a list, a table (its head and rows), or a blank: what the owner must write."""

    kind: str
    text: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Section(NamedTuple):
    """title, and the parts below it."""

    title: str
    parts: list[Part]


def save_dossier(study: Study, folder: Path) -> None:
    """Write dossier.md and dossier.html, to a new folder: blanks may be filled in. Raises InputError."""
    shown = {"study": study, "sections": sections_of(study), "version": version("ldpkit")}
    with new_folder(folder) as made:
        for name, templates in zip(FILES, (MARKDOWN, PAGES), strict=True):
            text = templates.get_template(f"{name}.j2").render(shown)
            (made / name).write_text(text, encoding="utf-8")


def sections_of(study: Study) -> list[Section]:
    """Return the dossier, section by section."""
    epsilon, delta = float(study.epsilon), float(study.delta)

    def own_words(language: str) -> list[str]:
        shown = study.shown_in(language)
        return list(filter(None, (shown.title, shown.purpose, *(one.full_text for one in shown.questions))))

    text = BLOCKS.get_template("dossier.txt.j2").render(
        study=study,
        mechanisms=mechanisms_of(study),
        channel=channel_lines(study),
        once=_once(study),
        answers=answers_in_words,
        size=report_size(study) if study.protocol is None else 0,
        noise=in_words,
        public=public_lines(study),
        before=BEFORE,
        privacy=list(_privacy(study)),
        odds=odds_of(study, epsilon, delta),
        odds_of=lambda one: odds_of(study, float(one.epsilon), float(one.delta)),
        warnings=[*warnings_of(study), *notes_of(study)],
        cells=cells_in_words(study, None) if study.public else "",
        delta=rounded_up(delta, 2) if delta else "",
        kept=kept_in_words(study),
        together=_together(study),
        own_words=own_words,
        asks=who_asks(study),
    )
    return _parsed(text)


def _parsed(text: str) -> list[Section]:
    """Read the sections of blocks of lines."""
    sections: list[Section] = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        if lines and lines[0].startswith("# "):
            sections.append(Section(own_text(lines[0][2:]), []))
        elif lines:
            sections[-1].parts.append(_part(lines))
    return sections


def _part(lines: list[str]) -> Part:
    """Return the part that a block of lines states."""
    mark, text = lines[0][:2], own_text(" ".join(lines))
    if mark == "- ":
        return Part("list", rows=tuple((own_text(line[2:]),) for line in lines))
    if mark == "| ":
        head, *rows = (tuple(map(own_text, line[2:].split(" | "))) for line in lines)
        return Part("table", head=head, rows=tuple(rows))
    return Part("blank", text[2:]) if mark == "? " else Part("text", text)


def _once(study: Study) -> str:
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


def _together(study: Study) -> str:
    """Return the name that tables give to all answers of a device."""
    return "all that a device answers" if study.sample_one_question else "all questions together"


def _privacy(study: Study) -> Iterator[tuple[str, ...]]:
    """Yield a row of ε, δ and their consequences for each question, and for all of several."""
    for name, mechanism in mechanisms_of(study).items():
        yield _row(name, float(mechanism.privacy.epsilon), float(mechanism.privacy.delta))
    if len(study.questions) > 1:
        yield _row(_together(study), float(study.epsilon), float(study.delta))


def _row(name: str, epsilon: float, delta: float) -> tuple[str, ...]:
    shown = (rounded_up(epsilon, 6), rounded_up(delta, 2) if delta else "0", factors(epsilon)[0])
    return (name, *shown, *(_sure(before, epsilon) for before in BEFORE))


def _sure(before: float, epsilon: float) -> str:
    """Return how sure an observer can be of one answer out of two at most, rounded up."""
    return f"{rounded_up(min(100.0, 100 * before / (before + (1 - before) * exp(-epsilon))), 3)} %"
