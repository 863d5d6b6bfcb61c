"""Share random bytes between a question and a record of sampled products, or tell an id what its coin did.

Defence: The repository's tests: signs, given which product was drawn, and that draw are held against every
other question's noise and the ids; so is a yes/no response's coin.
"""

import pytest

from ldp_client.answering import perturb_answers
from ldp_client.audit.answers import Stream
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.base import MECHANISMS, Mechanism, Privacy
from schemas import Rational, Study
from tests import studies
from tests.privacy.checks.auditing import sample_checks
from tests.privacy.checks.payloads import payload_checks
from tests.privacy.checks.reports import answers_of_all_levels, assembly_checks

PEOPLE = 1200
TWO_SIGNS = {**studies.PRODUCTS, "mechanism": {**studies.PRODUCTS["mechanism"], "products": 2}}
YES_NO = {**studies.YES_NO, "mechanism": {**studies.YES_NO["mechanism"], "epsilon": "1"}}
RECORDS = Study(studies.document(TWO_SIGNS, {**TWO_SIGNS, "id": "also"}))
MIXED = Study(studies.document(studies.PRODUCTS, YES_NO))
NOISY = Study(studies.document(studies.YES_NO_RECORD, YES_NO))
APART, IDS = "questions and people do not share noise", "a report's id tells no answer"


def same_bytes(report, mechanisms, person, place):
    """The pool of random bytes is not moved on between a report's questions."""
    report.payloads = {name: mechanisms[name].perturb(person[name], Stream(place)) for name in mechanisms}


def lie_told_by_id(report, mechanisms, person, place):
    """The last bit of an id says whether the first question's first sign, or its response, is its own."""
    del place
    told = own_of(mechanisms, person, report)
    report.id = report.id[:-1] + f"{int(report.id[-1], 16) & 14 | told:x}"


def one_coin(report, mechanisms, person, place):
    """The yes/no lies where the record does."""
    del place
    told = own_of(mechanisms, person, report)
    report.payloads["ever"] = bytes([mechanisms["ever"].quantise(person["ever"]) ^ 1 ^ told])


def own_of(mechanisms, person, report):
    name = next(iter(mechanisms))
    mechanism, payload = mechanisms[name], report.payloads[name]
    record = mechanism.quantise(person[name])
    if mechanism.name == "gaussian_record":
        return payload[-1] == record[-1]
    place, pattern = divmod(int.from_bytes(payload, "big"), mechanism.patterns)
    i, j = mechanism.coordinates[mechanism.blocks[place][-1]]
    return (pattern & 1) == (record[i] * record[j] >= 0)


def checks_of(study, fault):
    mechanisms = mechanisms_of(study)
    levels = {name: answers_of_all_levels(mechanisms[name], study.question(name)) for name in mechanisms}
    told = [
        {name: some[place * step % len(some)] for step, (name, some) in enumerate(levels.items(), 1)}
        for place in range(PEOPLE)
    ]
    reports = [perturb_answers(study, mechanisms, person) for person in told]
    for place, (report, person) in enumerate(zip(reports, told)):
        fault(report, mechanisms, person, place)
    texts = [report.to_json() for report in reports]
    return {one.name: one for one in payload_checks(study, mechanisms, told, texts, sample_checks)}


@pytest.mark.parametrize(
    ("study", "fault", "expected"),
    [
        (RECORDS, same_bytes, APART),
        (RECORDS, lie_told_by_id, IDS),
        (MIXED, one_coin, APART),
        (MIXED, lie_told_by_id, IDS),
        (NOISY, one_coin, APART),
        (NOISY, lie_told_by_id, IDS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_shared_noise_is_detected(study, fault, expected):
    assert not checks_of(study, fault)[expected].passed


@pytest.mark.parametrize("study", [RECORDS, MIXED, NOISY], ids=["records", "mixed", "noisy"])
def test_sound_reports_pass(study):
    found = checks_of(study, lambda *_: None)
    assert [name for name, check in found.items() if not check.passed] == []
    assert "nothing" not in found[APART].detail


class Unknown(Mechanism):
    """A byte that the audit can read nothing from."""

    name = "unknown"

    def __init__(self, question):
        super().__init__(question)
        self.payload_size, self.privacy = 1, Privacy(Rational(1), Rational(0))

    def quantise(self, answer):
        return bool(answer)

    def randomise(self, quantised, random):
        del quantised
        return random(1)


def test_unknown_mechanism_is_reported_as_unchecked(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "unknown", Unknown)
    study = Study(studies.document(YES_NO, {**YES_NO, "id": "also"}))
    mechanisms = {"ever": mechanisms_of(study)["ever"], "also": Unknown(study.question("also"))}
    answers = {"ever": [False, True], "also": [False, True]}
    told = [{name: answers[name][place % 2] for name in answers} for place in range(200)]
    texts = [perturb_answers(study, mechanisms, person).to_json() for person in told]
    found = [
        *payload_checks(study, mechanisms, told, texts, sample_checks),
        *assembly_checks(study, mechanisms),
    ]
    unmade = {check.name: check.detail.split(":")[0] for check in found if not check.made}
    names = (APART, IDS, "questions do not share noise")
    assert unmade == {f"{name}, of all questions": "also" for name in names}
