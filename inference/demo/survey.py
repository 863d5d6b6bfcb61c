"""The survey: 6,366 women asked in 1974 about marriage and affairs (Fair 1978; ships inside statsmodels)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldp_client.documents.errors import UsageError
from schemas import Rational, Study

OCCUPATIONS = (
    "student",
    "farm, semi-skilled or unskilled work",
    "white-collar",
    "teacher, nurse, artist, technician or skilled work",
    "managerial or business",
    "professional with advanced degree",
)
HAPPY = {"id": "happy_marriage", "ask": "yes_no"}
LONG = {"id": "six_years_married", "ask": "yes_no"}
# On a rating from 1, very poor, to 5.
GOOD, LONG_YEARS = 4, 6
# In parts of epsilon. Regressions need most: with so few people, one feature's effect shows at 1, two
# features' effects at 2, four numbers' effects at neither. Averages of numbers need least.
SHARES = {
    "affair": "0.75",
    "occupation": "1",
    "age": "0.75",
    "years-married": "0.5",
    "children-model": "1",
    "affair-model": "2",
}


def study_for(epsilon: str) -> Study:
    """Return the study document; its six questions average `epsilon` (SHARES). Raises StudyError."""
    return Study(
        {
            "format": "ldpkit.study/1",
            "id": "marriage-survey",
            "version": 1,
            "title": "Marriage and affairs, 1974",
            "purpose": "How common affairs are, and what goes with them, without learning anyone's answer.",
            "questions": [*_questions(epsilon), *_regressions(epsilon)],
        }
    )


def _part(epsilon: str, question: str) -> str:
    """Return a question's epsilon. The study rejects it if it is not a number."""
    try:
        return str(Rational.parse(epsilon) * Rational.parse(SHARES[question]))
    except ValueError:
        return epsilon


def _questions(epsilon: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "affair",
            "ask": "yes_no",
            "text": "Have you ever had an affair?",
            "mechanism": {"name": "randomized_response", "epsilon": _part(epsilon, "affair")},
            "model": {"name": "bernoulli"},
        },
        {
            "id": "occupation",
            "ask": "choice",
            "text": "What is your occupation?",
            "choices": list(OCCUPATIONS),
            "mechanism": {"name": "oue", "epsilon": _part(epsilon, "occupation")},
            "model": {"name": "multinomial"},
        },
        {
            "id": "age",
            "ask": "number",
            "text": "How old are you?",
            "bounds": ["15", "45"],
            "mechanism": {"name": "laplace", "epsilon": _part(epsilon, "age")},
            "model": {"name": "normal"},
        },
        {
            "id": "years-married",
            "ask": "number",
            "text": "How many years have you been married?",
            "bounds": ["0", "25"],
            "mechanism": {"name": "laplace", "epsilon": _part(epsilon, "years-married")},
            "model": {"name": "exponential"},
        },
    ]


def _regressions(epsilon: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "children-model",
            "ask": "record",
            "text": "How many children you have, and whether you have been married for six years or more",
            "features": [LONG],
            "response": {"id": "children", "bounds": ["0", "6"]},
            "mechanism": {"name": "sampled_products", "epsilon": _part(epsilon, "children-model")},
            "model": {"name": "linear_regression"},
        },
        {
            "id": "affair-model",
            "ask": "record",
            "text": "Whether you had an affair, call your marriage good or very good, and have been married "
            "for six years or more",
            "features": [HAPPY, LONG],
            "response": {"id": "affair", "ask": "yes_no"},
            "mechanism": {"name": "sampled_products", "epsilon": _part(epsilon, "affair-model")},
            "model": {"name": "logistic_regression"},
        },
    ]


def answers_of(people: int | None, seed: int) -> list[dict[str, Any]]:
    """Return the true answers of `people` women drawn with `seed` (None: all). Raises InputError."""
    from statsmodels.datasets import fair

    table = fair.load_pandas().data
    if people is not None and not 1 <= people <= len(table):
        raise UsageError(f"--n must be from 1 to {len(table)}", code="demo.wrong_count")
    chosen = np.random.default_rng(seed).permutation(len(table))[:people]
    return [_answers(row) for row in table.iloc[chosen].to_dict("records")]


def _answers(row: dict[str, float]) -> dict[str, Any]:
    affair, years = row["affairs"] > 0, row["yrs_married"]
    long = years >= LONG_YEARS
    return {
        "affair": affair,
        "occupation": OCCUPATIONS[int(row["occupation"]) - 1],
        "age": row["age"],
        "years-married": years,
        "children-model": {LONG["id"]: long, "children": row["children"]},
        "affair-model": {HAPPY["id"]: row["rate_marriage"] >= GOOD, LONG["id"]: long, "affair": affair},
    }
