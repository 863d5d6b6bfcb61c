"""What an analysis reads, as its command names it: a study's reports, a survey's table, waves of either."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.analyses.joining import digest_of
from inference.analyses.paper import columns_of_arms, table_of_arms
from inference.analyses.reports import columns_in, table_of_reports
from inference.analyses.survey import REFUSE, load_design, load_survey, load_waves
from inference.analyses.table import Table
from inference.analyses.waves import columns_in_waves, table_of_waves
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import load_study
from schemas import Study
from summaries.reading import load_evidence

TABLES = (".csv", ".parquet", ".pq")


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


def source_of(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    """What the arguments of an analysis name. also: columns beside the formula's. Raises InputError."""
    if arguments.wave is not None:
        named = [_named(one) for one in arguments.wave]
        tables = [files[0].lower().endswith(TABLES) for _, files in named]
        if all(tables):
            return _of_survey_waves(arguments, named, also)
        if any(tables):
            raise InputError("--wave: waves are of tables all, or of studies all")
        return _of_waves(arguments, named, also)
    if arguments.paper is not None:
        return _of_arms(arguments, also)
    return (_of_study if arguments.table is None else _of_survey)(arguments, also)


def _of_study(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    study = load_study(arguments.study)

    def table() -> Table:
        reports: Any = load_evidence(study, arguments.reports)
        named = columns_in(study, arguments.formula) if arguments.formula is not None else []
        return table_of_reports(study, reports, [*named, *also])

    return Source(study.digest, study.title, table)


def _of_arms(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    study = load_study(arguments.study)
    design = load_design(arguments.design) if arguments.design is not None else None

    def table() -> Table:
        reports: Any = load_evidence(study, arguments.reports) if arguments.reports is not None else None
        named = columns_of_arms(study, arguments.formula) if arguments.formula is not None else []
        return table_of_arms(
            study, reports, arguments.paper, [*named, *also], arguments.blanks or REFUSE, design
        )

    words = tuple(design.in_words()) if design else ()
    return Source(study.digest, study.title, table, design.priors if design else None, words)


def _of_waves(
    arguments: argparse.Namespace, named: Sequence[tuple[str, list[str]]], also: Sequence[str]
) -> Source:
    if arguments.design is not None:
        raise InputError("--design is for tables: a study says what its reports mean")
    waves: dict[str, tuple[Study, str]] = {}
    for name, files in named:
        if len(files) != 2:
            raise InputError(
                f"--wave {','.join(files)}: write NAME=STUDY.json,REPORTS, or NAME=TABLE.csv with --design"
            )
        study = load_study(files[0])
        _add(waves, name or str(study.version), (study, files[1]))
    studies = [study for study, _ in waves.values()]

    def table() -> Table:
        both: Mapping[str, Any] = {
            name: (study, load_evidence(study, path)) for name, (study, path) in waves.items()
        }
        named = columns_in_waves(studies, arguments.formula) if arguments.formula is not None else []
        return table_of_waves(both, [*named, *also])

    digest = digest_of({name: study.digest for name, (study, _) in waves.items()})
    return Source(digest, studies[0].title, table)


def _of_survey(arguments: argparse.Namespace, also: Sequence[str]) -> Source:
    blanks = arguments.blanks or REFUSE
    table, design = load_survey(arguments.table, arguments.design, arguments.formula, blanks, also)
    title = str(design.document.get("title", ""))
    return Source(table.digest, title, lambda: table, design.priors, tuple(design.in_words()))


def _of_survey_waves(
    arguments: argparse.Namespace, named: Sequence[tuple[str, list[str]]], also: Sequence[str]
) -> Source:
    if arguments.design is None:
        raise InputError("waves of tables need --design DESIGN.json, which says what private columns mean")
    waves: dict[str, str] = {}
    for name, files in named:
        if len(files) > 1 or not name:
            raise InputError(f"--wave {','.join(files)}: a wave of a table is NAME=TABLE.csv")
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
    if not all(found):
        raise InputError(f"--wave {given!r} must be NAME=STUDY.json,REPORTS, or NAME=TABLE.csv with --design")
    return name.strip(), found


def _add(waves: dict[str, Any], name: str, wave: Any) -> None:
    if name in waves:
        raise InputError(f"two waves are called {name}: give each a name of its own, --wave NAME=…")
    waves[name] = wave
