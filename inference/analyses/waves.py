"""Waves: reports on several versions of a study, or on several studies, in one analysis."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from inference.analyses.analysing import analyse_table
from inference.analyses.channel import Channel, stacked
from inference.analyses.formula import known_column
from inference.analyses.private_numbers import NumberChannel
from inference.analyses.reports import columns_in, table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.analyses.table import POOLED, WAVE, Private, Table
from inference.models.plain_means import PlainMean, pooled
from ldp_client.documents.errors import InputError, UsageError
from schemas import Report, Study
from summaries import Summary, check_study
from summaries.reading import ReadReports, Reports, evidence_of
from summaries.reducing import CheckedReports, Seen, good_reports

Waves = Mapping[str, tuple[Study, Reports]]


def analyse_waves(waves: Waves, formula: str, **options: Any) -> AnalysisPosterior:
    """Fit a formula over several waves of a study; `wave` is an added public field.

    Args:
        waves: {name: (the study of this wave, its reports, as `fit` takes them)}; the first wave is the
            reference.
        formula: such as "ever ~ wave + region", with question ids and public fields that every wave has.
        options: as for `analyse`.

    Returns:
        The same as `analyse`, with a difference between each two waves.

    Raises:
        ReportError: a report does not belong to its wave's study.
        InputError: choices differ between waves, a report is in two of them, or as for `analyse`.
    """
    population = options.get("population")
    columns = columns_in_waves(waves, formula, population.columns() if population else [])
    return analyse_table(table_of_waves(waves, columns), formula, **options)


def columns_in_waves(waves: Waves, formula: str | None, also: Sequence[str] = ()) -> list[str]:
    """Return a formula's columns (questions and public fields of any wave, `wave`), and `also`."""
    return columns_in([study for study, _ in waves.values()], formula, also, WAVE)


def table_of_waves(waves: Waves, names: Sequence[str]) -> Table:
    """Count the reports of all waves by these questions and public fields, and by wave.

    Raises InputError for fewer than two waves, for a name that a wave lacks, for choices that differ, and for
    a report in two waves.
    """
    if len(waves) < 2:
        raise UsageError("waves are compared with one another: give two or more", code="wave.only_one")
    every = {name: (study, _read(study, reports)) for name, (study, reports) in waves.items()}
    own = [name for name in names if name != WAVE]
    seen: dict[str, Seen] = {}
    documents = frozenset(study.digest for study, _ in every.values())
    tables: dict[str, Table] = {}
    for name, (study, reports) in every.items():
        known = [*(asked.id for asked in study.questions), *(field.id for field in study.public)]
        if WAVE in known:
            raise InputError(
                f"wave {name}: its study already has a field {WAVE}, which would be hidden",
                code="wave.field_name_taken",
            )
        for column in own:
            known_column(column, known, f"wave {name}: ")
        if isinstance(reports, Summary):
            raise InputError(
                f"wave {name}: a summary has no single reports: waves need the reports themselves",
                code="wave.summary_has_no_reports",
            )
        if isinstance(reports, ReadReports):
            reports.read_elsewhere = documents
        once = _Once(study, cast(Iterable[Report], reports), seen.setdefault(study.digest, Seen()))
        tables[name] = table_of_reports(study, once, own)
    table = joined(tables)
    return replace(table, notes=(*table.notes, *_notes([study for study, _ in every.values()], names)))


def _read(study: Study, reports: Reports) -> Any:
    check_study(study)
    return evidence_of(study, reports)


class _Once(CheckedReports):
    """A wave's reports, checked for reports that are also in another wave of the same document."""

    def __init__(self, study: Study, reports: Iterable[Report], seen: Seen) -> None:
        self.digest = study.digest
        self._study, self._reports, self._seen = study, reports, seen

    def __iter__(self) -> Iterator[Report]:
        for report in good_reports(self._study, self._reports):
            if self._seen.holds(report):
                raise InputError(
                    f"report {report.id} is also in another wave: give each report once",
                    code="wave.report_in_two",
                )
            yield report

    def notes(self) -> tuple[str, ...]:
        """Return the notes of the reports themselves, once all were read."""
        return self._reports.notes() if isinstance(self._reports, CheckedReports) else ()


def _notes(studies: Sequence[Study], names: Sequence[str]) -> Iterator[str]:
    """Yield notes on questions that differ between waves, and on waves that may share people."""
    if WAVE not in names:
        yield POOLED
    for name in (question.id for question in studies[0].questions if question.id in names):
        asked = [study.question(name) for study in studies]
        if len({(one.text, one.list_title) for one in asked}) > 1:
            yield f"{name} is worded differently between waves: a difference may be due to the wording"
        if len({one.unit for one in asked}) > 1:
            stated = ", ".join(one.unit or "nothing stated" for one in asked)
            yield f"{name} is measured in different units ({stated}): differences may mean nothing"
        if any(one.repeats for one in asked):
            yield (
                f"{name} may be answered by the same people in several waves, from one kept answer. Waves "
                "are treated as different people: joint results are too certain, and differences are "
                "uncertain enough"
            )


def joined(tables: Mapping[str, Table]) -> Table:
    """Join waves' tables into one, with the first wave as the reference.

    Private columns keep their own wave's channels. Raises InputError if answers, or a column's kind, differ.
    """
    first = next(iter(tables.values()))
    sizes = [len(table.counts) for table in tables.values()]
    waves = pd.Categorical(np.repeat(list(tables), sizes), categories=list(tables))
    public = {str(name): _public(str(name), tables) for name in first.public.columns}
    digests = "\n".join(f"{name}\0{table.digest}" for name, table in tables.items())
    return Table(
        pd.DataFrame({WAVE: waves, **public}),
        {name: _private(name, tables) for name in first.private},
        np.concatenate([table.counts for table in tables.values()]),
        tuple(dict.fromkeys(note for table in tables.values() for note in table.notes)),
        hashlib.sha256(digests.encode()).hexdigest(),
        tuple(f"wave {name}: {line}" for name, table in tables.items() for line in table.noise),
        tuple(
            replace(finding, text=f"wave {name}, {finding.text}")
            for name, table in tables.items()
            for finding in table.doubts
        ),
    )


def _public(name: str, tables: Mapping[str, Table]) -> pd.Series:
    """Return a public field of all waves: numbers, or the union of their choices."""
    parts = [table.public[name] for table in tables.values()]
    levels = [list(part.cat.categories) for part in parts if hasattr(part, "cat")]
    if 0 < len(levels) < len(parts):
        raise InputError(
            f"{name} holds numbers in one wave and choices in another: make them alike",
            code="wave.numbers_and_choices",
        )
    whole = np.concatenate([part.to_numpy(object if levels else np.float64) for part in parts])
    union = list(dict.fromkeys(level for some in levels for level in some))
    return pd.Series(pd.Categorical(whole, categories=union) if levels else whole)


def _private(name: str, tables: Mapping[str, Table]) -> Private:
    """Return a question of all waves, with their channels stacked."""
    parts = {wave: table.private[name] for wave, table in tables.items()}
    (leader, first), *_ = parts.items()
    for wave, one in parts.items():
        alone = sorted(set(one.answers) ^ set(first.answers))
        if alone or one.ordered != first.ordered or (one.ordered and one.answers != first.answers):
            raise InputError(
                f"{name} has other choices, or another order of them, in wave {wave} than in wave {leader} "
                f"({', '.join(alone[:5])}): they cannot be joined",
                code="wave.other_answers",
            )
        if _noise(one) != _noise(first):
            raise InputError(
                f"{name} has other bounds or other noise in wave {wave} than in wave {leader}: such numbers "
                "cannot be joined",
                code="wave.other_noise",
            )
    channel: Channel | NumberChannel
    if first.number is None:
        orders = [[one.answers.index(answer) for answer in first.answers] for one in parts.values()]
        channels = zip(parts.values(), orders, strict=True)
        channel = stacked([one.choices.reordered(order) for one, order in channels])
        distinct = [len(one.choices.shows) for one in parts.values()]
    else:
        numbers = [one.number for one in parts.values() if one.number is not None]
        people = [int(tables[wave].counts[one.codes >= 0].sum()) for wave, one in parts.items()]
        both = [(n, number) for n, number in zip(people, numbers, strict=True) if n]
        start = pooled([(n, PlainMean(number.mean, 0.0, number.sd)) for n, number in both])
        plain = [(n, number.plain) for n, number in both if number.plain is not None]
        reports = np.concatenate([number.reports for number in numbers])
        mean = pooled(plain) if plain else None
        channel = replace(first.number, mean=start.mean, sd=start.sd, reports=reports, plain=mean)
        distinct = [len(number.reports) for number in numbers]
    starts = np.cumsum([0, *distinct])
    codes = [
        np.where(one.codes < 0, -1, one.codes + start)
        for one, start in zip(parts.values(), starts, strict=False)
    ]
    return Private(name, first.answers, np.concatenate(codes), channel, first.ordered)


def _noise(one: Private) -> tuple[str, float, float, float] | None:
    number = one.number
    return None if number is None else (number.noise, number.low, number.high, number.scale)
