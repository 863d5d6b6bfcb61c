"""Whole reports by every path that makes them: what stands in clear, and how many bytes there are.

An answer that slips into the clear part, or into a report's size, is in no payload, where all else looks.
"""

import json

from ldp_client import answering
from ldp_client.audit.findings import Check
from ldp_client.audit.javascript import PORT, port_reports
from ldp_client.files import batch
from ldp_client.mechanisms.memoized import Remembering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from ldp_client.documents.public import PublicField
    from ldp_client.documents.study import Study

    Mechanisms = dict[str, Any]
    Answers = dict[str, Any]
    # Each person's answers, and the values that are given as public.
    People = list[tuple[Answers, dict[str, str]]]

# Of a number as many values are tried, its ends among them; of a choice all are.
MOST_NUMBERS = 100
MOST_REPORTS = 4000
FEWEST_ANSWERS = 2


def clear_checks(
    study: "Study", mechanisms: "Mechanisms", possible: "dict[str, list[Any]]", port: "Path" = PORT
) -> "Iterator[Check]":
    """Reports of every public value beside different answers, by each path.

    possible: answers that each question takes.
    """
    people = _people(study, possible)
    paths: "dict[str, Callable[[], list[str] | Check]]" = {
        "one by one": lambda: _singly(study, mechanisms, people),
        "in bulk": lambda: _in_bulk(study, mechanisms, people),
        "in JavaScript": lambda: port_reports(study, [{**one, **public} for one, public in people], port),
    }
    for path, made in paths.items():
        found = made()
        if isinstance(found, Check):
            found.name = f"{path}: the clear part"
            yield found
        else:
            yield from _compared(study, path, people, found)


def _people(study: "Study", possible: "dict[str, list[Any]]") -> "People":
    values = {field.id: _values(field) for field in study.public}
    rounds = max([len(some) for some in values.values()] or [MOST_NUMBERS])
    most = max([len(some) for some in possible.values()])
    each = max(FEWEST_ANSWERS, min(most, MOST_REPORTS // rounds))
    return [
        (
            {name: some[(place + other) % len(some)] for name, some in possible.items()},
            {name: some[place % len(some)] for name, some in values.items()},
        )
        for place in range(rounds)
        for other in range(each)
    ]


def _values(field: "PublicField") -> "list[str]":
    step = 1 if field.choices else max(1, (field.size - 1) // MOST_NUMBERS)
    return [field.value(place) for place in (*range(0, field.size, step), field.size - 1)]


def _singly(study: "Study", mechanisms: "Mechanisms", people: "People") -> "list[str]":
    reports = []
    for answers, public in people:
        ready = {
            name: Remembering(mechanism, None) if hasattr(mechanism, "permanent") else mechanism
            for name, mechanism in mechanisms.items()
        }
        reports.append(answering.perturb_answers(study, ready, {**answers, **public}).to_json())
    return reports


def _in_bulk(study: "Study", mechanisms: "Mechanisms", people: "People") -> "list[str] | Check":
    if any([hasattr(mechanism, "permanent") for mechanism in mechanisms.values()]):
        return Check("in bulk", True, "memoized questions are answered one by one", made=False)
    told = [{**answers, **public} for answers, public in people]
    quantised = [answering.quantise_answers(study, mechanisms, one) for one in told]
    public = [answering.public_values(study, one) for one in told]
    made = batch.perturb_people(study, mechanisms, quantised, public=public)
    return [report.to_json() for report in made]


def _compared(study: "Study", path: str, people: "People", reports: "list[str]") -> "Iterator[Check]":
    head = {"format": "ldpkit.report/1", "study": study.id, "version": study.version, "digest": study.digest}
    wrong = abs(len(reports) - len(people))
    for (_, public), text in zip(people, reports):
        rest = json.loads(text)
        payloads = rest.pop("payloads", {})
        del rest["id"]
        asked = len(payloads) == (1 if study.ask_one else len(study.questions))
        wrong += rest != {**head, **({"public": public} if public else {})} or not asked
    yield Check(
        f"{path}: what stands in clear is what was given as public",
        not wrong,
        f"{wrong} of {len(people)} reports differ",
    )
    sizes = len({len(text.encode("utf-8")) for text in reports})
    yield Check(f"{path}: a report's size tells no answer and no value", sizes == 1, f"{sizes} size(s)")
