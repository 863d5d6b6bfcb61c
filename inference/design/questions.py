"""The questions that a plan is of, at each epsilon, and how many answers they get. Loads no JAX."""

import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from decimal import ROUND_DOWN, Decimal

from inference.design.information import has_information
from inference.design.records import is_line_of_records
from inference.limits import check_devices, check_seed
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question, Study
from schemas.disk import chosen_questions
from summaries import check_study

# Multiples of the study's epsilon, if a plan gets no list.
AROUND = (0.5, 1, 2)


def has_formula(question: Question) -> bool:
    """Return True if a question's widths need no simulation."""
    return has_information(question) or is_line_of_records(question)


def check_plannable(question: Question) -> None:
    """Raise InputError for a question that has no formula, and that cannot be simulated."""
    if not has_formula(question):
        from inference.design.calibration import empty_model

        empty_model(question)


def plannable(study: Study, question_id: str | None, check: Callable[[Question], object]) -> list[str]:
    """Return the chosen question, or all that pass a check; the others are named on standard error.

    Raises InputError if none passes.
    """
    chosen = chosen_questions(study.questions, question_id)
    names = []
    for question in chosen:
        try:
            check(question)
        except InputError as error:
            if len(chosen) == 1:
                raise
            print(f"left out: {error}", file=sys.stderr, flush=True)
            continue
        names.append(question.id)
    if not names:
        raise InputError("no question of this study can be planned", code="plan.no_question_to_plan")
    return names


def questions_to_plan(
    study: Study, question_id: str, devices: Sequence[int], epsilons: Sequence[str], seed: int
) -> list[Question]:
    """Return the question at each epsilon. Raises the errors of `plan`, before anything is simulated."""
    check_study(study)
    check_seed(seed)
    if not any(question.id == question_id for question in study.questions):
        raise InputError(f"the study has no question {question_id!r}", code="study.unknown_question")
    if isinstance(epsilons, str):
        raise UsageError(
            "epsilons must be a list of decimals, such as ['0.5', '1']", code="plan.epsilons_wrong_form"
        )
    for n in devices:
        check_devices(n)
        answers_of(study, n)
    stated = float(study.question(question_id).mechanism.epsilon)
    around = [f"{factor * stated:.6g}" for factor in AROUND]
    questions = []
    for epsilon in epsilons or around:
        document = deepcopy(study.document)
        (mechanism,) = [asked["mechanism"] for asked in document["questions"] if asked["id"] == question_id]
        if "instantaneous_epsilon" in mechanism:
            # A memoized mechanism spends the same part of its epsilon each time.
            part = Decimal(mechanism["instantaneous_epsilon"]) / Decimal(mechanism["epsilon"])
            again = (part * Decimal(epsilon)).quantize(Decimal("0.000001"), ROUND_DOWN)
            mechanism["instantaneous_epsilon"] = f"{again:f}"
        mechanism["epsilon"] = f"{Decimal(epsilon):f}"
        questions.append(Study(document).question(question_id))
        mechanism_for(questions[-1])
    return questions


def answers_of(study: Study, devices: int) -> int:
    """Return how many answers each question gets from so many devices: fewer if each device answers one.

    Raises InputError if there would be none.
    """
    if not study.sample_one_question:
        return devices
    if devices < len(study.questions):
        raise InputError(
            f"{devices} devices are too few: each answers 1 of {len(study.questions)} questions. Plan more",
            code="plan.too_few_devices",
        )
    return devices // len(study.questions)
