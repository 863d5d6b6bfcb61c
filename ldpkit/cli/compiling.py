"""The command that writes a study as source code: compile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldpkit.cli.commands import command, study_argument
from ldpkit.cli.output import show
from schemas.disk import write_new

if TYPE_CHECKING:
    from schemas import Study


@command("compile", "compile study.json --to c --collector https://study.example.org --out app/study")
@study_argument
@click.option(
    "--to", "language", type=click.Choice(["c", "kotlin", "swift"]), required=True, help="the app's language"
)
@click.option("--collector", metavar="URL", required=True, help="the collector that the app sends reports to")
@click.option(
    "--out", metavar="DIR", required=True, help="a folder: gets the source files, which must be new"
)
def compile_(study: Study, language: str, collector: str, out: str) -> None:
    """Write a study's integers and words as source code for an app."""
    from ldpkit.compiling import compile_study

    files = compile_study(study, collector, language)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_new(folder / name, text, 0o644)
    show([str(folder / name) for name in files])
