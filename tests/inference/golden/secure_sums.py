"""Golden fits of secure sums: one total of all devices, with the noise of all that took part."""

import hashlib
from typing import NamedTuple

import numpy as np
from scipy import stats

from inference import Summary, fit
from ldp_client import mechanisms_of
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.inference.golden import records
from tests.inference.golden.case import KEPT, Case
from tests.inference.golden.choices import BERNOULLI, SHARE, Law
from tests.inference.golden.numbers import NORMAL, gaussian_scale, log_prior, masses_of
from tests.inference.golden.reference import Target, Values
from tests.statistics import seeded

DEVICES, TOLERATED = 1_000, 50
STATED = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
NODES = [f"https://{name}.example#" + f"a{place}" * 32 + f"b{place}" * 32 for place, name in enumerate("abc")]
# Of the devices' noise together, where neighbours' vectors are 1 apart.
NOISE = gaussian_scale(1.0) * np.sqrt(DEVICES / (DEVICES - TOLERATED - 1))


class Total(NamedTuple):
    study: Study
    total: Values

    @property
    def digest(self):
        return hashlib.sha256(repr(self.total.tolist()).encode()).hexdigest()

    def scaled(self, distance):
        """In units of what devices add up, where neighbours' vectors are so far apart in these units."""
        return self.total / 2.0**20 / np.sqrt(DEVICES - TOLERATED - 1) * distance * gaussian_scale(1.0)


def summed(question, answers):
    """What the nodes find: the sum of all devices' vectors."""
    protocol = {"name": "secure_sum", "nodes": NODES, "devices": DEVICES, "max_faulty": TOLERATED}
    study = Study(studies.document(dict(question), protocol=protocol))
    mechanism, source = mechanisms_of(study)[question["id"]], seeded(question["id"], "summed")
    vectors = [mechanism.noisy_vector(mechanism.quantise(one), source) for one in answers]
    return Total(study, np.sum([np.frombuffer(one, "<i8") for one in vectors], axis=0))


def fitted(data):
    (question,) = data.study.questions
    part = QuestionSummary(DEVICES, np.asarray(data.total, np.int64))
    summary = Summary(data.study.id, data.study.version, data.study.digest, {question.id: part})
    return dict(fit(data.study, summary, draws=KEPT)[question.id].draws)


def _of_sum(law, distance, moments, **start):
    """The posterior from a sum of vectors; moments: of one vector, (points, entries) and their covariance."""

    def target(data):
        total = data.scaled(distance)

        def log_density(points):
            density = records.log_density_of_sum(total, DEVICES, *moments(points), distance * NOISE)
            return np.asarray(density + law.log_prior(points))

        return Target(law.space, log_density, law.quantities, start)

    return target


def _shares(shares):
    """Moments of one device's answers as ones and zeros."""
    own = np.einsum("pi,ij->pij", shares, np.eye(shares.shape[1]))
    return shares, own - shares[:, :, None] * shares[:, None]


NUMBER = Law(
    {"mean": "real", "sd": "positive"},
    lambda points: masses_of(stats.norm(points["mean"], points["sd"]), 0.0, 12.0),
    lambda points: log_prior(NORMAL["model"]["prior"], points),
)


def _cells(points):
    """A histogram of 8 cells, people beyond the bounds in the outer ones."""
    masses = NUMBER.shares(points)
    cells = masses[1:-1].reshape(8, -1, masses.shape[1]).sum(axis=1)
    cells[0], cells[-1] = cells[0] + masses[0], cells[-1] + masses[-1]
    return _shares(cells.T)


def _two_sums(points):
    """Of u and 3/2 u², u from −1 to 1 between the bounds."""
    u = np.concatenate([[-1.0], (np.arange(200) + 0.5) / 100 - 1, [1.0]])
    values, masses = np.stack([u, 1.5 * u**2]), NUMBER.shares(points)
    mean = (values @ masses).T
    second = np.einsum("ik,jk,kp->pij", values, values, masses)
    return mean, second - mean[:, :, None] * mean[:, None]


# Each field has its own mean and sd, and its own two sums.
FIELDS = ("age", "rate")
MARGINALS = {
    "id": "spread",
    "ask": "record",
    "features": [{"id": "age", "bounds": ["0", "12"]}],
    "response": {"id": "rate", "bounds": ["0", "12"]},
    "model": {
        "name": "marginals",
        "prior": {key: dict.fromkeys(FIELDS, one) for key, one in NORMAL["model"]["prior"].items()},
    },
}


def _marginals(data):
    """Two fields are as two questions, whose vectors are as far apart as both together."""
    distance = 2 * 2**0.5
    totals = data.scaled(distance).reshape(2, 2)

    def log_density(points):
        found = 0.0
        for name, total in zip(FIELDS, totals, strict=True):
            own = {key: points[f"{key}[{name}]"] for key in NUMBER.space}
            law = records.log_density_of_sum(total, DEVICES, *_two_sums(own), distance * NOISE)
            found = found + law + NUMBER.log_prior(own)
        return np.asarray(found)

    space = {f"{key}[{name}]": kind for name in FIELDS for key, kind in NUMBER.space.items()}
    return Target(space, log_density, start={name: 5 if "mean" in name else 2 for name in space})


def _regression(data):
    sums, noise = [(data.scaled(records.DISTANCE), DEVICES)], records.DISTANCE * NOISE
    return records.regression_of_sums(sums, noise, records.factors_of(records.PAIRS))


AGES = np.random.default_rng(5).normal(5, 2, DEVICES).tolist()
YES = (np.random.default_rng(6).random(DEVICES) < 0.3).tolist()
RATES = np.random.default_rng(8).normal(7, 3, DEVICES).tolist()
BOTH = [{"age": age, "rate": rate} for age, rate in zip(AGES, RATES, strict=True)]


def _case(question, answers, target, **more):
    asked = {**question, "mechanism": {**STATED, **more}}
    return Case(lambda: summed(asked, answers), fitted, target)


CASES = {
    "bernoulli": _case(BERNOULLI, YES, _of_sum(SHARE, 1.0, lambda points: _shares(points["p"][:, None]))),
    "normal, cells": _case(NORMAL, AGES, _of_sum(NUMBER, 2**0.5, _cells, mean=5, sd=2), cells=8),
    "normal": _case(NORMAL, AGES, _of_sum(NUMBER, 2.0, _two_sums, mean=5, sd=2)),
    "marginals": _case(MARGINALS, BOTH, _marginals, statistic="marginals", share="0.2"),
    "linear": _case(records.question_of(STATED), records.people(DEVICES), _regression),
}
