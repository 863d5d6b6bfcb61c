"""Waves: reports on several versions of a study, or on several studies, in one analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from inference.analyses.analysing import analyse_table
from inference.analyses.concatenation import POOLED, joined
from inference.analyses.formula import known_column
from inference.analyses.matrices import columns_of
from inference.analyses.reports import table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.analyses.table import WAVE, Table
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.public import PublicField
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
    also = population.columns() if population else []
    columns = columns_in_waves(waves, formula, also)
    return analyse_table(table_of_waves(waves, columns), formula, **options)


def columns_in_waves(waves: Waves, formula: str | None, also: Sequence[str] = ()) -> list[str]:
    """Return a formula's columns (questions and public fields of any wave, `wave`), and `also`."""
    known: dict[str, None] = {}
    for study, _ in waves.values():
        check_study(study)
        known |= dict.fromkeys(asked.id for asked in study.questions)
        known |= dict.fromkeys(field.id for field in study.public)
    return columns_of(formula, [*dict.fromkeys([*known, WAVE])], also)


def table_of_waves(waves: Waves, names: Sequence[str]) -> Table:
    """Count the reports of all waves by these questions and public fields, and by wave.

    Raises InputError for fewer than two waves, for a name that a wave lacks, for choices that differ, and for
    a report in two waves.
    """
    if len(waves) < 2:
        raise UsageError("waves are compared with one another: give two or more", code="wave.only_one")
    every = {name: _read(*one) for name, one in waves.items()}
    own = [name for name in names if name != WAVE]
    seen: dict[str, Seen] = {}
    documents = frozenset(study.digest for study, _ in every.values())
    tables: dict[str, Table] = {}
    for name, (study, reports) in every.items():
        known = [*(asked.id for asked in study.questions), *(field.id for field in study.public)]
        _refuse_taken(name, known)
        for column in own:
            known_column(column, known, f"wave {name}: ")
        if isinstance(reports, ReadReports):
            reports.read_elsewhere = documents
        once = seen.setdefault(study.digest, Seen())
        try:
            tables[name] = _table_of(study, reports, once, own)
        except InputError as error:
            raise InputError(f"wave {name}: {error}", code="wave.reports_invalid") from None
    notes = _notes({name: study for name, (study, _) in every.items()}, names)
    table = joined(tables, WAVE)
    return replace(table, notes=(*table.notes, *notes))


def _read(study: Study, reports: Reports) -> tuple[Study, Any]:
    """Check the study, and return it with its reports."""
    check_study(study)
    return study, evidence_of(study, reports)


def _refuse_taken(wave: str, known: Sequence[str]) -> None:
    """Raise InputError if a study has a column with the name of the waves' column."""
    if WAVE in known:
        raise InputError(
            f"wave {wave}: its study already has a field {WAVE}, which would be hidden",
            code="wave.field_name_taken",
        )


def _table_of(study: Study, reports: Any, seen: Seen, names: Sequence[str]) -> Table:
    """Return the table of a wave. Raises InputError for a summary, which has no single reports."""
    if isinstance(reports, Summary):
        raise InputError(
            "a summary has no single reports: waves need the reports themselves",
            code="wave.summary_has_no_reports",
        )
    return table_of_reports(study, _Once(study, cast(Iterable[Report], reports), seen), names)


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


def _words(study: Study, question: str) -> tuple[str | None, object]:
    """Return a question's text and the title of its list."""
    asked = study.question(question)
    return asked.text, asked.list_title


def _units(studies: Mapping[str, Study], question: str) -> Iterator[str]:
    """Yield a note if waves measure a number in different units, even with the same bounds."""
    units = {name: study.question(question).unit for name, study in studies.items()}
    if len(set(units.values())) > 1:
        stated = ", ".join(f"{unit or 'nothing stated'} in wave {name}" for name, unit in units.items())
        yield (
            f"{question} is measured in {stated}: unless these units are the same, neither joint results "
            "nor differences between waves mean anything"
        )


def _fields(studies: Mapping[str, Study], names: Sequence[str]) -> Iterator[str]:
    """Yield notes on public fields with the same id that differ between waves."""
    (leader, first), *_ = studies.items()
    for field in first.public:
        if field.id not in names:
            continue
        own = {name: one for name, study in studies.items() for one in study.public if one.id == field.id}
        for what, asked in _ASKED.items():
            others = [name for name, one in own.items() if asked(one) != asked(field)]
            if others:
                yield (
                    f"{field.id} {what} in wave {', '.join(others)} than in wave {leader}: its values may "
                    "not mean the same, which may explain a difference between waves"
                )


# Possible differences between public fields with the same values.
_ASKED: Mapping[str, Callable[[PublicField], object]] = {
    "is worded differently": lambda field: field.text,
    "has other bounds or steps": lambda field: (field.bounds, field.step),
    "comes from another source (the ticket, or the person)": lambda field: field.from_ticket,
}


def _notes(studies: Mapping[str, Study], names: Sequence[str]) -> list[str]:
    """Return notes on waves that differ, or that may share people."""
    found = []
    if WAVE not in names:
        found.append(POOLED)
    (leader, first), *others = studies.items()
    for question in first.questions:
        if question.id not in names:
            continue
        asked = _words(first, question.id)
        reworded = [name for name, study in others if _words(study, question.id) != asked]
        if reworded:
            found.append(
                f"{question.id} is worded differently in wave {', '.join(reworded)} than in wave {leader}: "
                "a difference between them may be due to the wording"
            )
        found += _units(studies, question.id)
        if _repeats(studies.values(), question.id):
            found.append(
                f"{question.id} may be answered by the same people in several waves, from one kept answer. "
                "Waves are treated as different people: joint results are too certain, "
                "and differences are uncertain enough"
            )
    return [*found, *_fields(studies, names)]


def _repeats(studies: Iterable[Study], question: str) -> bool:
    """Return True if a wave asks the question from a kept answer: only a panel's first wave may ask once."""
    return any(one.repeats for study in studies for one in study.questions if one.id == question)
