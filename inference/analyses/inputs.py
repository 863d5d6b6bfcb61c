"""The inputs of an analysis on the command line: a study's reports, a survey's table, or waves of either."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inference.analyses.concatenation import digest_of
from inference.analyses.reports import columns_in, table_of_reports
from inference.analyses.survey import REFUSE, load_survey, load_waves
from inference.analyses.table import Table
from inference.analyses.waves import columns_in_waves, table_of_waves
from ldp_client.documents.errors import UsageError
from schemas import Study
from schemas.study import load_study
from summaries.reading import load_evidence

TABLES = (".csv", ".parquet", ".pq")
HOW = "NAME=STUDY.json,REPORTS, or NAME=TABLE.csv with --design"


@dataclass(frozen=True)
class Source:
    """digest: of the documents. title: for people. priors: as stated. words: a description of the input.

    table: reads and counts the input, by the columns that the analysis names.
    """

    digest: str
    title: str
    table: Callable[[], Table]
    priors: Any = None
    words: tuple[str, ...] = ()


def source_of(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    """Return the source that the arguments name. also: columns besides the formula's. Raises InputError."""
    if arguments.wave is not None:
        named = [_named(one) for one in arguments.wave]
        tables = [files[0].lower().endswith(TABLES) for _, files in named]
        if all(tables):
            return _of_survey_waves(arguments, named, also)
        if any(tables):
            raise UsageError(
                "--wave: give only tables, or only studies", code="wave.tables_and_studies_mixed"
            )
        return _of_waves(arguments, named, also)
    return (_of_study if arguments.table is None else _of_survey)(arguments, also)


def _of_study(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    study = load_study(arguments.study)

    def table() -> Table:
        reports: Any = load_evidence(study, arguments.reports)
        named = columns_in(study, arguments.formula, also)
        return table_of_reports(study, reports, named)

    return Source(study.digest, study.title, table)


def _of_waves(
    arguments: argparse.Namespace, named: Sequence[tuple[str, list[str]]], also: Sequence[str]
) -> Source:
    waves: dict[str, tuple[Study, str]] = {}
    for name, files in named:
        one = _files_of(name, files)
        _add(waves, name or str(one[0].version), one)
    if arguments.missing is not None:
        raise UsageError(
            "--missing is for tables: device reports have no blanks",
            code="wave.missing_for_reports",
        )
    if arguments.design is not None:
        raise UsageError(
            "--design is for tables: a study already defines its reports", code="wave.design_for_studies"
        )

    def table() -> Table:
        read = {name: (study, load_evidence(study, path)) for name, (study, path) in waves.items()}
        return table_of_waves(read, columns_in_waves(read, arguments.formula, also))

    digest = digest_of({name: study.digest for name, (study, _) in waves.items()})
    return Source(digest, next(iter(waves.values()))[0].title, table)


def _files_of(name: str, files: Sequence[str]) -> tuple[Study, str]:
    """Return a wave's study and the path of its reports. Raises UsageError for other files."""
    if len(files) != 2:
        given = f"--wave {name}={','.join(files)}" if name else f"--wave {','.join(files)}"
        raise UsageError(f"{given}: write {HOW}", code="wave.unknown_file_kind")
    study, reports = files
    return load_study(study), reports


def _of_survey(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    blanks = arguments.missing or REFUSE
    table, design = load_survey(arguments.table, arguments.design, arguments.formula, blanks, also)
    title = str(design.document.get("title", ""))
    return Source(table.digest, title, lambda: table, design.priors, tuple(design.in_words()))


def _of_survey_waves(
    arguments: argparse.Namespace, named: Sequence[tuple[str, list[str]]], also: Sequence[str]
) -> Source:
    if arguments.design is None:
        raise UsageError(
            "waves of tables need --design DESIGN.json, which defines the private columns",
            code="wave.tables_need_design",
        )
    waves: dict[str, str] = {}
    for name, files in named:
        if len(files) > 1 or not name:
            raise UsageError(
                f"--wave {','.join(files)}: give a table's wave as NAME=TABLE.csv", code="wave.table_form"
            )
        _add(waves, name, files[0])
    blanks = arguments.missing or REFUSE
    table, design = load_waves(waves, arguments.design, arguments.formula, blanks, also)
    title = str(design.document.get("title", ""))
    return Source(table.digest, title, lambda: table, design.priors, tuple(design.in_words()))


def _named(given: str) -> tuple[str, list[str]]:
    """Return a wave's name, "" for none, and its files."""
    name, equals, files = given.partition("=")
    if not equals:
        name, files = "", given
    found = [one.strip() for one in files.split(",")]
    if not all(found):
        raise UsageError(f"--wave {given!r} must be {HOW}", code="wave.wrong_form")
    return name.strip(), found


def _add(waves: dict[str, Any], name: str, wave: Any) -> None:
    if name in waves:
        raise UsageError(
            f"two waves are called {name}: give each a different name, --wave NAME=…",
            code="wave.duplicate_name",
        )
    waves[name] = wave
