"""The command derive, between two rounds of a secure sum or of data holders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED
from ldpkit.cli.commands import command, out_option, study_argument
from ldpkit.cli.output import show
from schemas.disk import replacing

if TYPE_CHECKING:
    from schemas import Study


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
    with replacing(out, is_new=True) as file:
        file.write(second.to_json() + "\n")
    # 2. Tell what it costs, and what speaks against the first.
    lines = [line for each in projected for line in in_words(each)]
    lines.append(f"second study in {out}: look at its bounds, and set its days")
    if second.channel is not None and second.channel.tickets is not None:
        lines.append(f"put its own keys into channel.tickets.keys: `ldpkit tickets key {new_id}` makes them")
    doubts = doubts_of(study, Path(results))
    show([*lines, *(f"it rests on {doubt}" for doubt in doubts)])
    return EXIT_NOT_TRUSTED if doubts else 0
