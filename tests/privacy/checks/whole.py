"""Whole reports by every path that makes them: what stands in clear, how many bytes there are, and payloads.

An answer that slips into the clear part, or into a report's size, is in no payload, where most else looks.
One that goes without noise where a report is put together is in no mechanism.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ldp_client import answering
from ldp_client.audit.findings import Check
from ldp_client.documents.public import PublicField
from ldp_client.documents.study import Study
from ldp_client.files import batch
from tests.privacy.checks.devices import device_checks
from tests.privacy.checks.javascript import PORT, port_reports
from tests.privacy.checks.payloads import SampleChecks, payload_checks
from tests.privacy.checks.reports import answers_of_all_levels, of_one_person
from tests.privacy.checks.same_bytes import bulk_part_checks, port_checks, port_task, rounds_checks

Mechanisms = dict[str, Any]
Answers = dict[str, Any]
# Each person's answers, and the values that are given as public.
People = list[tuple[Answers, dict[str, str]]]


# Of a number as many values are tried, its ends among them; of a choice all are.
MOST_NUMBERS = 100
MOST_REPORTS = 4000
FEWEST_ANSWERS = 2
# Enough for the law of each question; fewer where each of them is so many bytes.
REPORTS, LEVEL_REPORTS = 2000, 1000
LARGE = 400


def path_checks(
    study: Study,
    mechanisms: Mechanisms,
    possible: dict[str, list[Any]],
    sample_checks: SampleChecks,
    port: Path = PORT,
) -> Iterator[Check]:
    """Reports of every public value beside different answers, by each path.

    possible: answers that each question takes, few and far apart; every level of features and choices is
    tried besides. sample_checks: (mechanism, answer, batch) → what reports of one answer must be like.
    """
    levels = {name: answers_of_all_levels(mechanisms[name], study.question(name)) for name in mechanisms}
    people = _people(study, mechanisms, possible, REPORTS)
    if levels != possible:
        # First, as reports of the first people are made again.
        people = _people(study, mechanisms, levels, LEVEL_REPORTS) + people
    told = [{**answers, **public} for answers, public in people]

    def held(path: str, reports: list[str]) -> Iterator[Check]:
        yield from _compared(study, path, people, reports)
        yield from _named(path, payload_checks(study, mechanisms, told, reports, sample_checks))

    yield from held("one by one", _singly(study, mechanisms, told))
    yield from _named("one by one", rounds_checks(study, mechanisms, told))
    yield from _named("by a device", device_checks(study, mechanisms, told))
    if any([hasattr(mechanism, "permanent") for mechanism in mechanisms.values()]):
        yield Check("in bulk", True, "memoized questions are answered one by one", made=False)
    else:
        yield from held("in bulk", _in_bulk(study, told))
        yield from _named("in bulk", bulk_part_checks(study, mechanisms, told))
    given = port_task(study, mechanisms, told)
    found = port_reports(study, told, given, port)
    if isinstance(found, Check):
        found.name = "in JavaScript: whole reports"
        yield found
        return
    yield from held("in JavaScript", found["reports"])
    yield from _named("in JavaScript", port_checks(given, found))


def _named(path: str, checks: Iterable[Check]) -> Iterator[Check]:
    for check in checks:
        check.name = f"{path}: {check.name}"
        yield check


def _people(study: Study, mechanisms: Mechanisms, possible: dict[str, list[Any]], reports: int) -> People:
    """Every value beside several answers, every answer often, and the questions' in different orders."""
    values = {field.id: _values(field) for field in study.public}
    most = max([len(some) for some in possible.values()])
    rounds = max([len(some) for some in values.values()] or [min(MOST_NUMBERS, reports // most)])
    each = max(FEWEST_ANSWERS, min(most, MOST_REPORTS // rounds))
    if sum([mechanism.payload_size for mechanism in mechanisms.values()]) <= LARGE:
        rounds = max(rounds, reports // each)
    return [
        (
            {
                name: some[(place // step + other) % len(some)]
                for step, (name, some) in enumerate(possible.items(), 1)
            },
            {name: some[place % len(some)] for name, some in values.items()},
        )
        for place in range(rounds)
        for other in range(each)
    ]


def _values(field: PublicField) -> list[str]:
    step = 1 if field.choices else max(1, (field.size - 1) // MOST_NUMBERS)
    return [field.value(place) for place in (*range(0, field.size, step), field.size - 1)]


def _singly(study: Study, mechanisms: Mechanisms, told: list[Answers]) -> list[str]:
    return [
        answering.perturb_answers(study, of_one_person(mechanisms), answers).to_json() for answers in told
    ]


def _nothing(_: object) -> None:
    """Whom no progress is told."""


def _in_bulk(study: Study, told: list[Answers]) -> list[str]:
    """As `ldpkit perturb` makes them of a file."""
    with tempfile.TemporaryDirectory() as folder:
        answers, reports = Path(folder, "answers.ndjson"), Path(folder, "reports.ndjson")
        answers.write_text("".join([json.dumps(one) + "\n" for one in told]), "utf-8")
        refusals = any([question.refusal for question in study.questions])
        batch._perturb(study, str(answers), str(reports), _nothing, _nothing, refusals)
        return reports.read_text("utf-8").splitlines()


def _compared(study: Study, path: str, people: People, reports: list[str]) -> Iterator[Check]:
    head = {"format": "ldpkit.report/1", "study": study.id, "version": study.version, "digest": study.digest}
    wrong = abs(len(reports) - len(people))
    for (_, public), text in zip(people, reports):
        rest = json.loads(text)
        payloads = rest.pop("payloads", {})
        del rest["id"]
        asked = len(payloads) == (1 if study.sample_one_question else len(study.questions))
        wrong += rest != {**head, **({"public": public} if public else {})} or not asked
    yield Check(
        f"{path}: what stands in clear is what was given as public",
        not wrong,
        f"{wrong} of {len(people)} reports differ",
    )
    sizes = len({len(text.encode("utf-8")) for text in reports})
    yield Check(f"{path}: a report's size tells no answer and no value", sizes == 1, f"{sizes} size(s)")
