"""Waves: reports on several versions of a study, or on several studies, in one analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from inference.analyses.analysing import analyse_table
from inference.analyses.formula import known_column
from inference.analyses.joining import POOLED, joined
from inference.analyses.matrices import columns_of
from inference.analyses.reports import table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.analyses.table import Table
from ldp_client.commands.study_warnings import WAVE
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.public import PublicField
from schemas import Report, Study
from summaries import Summary, check_study
from summaries.reading import ReadReports, Reports, evidence_of
from summaries.reducing import CheckedReports, Seen, good_reports

Waves = Mapping[str, tuple[Study, Reports]]


def analyse_waves(waves: Waves, formula: str, **options: Any) -> AnalysisPosterior:
    """Fit a formula over several waves of a study; `wave` is a public field of its own.

    Args:
        waves: {name: (the study of this wave, its reports, as `fit` takes them)}; the first wave is what
            others are compared with.
        formula: such as "ever ~ wave + region", of question ids and public fields that every wave has.
        options: as of `analyse`.

    Returns:
        As `analyse`, with a difference between each two waves.

    Raises:
        ReportError: a report does not belong to its wave's study.
        InputError: choices differ between waves, a report stands in two of them, or as `analyse`.
    """
    population = options.get("population")
    also = population.columns() if population else []
    columns = columns_in_waves(waves, formula, also)
    return analyse_table(table_of_waves(waves, columns), formula, **options)


def columns_in_waves(waves: Waves, formula: str | None, also: Sequence[str] = ()) -> list[str]:
    """What a formula names: questions and public fields of any wave, and `wave`; and other columns."""
    known: dict[str, None] = {}
    for study, _ in waves.values():
        check_study(study)
        known |= dict.fromkeys(asked.id for asked in study.questions)
        known |= dict.fromkeys(field.id for field in study.public)
    return columns_of(formula, [*dict.fromkeys([*known, WAVE])], also)


def table_of_waves(waves: Waves, names: Sequence[str]) -> Table:
    """Count the reports of all waves by these questions and public fields, and by wave.

    Raises InputError for fewer than two waves, for a name that one of them lacks, for choices that differ,
    and for a report that stands in two waves.
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
    """The same, its reports found where they are."""
    check_study(study)
    return study, evidence_of(study, reports)


def _refuse_taken(wave: str, known: Sequence[str]) -> None:
    """Raises InputError where a study has a column of the waves' own."""
    if WAVE in known:
        raise InputError(
            f"wave {wave}: its study has a {WAVE} of its own, which waves would hide",
            code="wave.field_name_taken",
        )


def _table_of(study: Study, reports: Any, seen: Seen, names: Sequence[str]) -> Table:
    """The table of a wave. Raises InputError where single reports are gone."""
    if isinstance(reports, Summary):
        raise InputError(
            "a summary no longer has single reports: waves need the reports themselves",
            code="wave.summary_has_no_reports",
        )
    return table_of_reports(study, _Once(study, cast(Iterable[Report], reports), seen), names)


class _Once(CheckedReports):
    """A wave's reports, none of which stands in another wave of the same document."""

    def __init__(self, study: Study, reports: Iterable[Report], seen: Seen) -> None:
        self.digest = study.digest
        self._study, self._reports, self._seen = study, reports, seen

    def __iter__(self) -> Iterator[Report]:
        for report in good_reports(self._study, self._reports):
            if self._seen.holds(report):
                raise InputError(
                    f"report {report.id} stands in another wave too: give each report once",
                    code="wave.report_in_two",
                )
            yield report

    def notes(self) -> tuple[str, ...]:
        """Those of the reports themselves, once all were read."""
        return self._reports.notes() if isinstance(self._reports, CheckedReports) else ()


def _words(study: Study, question: str) -> tuple[str | None, object]:
    """What people read of a question, with the title of its list."""
    asked = study.question(question)
    return asked.text, asked.list_title


def _units(studies: Mapping[str, Study], question: str) -> Iterator[str]:
    """A note where waves say that a number counts other things, whose bounds may be the same."""
    units = {name: study.question(question).measured_in for name, study in studies.items()}
    if len(set(units.values())) > 1:
        stated = ", ".join(f"{unit or 'nothing stated'} in wave {name}" for name, unit in units.items())
        yield (
            f"{question} is measured in {stated}: unless these are one unit, neither what is said of all "
            "waves together nor a difference between them means anything"
        )


def _fields(studies: Mapping[str, Study], names: Sequence[str]) -> Iterator[str]:
    """Notes of public fields that are asked otherwise in some waves, under the same id."""
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
                    "not mean the same, and a difference between waves may be one of them"
                )


# What may differ of a public field whose values are the same, and where it stands.
_ASKED: Mapping[str, Callable[[PublicField], object]] = {
    "is asked in other words": lambda field: field.text,
    "is a number with other bounds or steps": lambda field: (field.bounds, field.step),
    "is told by somebody else (the invitation, or the person)": lambda field: field.from_invitation,
}


def _notes(studies: Mapping[str, Study], names: Sequence[str]) -> list[str]:
    """What a reader must know of waves that differ, or whose people may be the same."""
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
                f"{question.id} is asked in other words in wave {', '.join(reworded)} than in wave {leader}: "
                "a difference between them may be one of the words"
            )
        found += _units(studies, question.id)
        if _repeats(studies.values(), question.id):
            found.append(
                f"{question.id} may be answered by the same people in several waves, from one kept answer, "
                "which no report shows: waves are taken as different people, so that what is said of all "
                "waves together is too certain, and their differences are uncertain enough"
            )
    return [*found, *_fields(studies, names)]


def _repeats(studies: Iterable[Study], question: str) -> bool:
    """Whether a wave asks it from a kept answer: a panel's first wave may have asked once."""
    return any(one.repeats for study in studies for one in study.questions if one.id == question)
