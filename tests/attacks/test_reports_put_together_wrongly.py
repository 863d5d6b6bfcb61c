"""Ship software whose mechanisms are sound, but whose whole reports still reveal the answers.

Defence: The repository's tests: whole reports of every path are held to each question's law, to
independence of questions and people, and to what their parts give on the same random bytes; so are later
rounds, by devices with ledgers in browsers and in Python.
"""

import shutil

import pytest

from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturbing
from ldp_client.core.randomness import urandom
from ldp_client.device import budget
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.memoized import Remembering
from schemas import Study
from tests import studies
from tests.privacy.checks import devices
from tests.privacy.checks.auditing import sample_checks
from tests.privacy.checks.devices import device_checks
from tests.privacy.checks.javascript import PORT
from tests.privacy.checks.reports import possible_answers
from tests.privacy.checks.same_bytes import bulk_part_checks
from tests.privacy.checks.whole import path_checks

STUDY = Study(studies.document(studies.YES_NO, {**studies.YES_NO, "id": "also"}))
MEMOIZED = Study(studies.document(studies.MEMOIZED, studies.YES_NO))
honest = perturbing.reports_of


def failed(study=STUDY, port=PORT.parent / "absent.js"):
    mechanisms = mechanisms_of(study)
    possible = {name: possible_answers(mechanisms[name], study.question(name)) for name in mechanisms}
    checks = path_checks(study, mechanisms, possible, sample_checks, port)
    return {check.name for check in checks if not check.passed}


def flips_of(report, person):
    return {name: report.payloads[name][0] ^ place for name, place in person}


def without_noise(report, person, first):  # noqa: ARG001
    report.payloads = {name: bytes([place]) for name, place in person}


def one_coin_for_both(report, person, first):  # noqa: ARG001
    flips = flips_of(report, person)
    report.payloads = {name: bytes([place ^ flips["ever"]]) for name, place in person}


def one_coin_for_all(report, person, first):
    report.payloads = {name: bytes([place ^ first[name]]) for name, place in person}


def telling_id(report, person, first):  # noqa: ARG001
    report.id = report.id[:-1] + str(int(person[0][1]))


def telling_id_of_noise(report, person, first):  # noqa: ARG001
    report.id = report.id[:-1] + str(flips_of(report, person)["ever"])


LAW, APART, ID = (
    f"in bulk: {name}"
    for name in (
        "whole reports follow the law",
        "questions and people do not share noise",
        "a report's id tells no answer",
    )
)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (without_noise, LAW),
        (one_coin_for_both, APART),
        (one_coin_for_all, LAW),
        (telling_id, ID),
        (telling_id_of_noise, ID),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_faulty_bulk_assembly_is_detected(monkeypatch, fault, expected):
    """The fault is planted once for the system's randomness only, and once for given bytes only."""

    def planted(on_real):
        def reports_of(study, mechanisms, people, random, public=None):
            first = None
            for report, person in zip(honest(study, mechanisms, people, random, public), people):
                first = first or flips_of(report, person)
                if (random is urandom) is on_real:
                    fault(report, person, first)
                yield report

        return reports_of

    monkeypatch.setattr(perturbing, "reports_of", planted(True))
    assert expected in failed()
    monkeypatch.setattr(perturbing, "reports_of", planted(False))
    told = [{"ever": place % 2 == 0, "also": place % 3 == 0} for place in range(40)]
    assert [check.passed for check in bulk_part_checks(STUDY, mechanisms_of(STUDY), told)] == [False]


def redrawn(self, quantised, random):
    self.answer = bytes(self.mechanism.permanent(quantised, random))
    return bytes(self.mechanism.instantaneous(self.answer, random))


def true_later(self, quantised, random):
    if self.answer is None:
        return redrawn(self, quantised, random)
    return bytes([quantised])


@pytest.mark.slow
def test_sound_reports_pass_audit():
    assert failed() == failed(MEMOIZED) == set()


@pytest.mark.parametrize("fault", [redrawn, true_later])
def test_faulty_later_rounds_are_detected(monkeypatch, fault):
    monkeypatch.setattr(Remembering, "randomise", fault)
    assert failed(MEMOIZED) == {
        "one by one: later rounds repeat the permanent answer, with fresh noise on it"
    }


QUEUED = "by a device: what is queued is what was drawn, round after round"
ONE_OF_THREE = Study(
    studies.document(
        studies.MEMOIZED, {**studies.MEMOIZED, "id": "other"}, studies.YES_NO, sample_one_question=True
    )
)


def forgetful(connection, terms):  # noqa: ARG001
    """What the ledger keeps of permanent answers is not looked at."""
    return {name: Remembering(terms.mechanisms[name], None) for name in terms.memoized}


def last_answer_kept(connection, terms, origin, remembering, fresh):
    """A later round would repeat another answer than it gave."""
    kept = [mechanism for mechanism in remembering.values() if mechanism.answer is not None]
    for mechanism in kept:
        mechanism.answer = bytes([mechanism.answer[0] ^ 1]) + mechanism.answer[1:]
    return budget.remember(connection, terms, origin, remembering, fresh)


def own_noise(study, mechanisms, answers, random):  # noqa: ARG001
    return perturb_answers(study, mechanisms, answers)


@pytest.mark.parametrize("study", [MEMOIZED, ONE_OF_THREE], ids=["all", "one"])
@pytest.mark.parametrize(
    ("name", "fault"),
    [("recall", forgetful), ("remember", last_answer_kept), ("perturb_answers", own_noise)],
)
def test_faulty_rounds_of_device_are_detected(monkeypatch, study, name, fault):
    told = [{"habit": place % 2 == 0, "other": place % 3 == 0, "ever": place % 5 < 2} for place in range(40)]
    told = [{name: one[name] for name in [asked.id for asked in study.questions]} for one in told]

    def failing():
        checks = device_checks(study, mechanisms_of(study), told)
        return {f"by a device: {check.name}" for check in checks if not check.passed}

    monkeypatch.setattr(devices, "DEVICES", 2)
    assert failing() == set()
    monkeypatch.setattr(f"ldp_client.device.device.{name}", fault)
    assert QUEUED in failing()


DEVICE = "in JavaScript: same reports by a device, round after round"


@pytest.mark.slow
@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("study", "file", "old", "new", "expected"),
    [
        (
            STUDY,
            "report.js",
            "mechanism.randomise(quantised, random)",
            "(mechanism.randomise(quantised, random), Uint8Array.of(quantised))",
            {"in JavaScript: whole reports follow the law", DEVICE},
        ),
        (
            STUDY,
            "report.js",
            ".slice(0, 2 * bytes), secret",
            ".slice(0, 2 * bytes).replace(/^../, '00'), secret",
            {"in JavaScript: a report's id tells no answer", DEVICE},
        ),
        (
            STUDY,
            "device.js",
            "...made, closes",
            "...made, body: made.body.replace('AA', 'AQ'), closes",
            {DEVICE},
        ),
        (MEMOIZED, "mechanisms/memoized.js", "if (!kept) {", "if (true) {", {DEVICE}),
        (
            MEMOIZED,
            "mechanisms/memoized.js",
            "    if (!kept) {",
            "    if (kept) return Uint8Array.of(quantised);\n    if (!kept) {",
            {DEVICE},
        ),
    ],
)
def test_faulty_javascript_assembly_is_detected(tmp_path, study, file, old, new, expected):
    shutil.copytree(PORT.parent, tmp_path / "js")
    source = tmp_path / "js" / file
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    assert expected <= failed(study, tmp_path / "js" / "index.js")
