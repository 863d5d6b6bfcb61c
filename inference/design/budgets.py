"""A study with other budgets, which a plan varies."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from decimal import ROUND_DOWN, Decimal
from typing import Any

from ldp_client import mechanism_for
from schemas import Question, Study

# Multiples of the study's epsilon, if a plan gets no list.
AROUND = (0.5, 1, 2)


def with_epsilons(study: Study, epsilons: Mapping[str, str]) -> dict[str, Any]:
    """Return the study's document with other epsilons; the spending of memoized mechanisms is scaled too."""
    document = deepcopy(study.document)
    for question in document["questions"]:
        if question["id"] in epsilons:
            mechanism, epsilon = question["mechanism"], epsilons[question["id"]]
            if "instantaneous_epsilon" in mechanism:
                part = Decimal(mechanism["instantaneous_epsilon"]) / Decimal(mechanism["epsilon"])
                again = (part * Decimal(epsilon)).quantize(Decimal("0.000001"), ROUND_DOWN)
                mechanism["instantaneous_epsilon"] = f"{again:f}"
            mechanism["epsilon"] = f"{Decimal(epsilon):f}"
    return document


def at_epsilon(study: Study, question_id: str, epsilon: str) -> Question:
    """The study's question with another epsilon. Raises StudyError."""
    question = Study(with_epsilons(study, {question_id: epsilon})).question(question_id)
    mechanism_for(question)
    return question


def around(study: Study, question_id: str) -> list[str]:
    """Half, once and twice the question's epsilon."""
    epsilon = float(study.question(question_id).mechanism.epsilon)
    return [f"{epsilon * factor:.6g}" for factor in AROUND]
