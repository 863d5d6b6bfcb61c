"""Commands that make something of a study: check, sign, keygen, dossier, compile and derive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldpkit.cli.commands import COUNT, command, json_option, out_option, study_argument
from ldpkit.cli.output import show, warn
from schemas.disk import STREAM, read_bytes, refuse_existing, write_new

if TYPE_CHECKING:
    from schemas import Study


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
    from ldp_client.device.outbox import MOST_BYTES
    from ldp_client.device.shares import body_size
    from ldp_client.explain import facts_of
    from schemas.warnings import require_keys, study_in_words

    lines, warnings = study_in_words(study, people)
    facts = facts_of(study)
    if people is not None:
        more, facts["shuffled_privacy"] = _among_all(study, people)
        lines += more
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


def _among_all(study: Study, people: int) -> tuple[list[str], Any]:
    """Return the bound for a report among all reports in words, and as a document: None if none is known."""
    from dataclasses import asdict

    from schemas.shuffling.laws import law_of_report
    from schemas.shuffling.reports import lines_of, shuffled_privacy

    try:
        law_of_report(study)
    except InputError as error:
        return [str(error)], None
    privacy = shuffled_privacy(study, people)
    return lines_of(study, privacy), asdict(privacy)


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
