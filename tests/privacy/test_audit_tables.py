"""The audit of data holders' tables: worst neighbours, as records are audited, within their groups."""

import pytest

from ldp_client import mechanism_for
from ldp_client.mechanisms.tables.gaussian import TableStatisticsDdplr
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity
from schemas import Study
from tests import studies
from tests.privacy.checks.auditing import audit_mechanism

SAMPLES = 1500


def asked(question, **options):
    mechanism = {**question["mechanism"], **options}
    return Study(studies.document({**question, "mechanism": mechanism}, **studies.HOLDER)).questions[0]


def failures(question, mechanism):
    return {check.name for check in audit_mechanism(mechanism, question, SAMPLES).checks if not check.passed}


@pytest.mark.slow
@pytest.mark.parametrize("question", studies.TABLES, ids=lambda question: question["id"])
@pytest.mark.parametrize("options", [{}, {"average": 5}, {"count_share": "0.2"}], ids=str)
def test_the_real_mechanisms_pass(question, options):
    study_question = asked(question, **options)
    assert failures(study_question, mechanism_for(study_question)) == set()


@pytest.mark.slow
def test_fourth_moments_pass_and_unshared_budget_is_detected():
    question = asked(studies.LAPLACE_TABLE, fourth_moments=True)
    mechanism = mechanism_for(question)
    assert failures(question, mechanism) == set()
    mechanism.multipliers = [2 * multiplier for multiplier in mechanism.multipliers]
    assert "no two answers are further apart than the noise hides" in failures(question, mechanism)


@pytest.mark.slow
def test_too_small_noise_is_detected(monkeypatch):
    question = asked(studies.TABLE)
    mechanism = mechanism_for(question)
    draw = mechanism._noise
    monkeypatch.setattr(mechanism, "_noise", lambda *given: [4 * x // 5 for x in draw(*given)])
    assert "noise is not too small" in failures(question, mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("average", [1, 5])
def test_too_small_published_sensitivities_are_detected(average):
    """Plants DDPLR's Δ for the default table, and with averaging the correct Δ of single records."""

    class Published(TableStatisticsDdplr):
        def _multipliers(self, room):
            right = ddplr_sensitivity(self.radius, 1 << 20, self.intercept, self.average)
            single = ddplr_sensitivity(self.radius, 1 << 20, self.intercept, 1)
            taken = 2**0.5 * (1 << 40) if average == 1 else average * single
            return [int(multiplier * right / taken) for multiplier in super()._multipliers(room)]

    question = asked(studies.DDPLR_TABLE, intercept=False, **({"average": average} if average > 1 else {}))
    assert "no two answers are further apart than the noise hides" in failures(question, Published(question))
