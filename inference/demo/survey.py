"""The survey: 6,366 women asked in 1974 about marriage and affairs (Fair 1978; ships inside statsmodels)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldp_client.documents.errors import InputError
from schemas import Study

OCCUPATIONS = (
    "student",
    "farm, semi-skilled or unskilled work",
    "white-collar",
    "teacher, nurse, artist, technician or skilled work",
    "managerial or business",
    "professional with advanced degree",
)
FEATURES: list[dict[str, Any]] = [
    {"id": "age", "bounds": ["17", "43"]},
    {"id": "years_married", "bounds": ["0", "23"]},
    {"id": "religiousness", "bounds": ["1", "4"]},
    {"id": "education", "bounds": ["9", "20"]},
]
# Features scaled to their bounds have a norm below 1.5 for 93 % of the people.
NORM = "1.5"
DELTA = "1e-6"


def study_for(epsilon: str) -> Study:
    """The study document with `epsilon` for each of its six questions. Raises StudyError."""
    return Study(
        {
            "format": "ldpkit.study/1",
            "id": "marriage-survey",
            "version": 1,
            "title": "Marriage and affairs, 1974",
            "purpose": "How common affairs are, and what goes with them, without learning anyone's answer.",
            "questions": _questions(epsilon),
        }
    )


def _questions(epsilon: str) -> list[dict[str, Any]]:
    pure = {"epsilon": epsilon}
    return [
        {
            "id": "affair",
            "ask": "yes_no",
            "text": "Have you ever had an affair?",
            "mechanism": {"name": "randomized_response", **pure},
            "model": {"name": "bernoulli"},
        },
        {
            "id": "occupation",
            "ask": "choice",
            "text": "What is your occupation?",
            "choices": list(OCCUPATIONS),
            "mechanism": {"name": "oue", **pure},
            "model": {"name": "multinomial"},
        },
        {
            "id": "age",
            "ask": "number",
            "text": "How old are you?",
            "bounds": ["15", "45"],
            "mechanism": {"name": "laplace", **pure},
            "model": {"name": "normal"},
        },
        {
            "id": "years-married",
            "ask": "number",
            "text": "How many years have you been married?",
            "bounds": ["0", "25"],
            "mechanism": {"name": "laplace", **pure},
            "model": {"name": "exponential"},
        },
        *_regressions(epsilon),
    ]


def _regressions(epsilon: str) -> list[dict[str, Any]]:
    record = {"ask": "record", "features": FEATURES, "norm": NORM}
    statistics = {"name": "gaussian_statistics", "epsilon": epsilon, "delta": DELTA}
    return [
        {
            "id": "rating-model",
            **record,
            "text": "How a marriage is rated (1 to 5), from age, years married, religiousness, education",
            "response": {"id": "rating", "bounds": ["1", "5"]},
            "mechanism": statistics,
            "model": {"name": "linear_regression"},
        },
        {
            "id": "affair-model",
            **record,
            "text": "Whether someone had an affair, from age, years married, religiousness, education",
            "response": {"id": "affair", "ask": "yes_no"},
            "mechanism": statistics,
            "model": {"name": "logistic_regression"},
        },
    ]


def answers_of(people: int | None, seed: int) -> list[dict[str, Any]]:
    """The true answers of `people` women drawn with `seed` (None: all). Raises InputError."""
    from statsmodels.datasets import fair

    table = fair.load_pandas().data
    if people is not None and not 1 <= people <= len(table):
        raise InputError(f"--devices must be from 1 to {len(table)}")
    chosen = np.random.default_rng(seed).permutation(len(table))[:people]
    return [_answers(row) for row in table.iloc[chosen].to_dict("records")]


def _answers(row: dict[str, float]) -> dict[str, Any]:
    affair = row["affairs"] > 0
    features = {
        "age": row["age"],
        "years_married": row["yrs_married"],
        "religiousness": row["religious"],
        "education": row["educ"],
    }
    return {
        "affair": affair,
        "occupation": OCCUPATIONS[int(row["occupation"]) - 1],
        "age": row["age"],
        "years-married": row["yrs_married"],
        "rating-model": {**features, "rating": row["rate_marriage"]},
        "affair-model": {**features, "affair": affair},
    }
