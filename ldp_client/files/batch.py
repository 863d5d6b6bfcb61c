"""Device-side noise for a file of answers, where someone already holds them (a gateway, a simulation)."""

import os
from itertools import islice

from ldp_client.answering import quantise_answers, refuse_route, report_of
from ldp_client.clipping import ClippedCount
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.answers import read_answers
from ldp_client.files.writing import replacing
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.memoized import refuse_forgetful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.report import Report
    from ldp_client.documents.study import Study
    from ldp_client.mechanisms import Mechanism

    Mechanisms = dict[str, Mechanism]
    Quantised = list[tuple[str, Any]]

# People at once: bounds the memory, and how often progress is told.
CHUNK = 4096


def perturb_file(
    study: "Study",
    answers_path: str,
    reports_path: str,
    progress: "Callable[[int], None]" = lambda _: None,
    note: "Callable[[str], None]" = lambda _: None,
) -> int:
    """Write one report for each person of an answer file, NDJSON; returns how many.

    A data holder's file is its table, of which it writes one report.
    Nothing is written when any answer is wrong. progress is told how many are done, note in one line how many
    answers were clipped. Uses NumPy where it is installed. Raises InputError with the line, and for memoized
    questions, which need a memory of each person; RefusedError for a study with a route.
    """
    refuse_route(study)
    if os.path.exists(reports_path):
        raise InputError(f"{reports_path} exists: noise is drawn once, choose another file or remove it")
    mechanisms = mechanisms_of(study)
    refuse_forgetful(mechanisms)
    if study.unit == "holder":
        from ldp_client.files.holders import perturb_table

        perturb_table(study, mechanisms, answers_path, reports_path, note)
        return 1
    count, clipped = 0, ClippedCount()
    with replacing(reports_path, is_new=True) as file:
        people = _quantised_people(study, mechanisms, answers_path, clipped)
        while chunk := list(islice(people, CHUNK)):
            for report in perturb_people(study, mechanisms, chunk):
                file.write(report.to_json() + "\n")
            count += len(chunk)
            progress(count)
        if not count:
            raise InputError(f"{os.path.basename(answers_path)}: there are no answers in it")
    if clipped.line():
        note(clipped.line())
    return count


def _quantised_people(
    study: "Study", mechanisms: "Mechanisms", path: str, clipped: ClippedCount
) -> "Iterator[Quantised]":
    for number, answers in read_answers(study, path):
        try:
            quantised = quantise_answers(study, mechanisms, answers)
        except AnswerError as error:
            where = f"{os.path.basename(path)}, line {number}"
            raise InputError(f"{where}: {error.field}: {error.problem}") from None
        clipped.add(study, answers)
        yield quantised


def perturb_people(
    study: "Study", mechanisms: "Mechanisms", people: "list[Quantised]", random: "Source" = urandom
) -> "Iterator[Report]":
    """One report for each person's quantised answers: in bulk where NumPy is installed and all are asked."""
    one_by_one = (report_of(study, mechanisms, person, random) for person in people)
    if study.ask_one:
        return one_by_one
    try:
        from ldp_client.bulk.reports import reports_of
    except ModuleNotFoundError as missing:
        if missing.name != "numpy":
            raise
        return one_by_one
    return reports_of(study, mechanisms, people, random)
