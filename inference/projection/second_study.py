"""The second study of DCA Algorithm 2: the fields of the first, with bounds from its posterior."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from inference.projection.rounds import FirstRound, Rows, first_rounds
from inference.projection.thresholds import Projection, Thresholds, find_thresholds
from ldp_client import mechanism_for
from ldp_client.documents.question import Field
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.tables import TableMechanism
from schemas import Question, Study

# Decimals that are written down; never above the exact value.
PLACES = 12
# Members of a mechanism that only a first round states.
OF_FIRST_ROUND = ("statistic", "share")
# Members of a document that only a first study has.
OF_FIRST_STUDY = ("opens", "closes", "sections")


@dataclass(frozen=True)
class Projected:
    """One question's second round.

    document: the question. thresholds: the results of the search.
    """

    document: dict[str, Any]
    thresholds: Thresholds


def second_study(study: Study, path: Path, new_id: str, seed: int = 0) -> tuple[Study, list[Projected]]:
    """Return the study that spends the remaining budget on projected records of a secure sum or of holders.

    path: the output of `ldpkit fit` for the first study; or holders' reports. Every question that states a
    share is asked again, under a new id: nodes sum one version of a study alone. Raises InputError,
    StudyError.
    """
    found = [_projected(study, first, seed) for first in first_rounds(study, path)]
    questions = [one.document for one in found]
    document = {
        **_kept(study),
        **_sections(study, questions),
        "id": new_id,
        "version": 1,
        "questions": questions,
    }
    return Study(document), found


def rest_of_budget(question: Question) -> tuple[str, str]:
    """ε and δ that the first round's share leaves, as decimals, rounded down."""
    stated = question.mechanism
    assert stated.share is not None
    share = Fraction(stated.share.numerator, stated.share.denominator)
    down, left = Context(prec=PLACES, rounding=ROUND_DOWN), []
    for spent in (stated.epsilon, stated.delta):
        rest = Fraction(spent.numerator, spent.denominator) * (1 - share) / share
        left.append(f"{down.divide(Decimal(rest.numerator), Decimal(rest.denominator)).normalize():f}")
    return left[0], left[1]


def field_spread(field: Field, rows: Rows) -> tuple[float, float]:
    """Return mean and sd of one person's value; the sd rather too large: too narrow bounds mislead more.

    One posterior sd is added to it, and the uncertainty of the mean.
    """
    mean, sd = rows[f"mean[{field.id}]"], rows[f"sd[{field.id}]"]
    return mean["mean"], hypot(sd["mean"] + sd["sd"], mean["sd"])


def projected_bounds(field: Field, rows: Rows, threshold: float) -> tuple[str, str]:
    """Return bounds at so many sd around the mean, within the assumed bounds; the latter if none is left."""
    assert field.bounds is not None
    low, high = (float(bound) for bound in field.bounds)
    mean, sd = field_spread(field, rows)
    digits = max(0, 2 - int(np.floor(np.log10(sd))))
    inner = [round(mean - threshold * sd, digits), round(mean + threshold * sd, digits)]
    texts = [
        str(field.bounds[0]) if inner[0] <= low else f"{inner[0]:.{digits}f}",
        str(field.bounds[1]) if inner[1] >= high else f"{inner[1]:.{digits}f}",
    ]
    if not low <= float(texts[0]) < float(texts[1]) <= high:
        return str(field.bounds[0]), str(field.bounds[1])
    return texts[0], texts[1]


def _kept(study: Study) -> dict[str, Any]:
    return {name: value for name, value in study.document.items() if name not in OF_FIRST_STUDY}


def _sections(study: Study, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first study's sections, with the questions that are asked again; empty ones are dropped."""
    ids = {question["id"] for question in questions}
    kept = [
        {**section, "questions": [one for one in section["questions"] if one in ids]}
        for section in study.document.get("sections", [])
    ]
    kept = [section for section in kept if section["questions"]]
    return {"sections": kept} if kept else {}


def _projected(study: Study, first: FirstRound, seed: int) -> Projected:
    question, rows = first.question, first.rows
    d, n = len(question.features), first.records
    rest = rest_of_budget(question)
    found = find_thresholds(d, n, lambda norm: _total_noise(study, first, rest, norm), seed)
    document = _regression(study, first, rest, str(found.projection.norm))
    for field, item in zip(question.features, document["features"], strict=True):
        item["bounds"] = list(projected_bounds(field, rows, found.projection.feature))
    response = question.fields[-1]
    document["response"]["bounds"] = list(projected_bounds(response, rows, found.projection.response))
    document["norm"] = f"{_fitting_norm(question, rows, document, found.projection):.6f}"
    return Projected(document, found)


def _fitting_norm(
    question: Question, rows: Rows, document: Mapping[str, Any], projection: Projection
) -> float:
    """The norm for bounds that the assumed ones cut: a feature of one sd is longer between them."""
    stretch = []
    for field, item in zip(question.features, document["features"], strict=True):
        low, high = (float(bound) for bound in item["bounds"])
        stretch.append(2 * projection.feature * field_spread(field, rows)[1] / (high - low))
    longer = float(np.sqrt(np.mean(np.square(stretch))))
    return min(projection.norm * longer, sqrt(len(question.features)))


def _regression(study: Study, first: FirstRound, budget: tuple[str, str], norm: str) -> dict[str, Any]:
    """Return the question, with the assumed bounds, as a regression under this budget.

    Everything else is as its author wrote it: people are asked the same, in the same words and units.
    """
    (asked,) = [deepcopy(one) for one in study.document["questions"] if one["id"] == first.question.id]
    stated = {name: value for name, value in asked["mechanism"].items() if name not in OF_FIRST_ROUND}
    prior = {"prior": first.prior} if first.prior else {}
    return {
        **asked,
        "norm": norm,
        "mechanism": {**stated, "epsilon": budget[0], "delta": budget[1]},
        "model": {"name": "linear_regression", **prior},
    }


def _total_noise(study: Study, first: FirstRound, budget: tuple[str, str], norm: float) -> float:
    """sd of the total's noise on each svec coordinate, from the integers that devices or holders use."""
    document = {**_kept(study), "questions": [_regression(study, first, budget, f"{norm:.6f}")]}
    mechanism = mechanism_for(Study(document).questions[0])
    if isinstance(mechanism, TableMechanism):
        noise_sd = mechanism.noise_scale[mechanism.coordinates.index((1, 1))]
    else:
        assert isinstance(mechanism, GaussianStatistics)
        noise_sd = mechanism.noise_sd
    return noise_sd * sqrt(first.noises)


def in_words(found: Projected) -> list[str]:
    """Return the results of the search, and the cost of the projection."""
    document, (feature, response, _) = found.document, found.thresholds.projection
    spent = f"epsilon {document['mechanism']['epsilon']}, delta {document['mechanism']['delta']}"
    bounds = [
        f"  {field['id']:28} {field['bounds'][0]} to {field['bounds'][1]}"
        for field in (*document["features"], document["response"])
    ]
    return [
        f"{document['id']}: {spent} are left; features within {feature:g} sd of their mean, the response "
        f"within {response:g}, norm {document['norm']}",
        *bounds,
        f"  on auxiliary data noise and projection cost {found.thresholds.error:.2%} of the response's "
        "variance",
        f"  projection alone turns a slope of 1 into {found.thresholds.slopes:.3f} there; the fit does not "
        "undo that",
    ]
