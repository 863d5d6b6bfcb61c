"""The subcommand between two rounds, of a secure sum or of data holders: derive."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldp_client.documents.study import FORMAT
from ldp_client.files.disk import STREAM, read_bytes, refuse_replacing, refuse_replacing_other, replacing
from schemas.study import load_study

if TYPE_CHECKING:
    from inference.projection.second_study import Projected


def add_derive(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register derive."""
    text = "write the second study, from the results of the first"
    project = add_command(subparsers, "derive", text, "derive first.json first-posterior --out second.json")
    project.add_argument("study", metavar="STUDY.json", help="the first study, with its share of the budget")
    project.add_argument(
        "found",
        metavar="POSTERIOR_DIR_OR_REPORTS",
        help="output of ldpkit fit on its marginals, or its data holders' reports",
    )
    project.add_argument("--out", required=True, metavar="STUDY2.json")
    project.add_argument("--id", metavar="ID", help="id of the second study (default: the first's and -2)")
    text = "output of `ldpkit issuer key` for the second study, if the first takes tokens"
    project.add_argument("--tickets", metavar="FILE", help=text)
    project.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the auxiliary data")
    project.set_defaults(run=run_project)


def run_project(arguments: argparse.Namespace) -> int:
    """ldpkit derive STUDY.json POSTERIOR_DIR_OR_REPORTS --out STUDY2.json [--id ID] [--tickets FILE]"""
    study = load_study(arguments.study)
    from inference.results.saving import RESULT

    read = [arguments.study, arguments.found, str(Path(arguments.found, RESULT))]
    read += [arguments.tickets] if arguments.tickets else []
    refuse_replacing(arguments.out, read)
    refuse_replacing_other(arguments.out, FORMAT)
    from inference.limits import check_seed
    from inference.projection.rounds import doubts_of
    from inference.projection.second_study import second_study
    from inference.projection.ticket_keys import second_tokens, with_tokens

    check_seed(arguments.seed)
    new_id = arguments.id or f"{study.id}-2"
    if new_id == study.id:
        raise UsageError(
            f"--id {new_id}: is the first study's: the second needs another id", code="derive.id_taken"
        )
    tokens = second_tokens(study, new_id, arguments.tickets)
    second, projected = second_study(study, Path(arguments.found), new_id, arguments.seed)
    is_new = _write(arguments.out, with_tokens(second, tokens).to_json() + "\n", read)
    print("\n".join(line for one in projected for line in projection_lines(one)))
    is_there = "" if is_new else ", as it was: nothing is changed"
    print(f"second study in {arguments.out}{is_there}: look at its bounds, and set its days")
    doubts = doubts_of(study, Path(arguments.found))
    for doubt in doubts:
        print(f"it rests on a fit that is NOT OK: {doubt}")
    return EXIT_NOT_TRUSTED if doubts else 0


def _write(path: str, text: str, read: list[str]) -> bool:
    """Write the study; return False if the file already has it. Raises InputError for another document.

    The other document may be another study, or this study with bounds and days set by its author.
    """
    if path != STREAM and os.path.isfile(path) and os.path.getsize(path):
        if read_bytes(path) == text.encode():
            return False
        raise InputError(
            f"{path}: has another study document: choose another file, or remove it first",
            code="derive.other_study_in_file",
        )
    with replacing(path, read=read) as file:
        file.write(text)
    return True


def projection_lines(found: Projected) -> list[str]:
    """Return the results of the search, and the cost of the projection."""
    document, (feature, response, _) = found.document, found.thresholds.projection
    spent = f"epsilon {document['mechanism']['epsilon']}, delta {document['mechanism']['delta']}"
    bounds = [
        f"  {field['id']:28} {field['bounds'][0]} to {field['bounds'][1]}"
        for field in (*document["features"], document["response"])
    ]
    return [
        f"{document['id']}: {spent} are left; features within {feature:g} sd of their mean, the response "
        f"within {response:g}, norm {document['norm']}",
        *bounds,
        f"  on auxiliary data noise and projection cost {found.thresholds.error:.2%} of the response's "
        f"variance; one round with the assumed bounds would cost {found.assumed_error:.2%}",
        f"  projection alone turns a slope of 1 into {found.thresholds.slopes:.3f} there; the fit does not "
        "undo that",
    ]
