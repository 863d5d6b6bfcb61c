"""The audit refuses to answer too: a refusal that the noise does not hide is found."""

import pytest

from ldp_client.mechanisms.base import pack_signed
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.number import Laplace
from ldp_client.mechanisms.refusable import RefusableNumber
from schemas import Study
from tests import studies
from tests.privacy.checks import auditing

SAMPLES = 4000
YES_NO = {**studies.YES_NO, "refusal": True}
CHOICE = {**studies.CHOICE, "refusal": True}
NUMBER = {**studies.NUMBER, "refusal": {"share": "0.5"}}
NORMAL = {**studies.NORMAL, "refusal": {"share": "0.7"}}


class RawRefusal(RandomizedResponse):
    """Who refuses is reported as one who does."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return noisy if quantised < self.choices - 1 else quantised.to_bytes(self.payload_size, "big")


class LongRefusal(RandomizedResponse):
    """Who refuses reports a byte more."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return noisy if quantised < self.choices - 1 else b"\0" + noisy


class QuietRefusal(RandomizedResponse):
    """Who refuses draws no other choice."""

    def randomise(self, quantised, random):
        if quantised < self.choices - 1:
            return super().randomise(quantised, random)
        return (random(4)[0] % self.choices).to_bytes(self.payload_size, "big")


class RawNumber(RefusableNumber):
    """Who refuses sends no noise."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return pack_signed([self.middle]) + noisy[-1:] if quantised[1] else noisy


class LowNumber(RefusableNumber):
    """Who refuses sends the noise of the lowest number: near who is below the bounds, far from others."""

    def __init__(self, question, number):
        super().__init__(question, number)
        self.middle = 0


class HighNumber(RefusableNumber):
    """Who refuses sends the noise of the highest number."""

    def __init__(self, question, number):
        super().__init__(question, number)
        self.middle = self.levels


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RawNumber, LowNumber, HighNumber])
def test_number_that_reveals_refusal_is_detected(kind):
    question = {**studies.with_epsilon(NUMBER, "2"), "refusal": {"share": "0.5"}}
    asked = Study(studies.document(question)).questions[0]
    found = auditing.audit_mechanism(kind(asked, Laplace(asked)), asked, 4 * SAMPLES)
    assert any(check.name.startswith("whole report") for check in found.checks if not check.passed)


@pytest.mark.parametrize(
    ("question", "kind", "expected"),
    [
        (YES_NO, RawRefusal, "every choice has its stated law"),
        (YES_NO, LongRefusal, "payloads have one size and pass their check"),
        (YES_NO, QuietRefusal, "takes as many random bytes for either answer"),
    ],
)
def test_visible_refusal_is_detected(question, kind, expected):
    asked = Study(studies.document(question)).questions[0]
    found = auditing.audit_mechanism(kind(asked), asked, SAMPLES)
    assert expected in {check.name for check in found.checks if not check.passed}


@pytest.mark.slow
def test_hidden_refusals_pass_audit():
    study = Study(studies.document(YES_NO, CHOICE, NUMBER, NORMAL))
    for audit in auditing.audit_study(study, study.questions, SAMPLES):
        assert not [(check.name, check.detail) for check in audit.checks if not check.passed]
