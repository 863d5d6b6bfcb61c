"""The command `new`: write a first study, with one question."""

from __future__ import annotations

import json
import re
import sys
from math import sqrt
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize

import click

from ldp_client.documents.study import FORMAT
from ldp_client.explain import factors
from ldpkit.cli.commands import NewPath, command
from ldpkit.cli.output import show
from schemas.disk import write_new

if TYPE_CHECKING:
    from schemas import Question, Study

KINDS = ("yes_no", "choice", "number")
PEOPLE = (500, 2_000, 10_000)
EXAMPLES = ("0.5", "1", "2", "4")
# Half of a 90 % interval, in sds.
HALF = 1.6449
RETENTION_DAYS = 365
MOST_IN_ID = 40


@command("new", 'new --title "Password reuse" --text "Do you use this password anywhere else?"')
@click.option("--title", help="the title that people read")
@click.option("--text", help="the question that people read (default: the title)")
@click.option("--choices", metavar="A,B,…", help="people choose one of these labels, instead of yes or no")
@click.option("--bounds", metavar="LOW,HIGH", help="people answer a number; beyond the bounds it is clipped")
@click.option("--epsilon", metavar="E", help="how much a report may reveal (default 1)")
@click.option("--owner", help="who asks, as people read it")
@click.option("--contact", help="the owner's e-mail address or https:// page")
@click.option("--out", type=NewPath(), default="study.json", help="the new file (default study.json)")
def new(out: str, **given: str | None) -> None:
    """Write a study with one question; print how private it is, and its margin of error.

    On a terminal it asks for what is not stated, unless --title is given.
    """
    from ldpkit.stating import study_of

    # 1. Ask on a terminal for what is not stated.
    if given["title"] is None and _is_terminal():
        _complete(given)
    title = given["title"]
    if not title:
        raise click.UsageError("state --title, or run `ldpkit new` on a terminal")
    # 2. Check the study, and write it.
    name = _name_of(title)
    document: dict[str, Any] = {"format": FORMAT, "id": name, "version": 1, "title": title}
    document |= {field: given[field] for field in ("owner", "contact") if given[field]}
    document |= {"retention": {"days": RETENTION_DAYS}, "questions": [_question(name, given)]}
    study = study_of(document)
    write_new(out, json.dumps(document, indent=1, ensure_ascii=False) + "\n", 0o644)
    # 3. Print what it means.
    show([f"{out}: {title}", *_lines(study), f"next: ldpkit check {out}"])


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _complete(given: dict[str, str | None]) -> None:
    """Ask for each value that is missing, on standard error."""

    def ask(name: str, prompt: str, default: str | None = None, kind: Any = str) -> None:
        if given[name] is None:
            given[name] = click.prompt(prompt, default=default, type=kind, err=True)

    ask("title", "Title")
    ask("text", "The question, as people read it", given["title"])
    if given["choices"] is None and given["bounds"] is None:
        kind = click.prompt("What people answer", default=KINDS[0], type=click.Choice(KINDS), err=True)
        if kind == "choice":
            ask("choices", "The choices, with commas between them")
        if kind == "number":
            ask("bounds", "The least and the greatest number, with a comma between them")
    click.echo("How private? After a report, someone who guessed 50:50 can be at most:", err=True)
    for epsilon in EXAMPLES:
        click.echo(f"  {factors(float(epsilon))[1]} sure with epsilon {epsilon}", err=True)
    ask("epsilon", "Epsilon", "1")
    ask("owner", "Who asks (a name that people read; empty: not stated)", "")
    ask("contact", "Their e-mail address or https:// page (empty: not stated)", "")


def _name_of(title: str) -> str:
    """Return an identifier made of a title's letters and digits."""
    plain = "".join([mark for mark in normalize("NFKD", title.lower()) if not combining(mark)])
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return words[:MOST_IN_ID].rstrip("-") or "study"


def _question(name: str, given: dict[str, str | None]) -> dict[str, Any]:
    """Return the question: a choice or a number if one is stated. Raises InputError and UsageError."""
    from ldpkit import ask

    choices, bounds, epsilon = given["choices"], given["bounds"], given["epsilon"] or "1"
    text = given["text"] or given["title"] or ""
    if choices and bounds:
        raise click.UsageError("--choices and --bounds exclude each other")
    if choices:
        labels = [label.strip() for label in choices.split(",")]
        return ask.choice(name, labels, epsilon=epsilon, text=text)
    if bounds:
        low, comma, high = bounds.partition(",")
        if not comma:
            raise click.UsageError("--bounds needs two numbers with a comma between them, such as 0,80")
        return ask.number(name, low.strip(), high.strip(), epsilon=epsilon, text=text)
    return ask.yes_no(name, epsilon=epsilon, text=text)


def _lines(study: Study) -> list[str]:
    """Describe the privacy of the study's question, and the margin of error by the number of people."""
    estimated, margin, unit = _margin(study.questions[0])
    sure = factors(float(study.epsilon))[1]
    return [
        f"after a report, someone who guessed 50:50 can be at most {sure} sure of the answer",
        f"margin of error of {estimated} (90 % interval):",
        *(f"  {people:>6,} people  ± {margin / sqrt(people):.2g}{unit}" for people in PEOPLE),
    ]


def _margin(question: Question) -> tuple[str, float, str]:
    """Return what is estimated, half its interval times the root of the number of people, and the unit."""
    from ldp_client import mechanism_for
    from ldp_client.mechanisms.choice import ChoiceMechanism

    mechanism = mechanism_for(question)
    if isinstance(mechanism, ChoiceMechanism):
        # The unbiased estimate of a share is (supporting reports / n - q) / (p - q).
        p, q = float(mechanism.p), float(mechanism.q)
        share = 1 / mechanism.choices
        support = q + share * (p - q)
        margin = 100 * HALF * sqrt(support * (1 - support)) / (p - q)
        return f"a share near {100 * share:.0f} %", margin, " points"
    # Answers spread evenly between the bounds, and Laplace noise of scale width / epsilon.
    low, high = (float(bound) for bound in question.bounds or ())
    width, epsilon = high - low, float(mechanism.privacy.epsilon)
    return "the mean", HALF * width * sqrt(1 / 12 + 2 / epsilon**2), ""
