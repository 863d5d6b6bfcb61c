"""Commands for a study before it is published: check, sign, keygen and dossier."""

from __future__ import annotations

import os
import sys
from errno import EEXIST
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import InputError
from ldp_client.words.text import say
from ldpkit.cli.commands import COUNT, command, json_option, out_option
from ldpkit.cli.output import show, warn
from schemas.disk import (
    STREAM,
    read_bytes,
    refuse_replacing,
    refuse_replacing_other,
    replacing,
    write_new,
)

if TYPE_CHECKING:
    from schemas import Study


@command("check", "check study.json")
@click.argument("study", metavar="STUDY.json")
@click.option(
    "--n",
    "people",
    type=COUNT,
    metavar="N",
    help="how many people take part: also print small cells of public fields, and the epsilon of a report "
    "among all reports",
)
@json_option
def check(study: str, people: int | None) -> None:
    """Validate a study; print its true epsilon, its noise, and what that means."""
    from ldp_client.explain import cells_in_words, describe, facts_of
    from schemas.priors import prior_lines
    from schemas.study import load_study
    from schemas.warnings import cuts_in_words, notes_of, require_keys, unstated_in_words, warnings_of

    document = load_study(study)
    # 1. What the study says.
    lines, facts = describe(document), facts_of(document)
    if document.public or people:
        lines.append(cells_in_words(document, people))
    if people is not None:
        more, facts["shuffled_privacy"] = _among_all(document, people)
        lines += more
    for question in document.questions:
        priors = prior_lines(question.model.prior)
        lines += [say("study.prior", question=question.id, prior=line) for line in priors]
    # 2. What may be wrong with it.
    warnings = [*warnings_of(document), *notes_of(document)]
    warnings += [*cuts_in_words(document), *unstated_in_words(document)]
    show(lines, {**facts, "warnings": warnings})
    for line in warnings:
        warn(line)
    _refuse_large(document)
    require_keys(document)


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


def _refuse_large(study: Study) -> None:
    """Raise InputError if every report of a study would be too large for devices to send."""
    from ldp_client.device.outbox import MOST_BYTES
    from ldp_client.device.shares import body_size

    size = body_size(study)
    if size > MOST_BYTES:
        raise InputError(
            f"each report of this study would have {size} bytes, but a device sends at most {MOST_BYTES}. "
            "Ask less, or use mechanisms with smaller reports",
            code="check.report_too_large",
        )


@command("keygen", "keygen --out key.pem")
@out_option("write the private key to this file; KEY.pub.pem is public", "KEY.pem")
def keygen(out: str) -> None:
    """Make a key pair for signing studies."""
    from ldp_client.core.public_keys import PublicKey
    from schemas.signing import new_key

    private, public = new_key()
    root, extension = os.path.splitext(out)
    public_path = f"{root}.pub{extension}"
    if os.path.lexists(public_path):
        # Check before writing the private half, which would lack its public half.
        raise InputError(f"cannot write {public_path}: {os.strerror(EEXIST)}", code="files.cannot_write")
    write_new(out, private, 0o600)
    try:
        write_new(public_path, public, 0o644)
    except InputError:
        # A private half alone would block another attempt under this name.
        os.unlink(out)
        raise
    print(f"keep {out} secret; devices pin {public_path}, key {PublicKey.from_pem(public).id}")


@command("sign", "sign study.json --signing-key key.pem --out signed.json")
@click.argument("study", metavar="STUDY.json")
@click.option("--signing-key", required=True, metavar="KEY.pem", help="the private key of `ldpkit keygen`")
@out_option("the signed study, for devices and `ldpkit publish`", "SIGNED.json")
def sign(study: str, signing_key: str, out: str) -> None:
    """Sign a study, for devices that trust the key."""
    from ldp_client.documents.signed import FORMAT
    from schemas.signing import sign_study
    from schemas.study import load_study

    read = [signing_key, study]
    refuse_replacing(out, read)
    refuse_replacing_other(out, FORMAT)
    signed = sign_study(load_study(study), read_bytes(signing_key))
    with replacing(out, read=read) as file:
        file.write(signed.to_json() + "\n")
    line = f"signed {signed.study.id}, version {signed.study.version}, by key {signed.signatures[0].key}"
    print(line, file=sys.stderr if out == STREAM else sys.stdout)


@command("dossier", "dossier study.json --out dossier")
@click.argument("study", metavar="STUDY.json")
@out_option("a new folder: gets dossier.md and dossier.html", "DIR")
def dossier(study: str, out: str) -> None:
    """Write a dossier for an ethics board and a data protection impact assessment."""
    from ldpkit.dossier import FILES, save_dossier
    from schemas.study import load_study

    folder = Path(out)
    save_dossier(load_study(study), folder)
    line = f"{' and '.join(str(folder / name) for name in FILES)}: fill in what is marked “to write”"
    show([line])
