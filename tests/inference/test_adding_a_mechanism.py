"""A mechanism for choices from outside, by catalogue, file and reduction; from answers to the report page."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from inference import summarize
from inference.models import model_for
from ldp_client import mechanism_for, mechanisms_of
from ldp_client.bulk import perturb_many
from ldp_client.documents.catalogue import EPSILON, add_mechanism
from ldp_client.documents.catalogue import MECHANISMS as CATALOGUE
from ldp_client.mechanisms.base import MECHANISMS, register
from schemas import Report, Study
from summaries.reductions import REDUCTIONS, SUPPORTS
from tests import studies
from tests.inference.projective import Projective
from tests.inference.simulation import at_shares
from tests.statistics import seeded

SHARES = {7: [0.4, 0.25, 0.15, 0.1, 0.05, 0.05, 0.0], 13: [0.4, 0.3, *[0.3 / 11] * 11], 2: [0.3, 0.7]}


@pytest.fixture(scope="module", autouse=True)
def projective():
    add_mechanism("projective", "choice", "yes_no", epsilon=EPSILON)
    register(Projective)
    REDUCTIONS["projective"] = SUPPORTS
    yield
    del CATALOGUE["projective"], MECHANISMS["projective"], REDUCTIONS["projective"]


def study_of(choices: int, epsilon: str = "3") -> Study:
    own = {"mechanism": {"name": "projective", "epsilon": epsilon}}
    if choices == 2:
        return Study(studies.document({**studies.YES_NO, **own}))
    return Study(studies.document({**studies.CHOICE, "choices": {"count": choices}, **own}))


def reports_of(study: Study, shares, n: int) -> list[Report]:
    """In bulk."""
    (question,) = study.questions
    drawn = np.random.default_rng(1).choice(len(shares), n, p=shares)
    answers = drawn.astype(bool) if question.ask == "yes_no" else drawn
    payloads = perturb_many(mechanism_for(question), answers, seeded(answers))
    return [
        Report(f"{number:032x}", study.id, study.version, study.digest, {question.id: bytes(payload)})
        for number, payload in enumerate(payloads)
    ]


@pytest.mark.slow
def test_likelihood_of_added_mechanism_matches_its_law():
    """Up to a constant: the log probability of the reports, by enumeration."""
    study = study_of(7)
    (question,) = study.questions
    m = mechanisms_of(study)[question.id]
    reports = reports_of(study, SHARES[7], 300)
    part = summarize(study, reports).questions[question.id]
    model = model_for(question, part)
    counts = np.bincount([report.payloads[question.id][0] for report in reports], minlength=7)
    often, seldom = (float(Fraction(weight, sum(m.odds))) for weight in m.odds)
    law = lambda line, x: often if m.supported(bytes([line]), x) else seldom  # noqa: E731
    channel = np.array([[law(line, x) for x in range(7)] for line in range(7)])
    gaps = []
    with jax.enable_x64(True):
        for shares in np.random.default_rng(0).dirichlet(np.ones(7), 4):
            joint = log_density(model.program, (), dict(model.data), at_shares(jnp.asarray(shares)))[0]
            gaps.append(float(joint) - counts @ np.log(channel @ shares))
    assert np.ptp(gaps) < 1e-8
