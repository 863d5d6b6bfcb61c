"""The second study of DCA Algorithm 2: the fields of the first, with bounds from its results.

The results of the first round are every field's moments, the number of records, and of noise sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from inference.likelihoods.holders import HolderStatistics
from inference.models.clipping import cuts_records
from inference.models.holder_regression import holder_statistics
from inference.models.record_sums import rows_of
from inference.projection.thresholds import Thresholds, find_thresholds
from inference.results.saving import RESULT
from inference.results.verdict import USABLE
from inference.units import field_units
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.documents.question import Field
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.tables.base import TableMechanism
from schemas import Question, Study
from schemas.disk import read_bytes
from summaries import summarize

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
    # 1. Project each question that is asked again.
    found = [_projected(study, first, seed) for first in first_rounds(study, path)]
    questions = [one.document for one in found]
    # 2. Keep the sections of these questions; empty ones are dropped.
    ids = {question["id"] for question in questions}
    sections = [
        {**section, "questions": [name for name in section["questions"] if name in ids]}
        for section in study.document.get("sections", [])
    ]
    sections = [section for section in sections if section["questions"]]
    document = {**_kept(study), "id": new_id, "version": 1, "questions": questions}
    return Study({**document, "sections": sections} if sections else document), found


def rest_of_budget(question: Question) -> tuple[str, str]:
    """ε and δ that the first round's share leaves, as decimals, rounded down."""
    stated = question.mechanism
    assert stated.share is not None
    down, left = Context(prec=PLACES, rounding=ROUND_DOWN), []
    for spent in (stated.epsilon, stated.delta):
        rest = spent * (1 - stated.share) / stated.share
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
    # A feature of one sd is longer between bounds that the assumed ones cut.
    stretch = []
    for field, item in zip(question.features, document["features"], strict=True):
        low, high = (float(bound) for bound in item["bounds"])
        stretch.append(2 * found.projection.feature * field_spread(field, rows)[1] / (high - low))
    longer = float(np.sqrt(np.mean(np.square(stretch))))
    document["norm"] = f"{min(found.projection.norm * longer, sqrt(d)):.6f}"
    return Projected(document, found)


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


MARGINALS = "marginals"
Rows = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class FirstRound:
    """rows: mean and sd of "mean[field]" and "sd[field]" in own units. noises: of devices or of holders.

    prior: the document's priors of the regression that still hold with other bounds: all but `centre`, the
    response at the middle of the features' bounds.
    """

    question: Question
    rows: Rows
    records: int
    noises: int
    prior: Mapping[str, Any]


def first_rounds(study: Study, path: Path) -> list[FirstRound]:
    """Return the first round of every question that states its share of a budget. Raises InputError.

    path: the folder that `ldpkit fit` wrote about marginals, or the file of data holders' reports.
    """
    if study.respondent == "holder":
        return _of_holders(study, path)
    asked = [question for question in study.questions if question.mechanism.statistic == MARGINALS]
    if not asked:
        raise InputError(
            f"study {study.id} has no question with the statistic {MARGINALS!r}",
            code="derive.no_marginals_question",
        )
    assert study.protocol is not None
    devices = study.protocol.devices
    file = path / RESULT
    try:
        found = json.loads(read_bytes(file))
        posteriors: list[Rows] = [found["questions"][question.id]["parameters"] for question in asked]
        digest = found["study_digest"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{file} holds no posterior of {asked[0].id}: ldpkit fit writes it", code="derive.no_posterior"
        ) from None
    if digest != study.digest:
        raise InputError(f"{file} is about another study document", code="derive.posterior_of_other_study")
    return [
        FirstRound(question, rows, devices, devices, {})
        for question, rows in zip(asked, posteriors, strict=True)
    ]


def doubts_of(study: Study, path: Path) -> list[str]:
    """Return the questions with a bad verdict in the output of `ldpkit fit`, with their reasons."""
    if study.respondent == "holder":
        return []
    found = json.loads(read_bytes(path / RESULT))["questions"]
    judged = {name: one.get("verdict", {}) for name, one in found.items()}
    return [
        f"{name}: {one.get('word')}: {'; '.join(one.get('reasons', []))}"
        for name, one in judged.items()
        if one.get("word") != USABLE
    ]


def _of_holders(study: Study, path: Path) -> list[FirstRound]:
    asked = [question for question in study.questions if question.mechanism.share is not None]
    if not asked:
        raise InputError(
            f"study {study.id} has no table question that states its share of the budget",
            code="derive.no_budget_share",
        )
    summary, rounds = summarize(study, str(path)), []
    for question in asked:
        mechanism = mechanism_for(question)
        assert isinstance(mechanism, TableMechanism)
        statistics = holder_statistics(mechanism, summary.questions[question.id])
        if statistics.holders == 0:
            raise InputError(f"{path} has no report of {question.id}", code="derive.no_report")
        records = max(1, round(float(rows_of(statistics).expected.sum())))
        rows = moments_of(question, statistics, records)
        (document,) = [one for one in study.document["questions"] if one["id"] == question.id]
        prior = {name: law for name, law in document["model"].get("prior", {}).items() if name != "centre"}
        rounds.append(FirstRound(question, rows, records, statistics.holders, prior))
    return rounds


def moments_of(question: Question, statistics: HolderStatistics, records: int) -> Rows:
    """Return the mean and sd of every field from all holders' noisy Σv and Σv², with their uncertainty.

    A variance is never below its noise's sd. Raises InputError if the norm must have cut records: the sums
    are then of other values than the fields'.
    """
    sums, noise = statistics.sums.sum(axis=0) / records, statistics.noise * sqrt(statistics.holders) / records
    mean, squares = np.clip(sums[0, 1:], -1, 1), np.diag(sums)[1:]
    if cuts_records(question, squares[:-1], np.diag(noise)[1:-1]):
        raise InputError(
            f"{question.id}: the norm {question.norm} cuts too many records to tell how fields are spread: "
            "ask again with a larger one; the first study can be fitted by itself",
            code="derive.norm_too_small",
        )
    unsure = np.hypot(np.diag(noise)[1:], 2 * mean * noise[0, 1:])
    sd = np.sqrt(np.maximum(squares - mean**2, unsure))
    rows: dict[str, Mapping[str, float]] = {}
    for index, field in enumerate(question.fields):
        zero, unit = field_units(field)
        own, around = unit * float(sd[index]), unit * float(noise[0, index + 1])
        spread = unit * float(unsure[index] / (2 * sd[index]))
        rows[f"mean[{field.id}]"] = {
            "mean": zero + unit * float(mean[index]),
            "sd": hypot(around, own / sqrt(records)),
        }
        rows[f"sd[{field.id}]"] = {"mean": own, "sd": hypot(spread, own / sqrt(2 * records))}
    return rows
