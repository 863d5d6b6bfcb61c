"""Commands that write a study, or make something of one, from `new` to `derive`."""

import json
import os
import re
import sys
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

import click

from ldp_client import mechanism_for
from ldp_client.device.outbox import MOST_BYTES
from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldp_client.documents.study import FORMAT
from ldp_client.explain import factors, facts_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldpkit import ask
from ldpkit.cli.commands import COUNT, NewPath, command, json_option, out_option, study_argument
from ldpkit.cli.output import show, warn
from ldpkit.stating import study_of
from schemas import Question, Study
from schemas.disk import STREAM, read_bytes, refuse_existing, write_new
from schemas.shuffling.laws import law_of_report
from schemas.shuffling.reports import lines_of, shuffled_privacy
from schemas.warnings import require_keys, study_in_words

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
    # 1. Ask on a terminal for what is not stated.
    if given["title"] is None and _is_terminal():
        _complete(given)
    title = given["title"]
    if not title:
        raise click.UsageError("state --title, or run `ldpkit new` on a terminal")
    # 2. Check the study, and write it.
    plain = "".join([mark for mark in normalize("NFKD", title.lower()) if not combining(mark)])
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:MOST_IN_ID].rstrip("-") or "study"
    document: dict[str, Any] = {"format": FORMAT, "id": name, "version": 1, "title": title}
    document |= {field: given[field] for field in ("owner", "contact") if given[field]}
    document |= {"retention": {"days": RETENTION_DAYS}, "questions": [_question(name, given)]}
    study = study_of(document)
    write_new(out, json.dumps(document, indent=1, ensure_ascii=False) + "\n", 0o644)
    # 3. Print what it means.
    estimated, margin, unit = _margin(study.questions[0])
    sure = factors(float(study.epsilon))[1]
    show(
        [
            f"{out}: {title}",
            f"after a report, someone who guessed 50:50 can be at most {sure} sure of the answer",
            f"margin of error of {estimated} (90 % interval):",
            *(f"  {people:>6,} people  ± {margin / sqrt(people):.2g}{unit}" for people in PEOPLE),
            f"next: ldpkit check {out}",
        ]
    )


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _complete(given: dict[str, str | None]) -> None:
    """Ask for each value that is missing, on standard error."""

    def prompt_for(name: str, prompt: str, default: str | None = None, kind: Any = str) -> None:
        if given[name] is None:
            given[name] = click.prompt(prompt, default=default, type=kind, err=True)

    prompt_for("title", "Title")
    prompt_for("text", "The question, as people read it", given["title"])
    if given["choices"] is None and given["bounds"] is None:
        kind = click.prompt("What people answer", default=KINDS[0], type=click.Choice(KINDS), err=True)
        if kind == "choice":
            prompt_for("choices", "The choices, with commas between them")
        if kind == "number":
            prompt_for("bounds", "The least and the greatest number, with a comma between them")
    click.echo("How private? After a report, someone who guessed 50:50 can be at most:", err=True)
    for epsilon in EXAMPLES:
        click.echo(f"  {factors(float(epsilon))[1]} sure with epsilon {epsilon}", err=True)
    prompt_for("epsilon", "Epsilon", "1")
    prompt_for("owner", "Who asks (a name that people read; empty: not stated)", "")
    prompt_for("contact", "Their e-mail address or https:// page (empty: not stated)", "")


def _question(name: str, given: dict[str, str | None]) -> dict[str, Any]:
    """Return the question: a choice or a number if one is stated. Raises InputError and UsageError."""
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


def _margin(question: Question) -> tuple[str, float, str]:
    """Return what is estimated, half its interval times the root of the number of people, and the unit."""
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


@command("check", "check study.json")
@study_argument
@click.option(
    "--n",
    "people",
    type=COUNT,
    metavar="N",
    help="how many people take part: also print small cells of public fields, and the epsilon of a report "
    "among all reports",
)
@json_option
def check(study: Study, people: int | None) -> None:
    """Validate a study; print its true epsilon, its noise, and what that means."""
    # Loaded here, because it loads the network.
    from ldp_client.device.shares import body_size

    lines, warnings = study_in_words(study, people)
    facts = facts_of(study)
    if people is not None:
        # The bound for a report among all reports, None if none is known.
        facts["shuffled_privacy"] = None
        try:
            law_of_report(study)
        except InputError as error:
            lines.append(str(error))
        else:
            privacy = shuffled_privacy(study, people)
            lines += lines_of(study, privacy)
            facts["shuffled_privacy"] = asdict(privacy)
    show(lines, {**facts, "warnings": warnings})
    for line in warnings:
        warn(line)
    size = body_size(study)
    if size > MOST_BYTES:
        raise InputError(
            f"each report of this study would have {size} bytes, but a device sends at most {MOST_BYTES}. "
            "Ask less, or use mechanisms with smaller reports",
            code="check.report_too_large",
        )
    require_keys(study)


@command("keygen", "keygen --out key.pem")
@out_option("write the private key to this file; KEY.pub.pem is public", "KEY.pem")
def keygen(out: str) -> None:
    """Make a key pair for signing studies."""
    from ldp_client.core.public_keys import PublicKey
    from schemas.signing import new_key

    if out == STREAM:
        raise UsageError("--out -: keygen writes two files: name one", code="keygen.to_standard_output")
    private, public = new_key()
    root, extension = os.path.splitext(out)
    public_path = f"{root}.pub{extension}"
    refuse_existing(public_path)
    write_new(out, private, 0o600)
    write_new(public_path, public, 0o644)
    show([f"keep {out} secret; devices pin {public_path}, key {PublicKey.from_pem(public).id}"])


@command("sign", "sign study.json --signing-key key.pem --out signed.json")
@study_argument
@click.option("--signing-key", required=True, metavar="KEY.pem", help="the private key of `ldpkit keygen`")
@out_option("the signed study, for devices and `ldpkit publish`", "SIGNED.json")
def sign(study: Study, signing_key: str, out: str) -> None:
    """Sign a study, for devices that trust the key."""
    from schemas.signing import sign_study

    signed = sign_study(study, read_bytes(signing_key))
    write_new(out, signed.to_json() + "\n")
    show([f"signed {study.id}, version {study.version}, by key {signed.signatures[0].key}"])


@command("dossier", "dossier study.json --out dossier.md")
@study_argument
@out_option("a new file, in Markdown")
def dossier(study: Study, out: str) -> None:
    """Write a dossier for an ethics board and a data protection impact assessment."""
    from ldpkit.dossier import dossier_of

    write_new(out, dossier_of(study))
    show([f"{out}: fill in what is marked TO WRITE"])


@command("compile", "compile study.json --to c --collector https://study.example.org --out app/study")
@study_argument
@click.option(
    "--to", "language", type=click.Choice(["c", "kotlin", "swift"]), required=True, help="the app's language"
)
@click.option("--collector", metavar="URL", required=True, help="the collector that the app sends reports to")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    required=True,
    help="a folder: gets the source files, which must be new",
)
def compile_(study: Study, language: str, collector: str, out: str) -> None:
    """Write a study's integers and words as source code for an app."""
    from ldpkit.compiling import compile_study

    files = compile_study(study, collector, language)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_new(folder / name, text)
    show([str(folder / name) for name in files])


@command("derive", "derive first.json first-posterior --out second.json")
@study_argument
@click.argument("results", metavar="POSTERIOR_DIR_OR_REPORTS")
@out_option("the second study, a new file", "STUDY2.json")
def derive(study: Study, results: str, out: str) -> int:
    """Write the second study, from the results of the first.

    STUDY.json is the first study, with its share of the budget. Its results are the output of `ldpkit fit` on
    its marginals, or its data holders' reports.
    """
    from inference.projection.second_study import doubts_of, in_words, second_study

    # 1. Search bounds and norm, and write the study.
    new_id = f"{study.id}-2"
    second, projected = second_study(study, Path(results), new_id, seed=0)
    write_new(out, second.to_json() + "\n")
    # 2. Tell what it costs, and what speaks against the first.
    lines = [line for each in projected for line in in_words(each)]
    lines.append(f"second study in {out}: look at its bounds, and set its days")
    if second.channel is not None and second.channel.tickets is not None:
        lines.append(f"put its own keys into channel.tickets.keys: `ldpkit tickets key {new_id}` makes them")
    doubts = doubts_of(study, Path(results))
    show([*lines, *(f"it rests on {doubt}" for doubt in doubts)])
    return EXIT_NOT_TRUSTED if doubts else 0
