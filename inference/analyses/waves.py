"""Waves: reports on several versions of a study, or on several studies, in one analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from inference.analyses.analysing import analyse_table
from inference.analyses.arms_differing import DEVICE, PAPER
from inference.analyses.design_file import Design
from inference.analyses.formula import known_column
from inference.analyses.joining import POOLED, joined
from inference.analyses.matrices import columns_of
from inference.analyses.naming import Name
from inference.analyses.paper import chances_of, in_arms, load_entries, refuse_copied
from inference.analyses.reports import table_of_reports
from inference.analyses.result import AnalysisPosterior
from inference.analyses.survey import REFUSE
from inference.analyses.table import Table
from ldp_client.commands.paper import ARM
from ldp_client.commands.study_warnings import WAVE
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.public import PublicField
from schemas import Report, Study
from summaries import Summary, check_study
from summaries.reading import ReadReports, Reports, evidence_of
from summaries.reducing import CheckedReports, Seen, good_reports


class Wave(NamedTuple):
    """What one wave has. reports: of devices, None without any. paper: the path of its records on paper."""

    study: Study
    reports: Reports | None
    paper: str | None = None


Waves = Mapping[str, Wave | tuple[Study, Reports | None] | tuple[Study, Reports | None, str]]


def analyse_waves(
    waves: Waves, formula: str, *, blanks: str = REFUSE, design: Design | None = None, **options: Any
) -> AnalysisPosterior:
    """Fit a formula over several waves of a study; `wave` is a public field of its own.

    Args:
        waves: {name: (the study of this wave, its reports, as `fit` takes them)}, or (study, reports, path of
            its records on paper), the reports None where no device answered; the first wave is what others
            are compared with. Where some answered on paper, `arm` is a public field too.
        formula: such as "ever ~ wave + region", of question ids and public fields that every wave has.
        blanks: of records on paper, "refuse" those with one, or "leave-out" them.
        design: of records on paper, instead of the studies' matrices.
        options: as of `analyse`.

    Returns:
        As `analyse`, with a difference between each two waves.

    Raises:
        ReportError: a report does not belong to its wave's study.
        InputError: choices differ between waves, a report or records stand in two of them, or as `analyse`.
    """
    population = options.get("population")
    also = population.columns() if population else []
    columns = columns_in_waves(waves, formula, also)
    return analyse_table(table_of_waves(waves, columns, blanks, design), formula, **options)


def columns_in_waves(waves: Waves, formula: str | None, also: Sequence[Name] = ()) -> list[str]:
    """What a formula names: questions and public fields of any wave, `wave` and `arm`; and other columns."""
    known: dict[str, None] = {}
    every = [Wave(*one) for one in waves.values()]
    for one in every:
        check_study(one.study)
        known |= dict.fromkeys(asked.id for asked in one.study.questions)
        known |= dict.fromkeys(field.id for field in one.study.public)
    known |= dict.fromkeys([WAVE, *([ARM] if any(one.paper is not None for one in every) else [])])
    return columns_of(formula, list(known), also)


def table_of_waves(
    waves: Waves, names: Sequence[str], blanks: str = REFUSE, design: Design | None = None
) -> Table:
    """Count the reports of all waves by these questions and public fields, and by wave.

    blanks, design: of records on paper. Raises InputError for fewer than two waves, for a name that one of
    them lacks, for choices that differ, and for a report that stands in two waves.
    """
    if len(waves) < 2:
        raise UsageError("waves are compared with one another: give two or more", code="wave.only_one")
    every = {name: _read(Wave(*one)) for name, one in waves.items()}
    on_paper = {name: one for name, one in every.items() if one.paper is not None}
    arms = bool(on_paper) and any(one.reports is not None for one in every.values())
    names = [name for name in names if name != ARM] if arms else names
    own = [name for name in names if name != WAVE]
    designs = _designs(on_paper, design)
    seen: dict[str, Seen] = {}
    documents = frozenset(one.study.digest for one in every.values())
    tables: dict[str, Table] = {}
    for name, one in every.items():
        known = [*(asked.id for asked in one.study.questions), *(field.id for field in one.study.public)]
        _refuse_taken(name, known, [WAVE, *([ARM] if arms else [])])
        for column in own:
            known_column(column, known, f"wave {name}: ")
        if isinstance(one.reports, ReadReports):
            one.reports.read_elsewhere = documents
        once = seen.setdefault(one.study.digest, Seen())
        try:
            parts = _arms_of(one, once, own, blanks, designs.get(name))
            tables[name] = in_arms(one.study, parts) if arms else next(iter(parts.values()))
        except InputError as error:
            raise InputError(f"wave {name}: {error}", code="wave.reports_invalid") from None
    refuse_copied(
        {
            name: (one.study, one.paper, designs.get(name))
            for name, one in on_paper.items()
            if one.paper is not None
        }
    )
    notes = [*_notes({name: one.study for name, one in every.items()}, names), *_apart(tables)]
    table = joined(tables, WAVE)
    return replace(table, notes=(*table.notes, *notes), waves=WAVE)


def _read(wave: Wave) -> Wave:
    """The same, its reports found where they are."""
    check_study(wave.study)
    return wave if wave.reports is None else wave._replace(reports=evidence_of(wave.study, wave.reports))


def _refuse_taken(wave: str, known: Sequence[str], own: Sequence[str]) -> None:
    """Raises InputError where a study has a column of the waves', or of the arms', own."""
    for name in own:
        if name in known:
            what = "waves" if name == WAVE else "the arms' names"
            raise InputError(
                f"wave {wave}: its study has a {name} of its own, which {what} would hide",
                code="wave.field_name_taken",
            )


def _arms_of(
    wave: Wave, seen: Seen, names: Sequence[str], blanks: str, design: Design | None
) -> dict[str, Table]:
    """The table of each arm that a wave has. Raises InputError where it has none."""
    found = {}
    if isinstance(wave.reports, Summary):
        raise InputError(
            "a summary no longer has single reports: waves need the reports themselves",
            code="wave.summary_has_no_reports",
        )
    if wave.reports is not None:
        reports = cast(Iterable[Report], wave.reports)
        found[DEVICE] = table_of_reports(wave.study, _Once(wave.study, reports, seen), names)
    if wave.paper is not None:
        entries = load_entries(wave.study, wave.paper, names, blanks, design)
        # A sheet's numbers and other fields are its own.
        own = [name for name in map(str, entries.public.columns) if name in names]
        found[PAPER] = replace(entries, public=entries.public[own])
    if not found:
        raise InputError("it has neither reports nor records on paper", code="wave.no_reports")
    return found


def _designs(waves: Mapping[str, Wave], design: Design | None) -> dict[str, Design]:
    """What a design says of each wave's records: its matrices, or those with `"rows": {"wave": NAME}`.

    Raises InputError where it says nothing of one, or the same of waves whose studies have other dice.
    """
    if design is None:
        return {}
    if not waves:
        raise UsageError(
            "--design is for tables and records on paper: a study says what its reports mean",
            code="wave.design_for_studies",
        )
    found = {}
    for name in waves:
        columns = []
        for one in design.columns:
            own = [part for part in one.parts if part.rows.get(WAVE, name) == name]
            if not own:
                raise InputError(
                    f"wave {name}: the design has no matrix of {one.name} for it",
                    code="wave.design_lacks_matrix",
                )
            rows = [{at: value for at, value in part.rows.items() if at != WAVE} for part in own]
            parts = [replace(part, rows=where) for part, where in zip(own, rows, strict=True)]
            columns.append(replace(one, parts=tuple(parts)))
        found[name] = replace(design, columns=tuple(columns))
    for one in design.columns:
        dice = {_dice(wave.study, one.name) for wave in waves.values()}
        if len(dice) > 1 and not all(WAVE in part.rows for part in one.parts):
            raise InputError(
                f"{one.name} was asked with other dice in some wave: give the design a matrix for each, "
                f'"rows": {{"{WAVE}": NAME}}',
                code="wave.dice_differ",
            )
    return found


def _dice(study: Study, name: str) -> str:
    """A question's dice in a study, as text; "" where it is not on paper."""
    questions = study.paper.questions if study.paper is not None else ()
    return "".join(f"{one.reports} {chances_of(one)}" for one in questions if one.id == name)


def _apart(tables: Mapping[str, Table]) -> Iterator[str]:
    """A note where some waves have one arm alone, so that a difference between waves may be one of arms."""
    arms = {
        name: set(table.public[ARM].unique()) for name, table in tables.items() if ARM in table.public.columns
    }
    alone = [f"{name} {next(iter(one))} alone" for name, one in arms.items() if len(one) == 1]
    if alone:
        yield (
            f"waves were not answered alike ({', '.join(alone)}): a difference between waves may be one of "
            "how people were asked"
        )


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
