"""What a golden fit is of: a study and its reports, how it is fitted, and what its posterior should be."""

import hashlib
from collections import namedtuple
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from inference import analyse, fit
from inference.analyses.population import Population
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from schemas import Report, Study
from tests import studies
from tests.statistics import seeded

# Of each chain: four of them tell a mean to 0.03 sd, and an sd to 2 %. Chains that do not mix draw on.
KEPT = 500


class Collected(NamedTuple):
    study: Study
    reports: list[Report]

    @property
    def digest(self):
        """Of what was reported, whatever the study document and report ids look like."""
        rows = [(sorted(one.payloads.items()), sorted((one.public or {}).items())) for one in self.reports]
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    def payloads(self, question):
        return [report.payloads[question] for report in self.reports]


# Functions: what is fitted, draws of its posterior by this code, and the posterior that it should be.
Case = namedtuple("Case", "data draws target")


def collected(name, questions, people, **fields):
    """A study of one question, or some, and a report of each person.

    people: their answers to the one question, or {question or public field: answer}. name: what seeds noise.
    """
    asked = [questions] if isinstance(questions, Mapping) else list(questions)
    study = Study(studies.document(*map(dict, asked), **fields))
    mechanisms, source = mechanisms_of(study), seeded(name)
    alone = asked[0]["id"] if isinstance(questions, Mapping) else None
    answers = [{alone: one} if alone else one for one in people]
    if not any(question.repeats for question in study.questions):
        return Collected(study, [perturb_answers(study, mechanisms, one, source) for one in answers])
    # The first report of each person, whose permanent answer is kept elsewhere.
    reports = []
    for place, given in enumerate(answers):
        payloads = {name: mechanisms[name].perturb(one, source) for name, one in given.items()}
        reports.append(Report(f"{place:032x}", study.id, study.version, study.digest, payloads))
    return Collected(study, reports)


def fitted(data):
    (posterior,) = fit(data.study, data.reports, draws=KEPT).values()
    return dict(posterior.draws)


def approximated(data):
    """As `fitted` by the Gaussian approximation, or by the sampler where that finds itself poor.

    It compiles less, and its draws are weighted by the posterior density itself.
    """
    (posterior,) = fit(data.study, data.reports, method="gaussian_approx").values()
    is_poor = any("use --method nuts" in reason for reason in posterior.verdict.reasons)
    return fitted(data) if is_poor else dict(posterior.draws)


def analysed(formula, priors, census=None):
    over = None if census is None else Population(census=census)

    def draws(data):
        found = analyse(data.study, data.reports, formula, priors=priors, population=over, draws=KEPT)
        return {**found.draws, **{one.name: np.asarray(one.draws) for one in found.quantities}}

    return draws


def stated(distribution, **numbers):
    said = {key: value if isinstance(value, (list, dict)) else str(value) for key, value in numbers.items()}
    return {"distribution": distribution, **said}
