"""What an analysis reads, as its command names it: a study's reports, a survey's table, waves of either."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inference.analyses.joining import digest_of
from inference.analyses.naming import Name
from inference.analyses.paper import columns_of_arms, table_of_arms
from inference.analyses.reports import columns_in, table_of_reports
from inference.analyses.survey import REFUSE, load_design, load_survey, load_waves
from inference.analyses.table import Table
from inference.analyses.waves import Wave, columns_in_waves, table_of_waves
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import load_study
from schemas import Study
from summaries.csv_rows import is_csv
from summaries.reading import load_evidence

TABLES = (".csv", ".parquet", ".pq")
HOW = "NAME=STUDY.json,REPORTS, or NAME=STUDY.json,REPORTS,ENTRY.csv, or NAME=TABLE.csv with --design"


@dataclass(frozen=True)
class Source:
    """digest: of the documents. title: for people. priors: that they state. words: of what was read.

    table: reads and counts it, by the columns that the analysis names.
    """

    digest: str
    title: str
    table: Callable[[], Table]
    priors: Any = None
    words: tuple[str, ...] = ()


def source_of(arguments: argparse.Namespace, also: Sequence[Name]) -> Source:
    """What the arguments of an analysis name. also: columns beside the formula's. Raises InputError."""
    if arguments.wave is not None:
        named = [_named(one) for one in arguments.wave]
        tables = [files[0].lower().endswith(TABLES) for _, files in named]
        if all(tables):
            return _of_survey_waves(arguments, named, also)
        if any(tables):
            raise UsageError(
                "--wave: waves are of tables all, or of studies all", code="wave.tables_and_studies_mixed"
            )
        return _of_waves(arguments, named, also)
    if arguments.paper is not None:
        return _of_arms(arguments, also)
    return (_of_study if arguments.table is None else _of_survey)(arguments, also)


def _of_study(arguments: argparse.Namespace, also: Sequence[Name]) -> Source:
    study = load_study(arguments.study)

    def table() -> Table:
        reports: Any = load_evidence(study, arguments.reports)
        named = columns_in(study, arguments.formula, also)
        return table_of_reports(study, reports, named)

    return Source(study.digest, study.title, table)


def _of_arms(arguments: argparse.Namespace, also: Sequence[Name]) -> Source:
    study = load_study(arguments.study)
    design = load_design(arguments.design) if arguments.design is not None else None

    def table() -> Table:
        reports: Any = load_evidence(study, arguments.reports) if arguments.reports is not None else None
        named = columns_of_arms(study, arguments.formula, also)
        return table_of_arms(study, reports, arguments.paper, named, arguments.blanks or REFUSE, design)

    words = tuple(design.in_words()) if design else ()
    return Source(study.digest, study.title, table, design.priors if design else None, words)


def _of_waves(
    arguments: argparse.Namespace, named: Sequence[tuple[str, list[str]]], also: Sequence[Name]
) -> Source:
    waves: dict[str, _Files] = {}
    for name, files in named:
        one = _files_of(name, files)
        _add(waves, name or str(one.study.version), one)
    if arguments.blanks is not None and not any(one.paper for one in waves.values()):
        raise UsageError(
            "--blanks is for tables and records on paper: reports of devices have none",
            code="wave.blanks_for_reports",
        )
    design = load_design(arguments.design) if arguments.design is not None else None

    def table() -> Table:
        read = {
            name: Wave(one.study, load_evidence(one.study, one.reports) if one.reports else None, one.paper)
            for name, one in waves.items()
        }
        named = columns_in_waves(read, arguments.formula, also)
        return table_of_waves(read, named, arguments.blanks or REFUSE, design)

    digest = digest_of({name: one.study.digest for name, one in waves.items()})
    title = next(iter(waves.values())).study.title
    words = tuple(design.in_words()) if design else ()
    return Source(digest, title, table, design.priors if design else None, words)


class _Files(NamedTuple):
    """Of a wave. reports: "" without any. paper: None without any."""

    study: Study
    reports: str
    paper: str | None


def _files_of(name: str, files: Sequence[str]) -> _Files:
    """Raises InputError where they are too few, too many, or in another order."""
    given = f"--wave {name}={','.join(files)}" if name else f"--wave {','.join(files)}"
    if len(files) not in (2, 3):
        raise UsageError(f"{given}: write {HOW}", code="wave.unknown_file_kind")
    study, reports, paper = files[0], files[1], files[2] if len(files) == 3 else None
    if _is_sheet(reports) or (paper is not None and not paper.lower().endswith(".csv")):
        raise UsageError(
            f"{given}: reports of devices come second, and records on paper, a table .csv, third: write "
            "NAME=STUDY.json,REPORTS,ENTRY.csv, or NAME=STUDY.json,,ENTRY.csv for records on paper alone",
            code="wave.wrong_file_order",
        )
    if not reports and paper is None:
        raise InputError(
            f"{given}: it has neither reports nor records on paper; write {HOW}", code="wave.no_reports"
        )
    return _Files(load_study(study), reports, paper)


def _is_sheet(path: str) -> bool:
    """Whether a file is a table, and no CSV of reports."""
    return path.lower().endswith(".csv") and not (os.path.isfile(path) and is_csv(path))


def _of_survey(arguments: argparse.Namespace, also: Sequence[Name]) -> Source:
    blanks = arguments.blanks or REFUSE
    table, design = load_survey(arguments.table, arguments.design, arguments.formula, blanks, also)
    title = str(design.document.get("title", ""))
    return Source(table.digest, title, lambda: table, design.priors, tuple(design.in_words()))


def _of_survey_waves(
    arguments: argparse.Namespace, named: Sequence[tuple[str, list[str]]], also: Sequence[Name]
) -> Source:
    if arguments.design is None:
        raise UsageError(
            "waves of tables need --design DESIGN.json, which says what private columns mean",
            code="wave.tables_need_design",
        )
    waves: dict[str, str] = {}
    for name, files in named:
        if len(files) > 1 or not name:
            raise UsageError(
                f"--wave {','.join(files)}: a wave of a table is NAME=TABLE.csv", code="wave.table_form"
            )
        _add(waves, name, files[0])
    blanks = arguments.blanks or REFUSE
    table, design = load_waves(waves, arguments.design, arguments.formula, blanks, also)
    title = str(design.document.get("title", ""))
    return Source(table.digest, title, lambda: table, design.priors, tuple(design.in_words()))


def _named(given: str) -> tuple[str, list[str]]:
    """A wave's name, "" for none, and its files."""
    name, equals, files = given.partition("=")
    if not equals:
        name, files = "", given
    found = [one.strip() for one in files.split(",")]
    # Without reports of devices, the second of three is blank.
    if not all(one for place, one in enumerate(found) if (place, len(found)) != (1, 3)):
        raise UsageError(f"--wave {given!r} must be {HOW}", code="wave.wrong_form")
    return name.strip(), found


def _add(waves: dict[str, Any], name: str, wave: Any) -> None:
    if name in waves:
        raise UsageError(
            f"two waves are called {name}: give each a name of its own, --wave NAME=…",
            code="wave.duplicate_name",
        )
    waves[name] = wave
