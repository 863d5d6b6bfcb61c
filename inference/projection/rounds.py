"""The results of a first round: every field's moments, the number of records, and of noise sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.models.clipping import cuts_records
from inference.models.from_reports import holder_statistics
from inference.models.holders import rows_of
from inference.results.saving import RESULT
from inference.results.verdict import USABLE
from inference.units import field_units
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.tables import TableMechanism
from schemas import Question, Study
from schemas.disk import read_bytes
from summaries import summarize

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
    found = zip(asked, _posteriors(study, asked, path), strict=True)
    return [FirstRound(question, rows, devices, devices, {}) for question, rows in found]


def _posteriors(study: Study, asked: list[Question], folder: Path) -> list[Rows]:
    path = folder / RESULT
    try:
        found = json.loads(read_bytes(path))
        posteriors = [found["questions"][question.id]["parameters"] for question in asked]
        digest = found["study_digest"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} holds no posterior of {asked[0].id}: ldpkit fit writes it", code="derive.no_posterior"
        ) from None
    if digest != study.digest:
        raise InputError(f"{path} is about another study document", code="derive.posterior_of_other_study")
    return posteriors


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
        rounds.append(FirstRound(question, rows, records, statistics.holders, _prior(study, question)))
    return rounds


def _prior(study: Study, question: Question) -> Mapping[str, Any]:
    (asked,) = [one for one in study.document["questions"] if one["id"] == question.id]
    return {name: law for name, law in asked["model"].get("prior", {}).items() if name != "centre"}


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
