"""The command derive, between two rounds of a secure sum or of data holders."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError
from ldpkit.cli.commands import command, out_option
from ldpkit.cli.fitting import SEED
from schemas.disk import STREAM, read_bytes, refuse_replacing, refuse_replacing_other, replacing


@command("derive", "derive first.json first-posterior --out second.json")
@click.argument("study", metavar="STUDY.json")
@click.argument("results", metavar="POSTERIOR_DIR_OR_REPORTS")
@out_option("the second study, a new file", "STUDY2.json")
@click.option("--tickets", metavar="FILE", help="output of `ldpkit tickets key` for the second study")
@SEED
def derive(study: str, results: str, out: str, tickets: str | None, seed: int) -> int:
    """Write the second study, from the results of the first.

    STUDY.json is the first study, with its share of the budget. Its results are the output of `ldpkit fit` on
    its marginals, or its data holders' reports.
    """
    from ldp_client.documents.study import FORMAT
    from schemas.study import load_study

    first = load_study(study)
    from inference.limits import check_seed
    from inference.projection.rounds import doubts_of
    from inference.projection.second_study import in_words, second_study
    from inference.projection.ticket_keys import second_keys, with_tokens
    from inference.results.saving import RESULT

    # 1. Refuse to replace an input, or another file.
    read = [study, results, str(Path(results, RESULT)), *([tickets] if tickets else [])]
    refuse_replacing(out, read)
    refuse_replacing_other(out, FORMAT)
    check_seed(seed)
    new_id = f"{first.id}-2"
    keys = second_keys(first, new_id, tickets)
    # 2. Search bounds and norm, and write the study.
    second, projected = second_study(first, Path(results), new_id, seed)
    is_new = _write(out, with_tokens(second, keys).to_json() + "\n", read)
    # 3. Tell what it costs, and what speaks against the first.
    print("\n".join(line for each in projected for line in in_words(each)))
    as_it_was = "" if is_new else ", as it was: nothing is changed"
    print(f"second study in {out}{as_it_was}: look at its bounds, and set its days")
    doubts = doubts_of(first, Path(results))
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
