"""Waves: reports on several versions of a study, or on several studies, in one analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inference.analyses.analysing import analyse_table
from inference.analyses.formula import known_column
from inference.analyses.joining import POOLED, WAVE, joined
from inference.analyses.matrices import columns_of
from inference.analyses.reports import table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.analyses.table import Table
from ldp_client.documents.errors import InputError
from schemas import Report, Study
from summaries import check_study
from summaries.reading import ReportFiles
from summaries.reducing import CheckedReports, Seen, good_reports

Waves = Mapping[str, tuple[Study, Iterable[Report]]]


def analyse_waves(waves: Waves, formula: str, **options: Any) -> AnalysisPosterior:
    """Fit a formula over several waves of a study; `wave` is a public field of its own.

    Args:
        waves: {name: (the study of this wave, its reports)}; the first is what others are compared with.
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
    table = table_of_waves(waves, [*columns_in_waves([study for study, _ in waves.values()], formula), *also])
    return analyse_table(table, formula, **options)


def columns_in_waves(studies: Sequence[Study], formula: str) -> list[str]:
    """The ids of questions and public fields of any wave that a formula names, and `wave`."""
    known: dict[str, None] = {}
    for study in studies:
        check_study(study)
        known |= dict.fromkeys([*(one.id for one in study.questions), *(one.id for one in study.public)])
    return columns_of(formula, [*known, *([WAVE] if WAVE not in known else [])])


def table_of_waves(waves: Waves, names: Sequence[str]) -> Table:
    """Count the reports of all waves by these questions and public fields, and by wave.

    Raises InputError for fewer than two waves, for a name that one of them lacks, for choices that differ,
    and for a report that stands in two waves.
    """
    if len(waves) < 2:
        raise InputError("waves are compared with one another: give two or more")
    own = [name for name in names if name != WAVE]
    seen: dict[str, Seen] = {}
    documents = frozenset(study.digest for study, _ in waves.values())
    tables: dict[str, Table] = {}
    for name, (study, reports) in waves.items():
        known = [*(question.id for question in study.questions), *(field.id for field in study.public)]
        if WAVE in known:
            raise InputError(f"wave {name}: its study has a {WAVE} of its own, which waves would hide")
        for one in own:
            known_column(one, known, f"wave {name}: ")
        if isinstance(reports, ReportFiles):
            reports.read_elsewhere = documents
        once = _Once(study, reports, seen.setdefault(study.digest, Seen()))
        try:
            tables[name] = table_of_reports(study, once, own)
        except InputError as error:
            raise InputError(f"wave {name}: {error}") from None
    table = joined(tables, WAVE)
    studies = {name: study for name, (study, _) in waves.items()}
    return replace(table, notes=(*table.notes, *_notes(studies, names)), waves=WAVE)


class _Once(CheckedReports):
    """A wave's reports, none of which stands in another wave of the same document."""

    def __init__(self, study: Study, reports: Iterable[Report], seen: Seen) -> None:
        self.digest = study.digest
        self._study, self._reports, self._seen = study, reports, seen

    def __iter__(self) -> Iterator[Report]:
        for report in good_reports(self._study, self._reports):
            if self._seen.holds(report):
                raise InputError(f"report {report.id} stands in another wave too: give each report once")
            yield report

    def notes(self) -> tuple[str, ...]:
        """Those of the reports themselves, once all were read."""
        return self._reports.notes() if isinstance(self._reports, CheckedReports) else ()


def _notes(studies: Mapping[str, Study], names: Sequence[str]) -> list[str]:
    """What a reader must know of waves that differ, or whose people may be the same."""
    found = []
    if WAVE not in names:
        found.append(POOLED)
    (leader, first), *others = studies.items()
    for question in first.questions:
        if question.id not in names:
            continue
        alike = [study.question(question.id) for _, study in others]
        reworded = [name for (name, _), one in zip(others, alike, strict=True) if one.text != question.text]
        if reworded:
            found.append(
                f"{question.id} is asked in other words in wave {', '.join(reworded)} than in wave {leader}: "
                "a difference between them may be one of the words"
            )
        if question.repeats:
            found.append(
                f"{question.id} may be answered by the same people in several waves, from one kept answer, "
                "which no report shows: waves are taken as different people, so that what is said of all "
                "waves together is too certain, and their differences are uncertain enough"
            )
    return found
