"""Whole reports on the same random bytes: by their parts, in JavaScript as in Python, and round after round.

What is expected is put together by fresh mechanisms. A path that uses its random bytes in another way shows
on the first stream, whatever the law of what it does.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from ldp_client import answering
from ldp_client.audit.answers import Stream
from ldp_client.audit.findings import Check
from ldp_client.core.randomness import read
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.documents.study import Study
from ldp_client.files import batch
from ldp_client.mechanisms.memoized import Remembering
from tests.privacy.checks.devices import answers_to, versions_of
from tests.privacy.checks.reports import of_one_person

Mechanisms = dict[str, Any]
Told = list[dict[str, Any]]


STREAMS = 40
ROUNDS = 3
# More random bytes than a report takes, of what Python took of a stream.
SPARE = 64


def bulk_part_checks(study: Study, mechanisms: Mechanisms, told: Told) -> Iterator[Check]:
    """Reports in bulk: each question's payloads in a row, then all secrets, from one stream.

    No check where they are made one by one: of a study that asks one question, or without NumPy.
    """
    try:
        from ldp_client.bulk.perturbing import randomise_many
    except ModuleNotFoundError:
        return
    if study.sample_one_question:
        return
    people = [answering.quantise_answers(study, mechanisms, one) for one in told[:STREAMS]]
    public = [answering.public_values(study, one) for one in told[:STREAMS]]
    made = list(batch.perturb_people(study, mechanisms, people, Stream(1), public))
    stream, fresh = Stream(1), deepcopy(mechanisms)
    columns = {
        name: randomise_many(fresh[name], [person[place][1] for person in people], stream)
        for place, (name, _) in enumerate(people[0])
    }
    secrets = read(stream, SECRET_BYTES * len(people))
    wrong = abs(len(made) - len(people))
    for row, report in enumerate(made):
        payloads = {name: rows[row].tobytes() for name, rows in columns.items()}
        secret = secrets[SECRET_BYTES * row : SECRET_BYTES * (row + 1)]
        wrong += report.payloads != payloads or report.id != report_id_of(secret)
    yield Check(
        "each payload is its mechanism's, and each id its secret's",
        not wrong,
        f"{wrong} of {len(people)} reports differ from their parts",
    )


def rounds_checks(study: Study, mechanisms: Mechanisms, told: Told) -> Iterator[Check]:
    """Later reports of a memoized question come from the permanent answer, whatever is answered then.

    No check of a study without such a question, or that asks one of its questions only.
    """
    names = [question.id for question in study.questions]
    memoized = [name for name in names if hasattr(mechanisms[name], "permanent")]
    if not memoized or study.sample_one_question:
        return
    wrong = 0
    for seed in range(STREAMS):
        ready, kept = of_one_person(mechanisms), dict[str, bytes]()
        fresh = deepcopy(mechanisms)
        for later in range(ROUNDS):
            answers = told[(seed + 7 * later) % len(told)]
            # As a device does that was switched off since: all that it has is what it kept.
            ready.update({name: Remembering(mechanisms[name], ready[name].answer) for name in memoized})
            stream = Stream(ROUNDS * seed + later)
            report = answering.perturb_answers(study, ready, answers, stream)
            again = Stream(ROUNDS * seed + later)
            wrong += report.payloads != _round(fresh, names, answers, kept, again)
            wrong += any([ready[name].answer != kept[name] for name in memoized])
            wrong += stream.taken != again.taken + SECRET_BYTES
    yield Check(
        "later rounds repeat the permanent answer, with fresh noise on it",
        not wrong,
        f"{wrong} of {ROUNDS * STREAMS} reports differ",
    )


def _round(
    mechanisms: Mechanisms,
    names: list[str],
    answers: dict[str, Any],
    kept: dict[str, bytes],
    stream: Stream,
) -> dict[str, bytes]:
    """The payloads that belong in a report; permanent answers that are drawn are added to `kept`."""
    payloads = {}
    for name in names:
        mechanism = mechanisms[name]
        quantised = mechanism.quantise(answers[name])
        if hasattr(mechanism, "permanent"):
            if name not in kept:
                kept[name] = mechanism.permanent(quantised, stream)
            payloads[name] = mechanism.instantaneous(kept[name], stream)
        else:
            payloads[name] = mechanism.randomise(quantised, stream)
    return payloads


def port_task(study: Study, mechanisms: Mechanisms, told: Told) -> dict[str, Any]:
    """What the port is to make on given bytes, and under "expected" what Python makes of them.

    Reports of people, and reports of devices that answer each version of a study in turn.
    """
    versions = versions_of(study, 1 if study.sample_one_question else 2)
    people, devices = [], []
    for seed in range(min(STREAMS, len(told))):
        stream = Stream(seed)
        report = answering.perturb_answers(study, of_one_person(mechanisms), told[seed], stream)
        people.append(_case(told[seed], seed, stream, report))
        ready = of_one_person(mechanisms)
        rounds = []
        for later, version in enumerate(versions):
            answers = answers_to(version, told[(seed + later) % len(told)])
            own = STREAMS * (later + 1) + seed
            stream = Stream(own)
            rounds.append(_case(answers, own, stream, _as_device(version, ready, answers, stream)))
        devices.append(rounds)
    return {"people": people, "devices": devices, "versions": [version.to_json() for version in versions]}


def _case(answers: dict[str, Any], seed: int, stream: Stream, report: Report) -> dict[str, Any]:
    given = Stream(seed)(stream.taken + SPARE).hex()
    return {"answers": answers, "bytes": given, "expected": report.to_json()}


def port_checks(given: dict[str, Any], found: dict[str, list[str]]) -> Iterator[Check]:
    """The port's reports beside those that `port_task` expects."""
    devices = [case for rounds in given["devices"] for case in rounds]
    names = {
        "people": "same reports as Python on the same bytes",
        "devices": "same reports by a device, round after round",
    }
    for key, cases in (("people", given["people"]), ("devices", devices)):
        wrong = abs(len(cases) - len(found[key]))
        wrong += sum([case["expected"] != text for case, text in zip(cases, found[key])])
        yield Check(names[key], not wrong, f"{wrong} of {len(cases)} reports differ")


def _as_device(study: Study, ready: Mechanisms, answers: dict[str, Any], stream: Stream) -> Report:
    """A browser's device draws the secret first."""
    secret = read(stream, SECRET_BYTES)
    asked = {question.id: ready[question.id] for question in study.questions}
    quantised = answering.quantise_answers(study, asked, answers)
    report = answering.report_of(study, asked, quantised, stream, answering.public_values(study, answers))
    report.id = report_id_of(secret)
    return report
