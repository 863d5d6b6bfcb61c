"""The survey: 6,366 women asked in 1974 about marriage and affairs (Fair 1978; ships inside statsmodels)."""

from typing import Any

import numpy as np

from ldp_client.documents.errors import UsageError
from schemas import Study

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


def survey_study() -> Study:
    """Return the study document; the epsilons of its six questions average 1."""
    return Study(
        {
            "format": "ldpkit.study/1",
            "id": "marriage-survey",
            "version": 1,
            "title": "Marriage and affairs, 1974",
            "purpose": "How common affairs are, and what goes with them, without learning anyone's answer.",
            "questions": [_question(*row) for row in QUESTIONS],
        }
    )


# The id, kind and text of each question, its mechanism, epsilon and model, and what else its kind needs.
# Regressions need the largest epsilons: with so few people, one feature's effect shows at 1, two features'
# effects at 2, four numbers' effects at neither. Averages of numbers need the least.
QUESTIONS: tuple[tuple[str, str, str, str, str, str, dict[str, Any]], ...] = (
    ("affair", "yes_no", "Have you ever had an affair?", "randomized_response", "0.75", "bernoulli", {}),
    (
        "occupation", "choice", "What is your occupation?",
        "oue", "1", "multinomial", {"choices": list(OCCUPATIONS)},
    ),
    ("age", "number", "How old are you?", "laplace", "0.75", "normal", {"bounds": ["15", "45"]}),
    (
        "years-married", "number", "How many years have you been married?",
        "laplace", "0.5", "exponential", {"bounds": ["0", "25"]},
    ),
    (
        "children-model", "record",
        "How many children you have, and whether you have been married for six years or more",
        "sampled_products", "1", "linear_regression",
        {"features": [LONG], "response": {"id": "children", "bounds": ["0", "6"]}},
    ),
    (
        "affair-model", "record",
        "Whether you had an affair, call your marriage good or very good, and have been married "
        "for six years or more",
        "sampled_products", "2", "logistic_regression",
        {"features": [HAPPY, LONG], "response": {"id": "affair", "ask": "yes_no"}},
    ),
)  # fmt: skip


def _question(
    name: str, ask: str, text: str, mechanism: str, epsilon: str, model: str, more: dict[str, Any]
) -> dict[str, Any]:
    stated = {"name": mechanism, "epsilon": epsilon}
    return {"id": name, "ask": ask, "text": text, "mechanism": stated, "model": {"name": model}, **more}


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
