"""ldpkit's side of the tasks: `python -m benchmarks.client_tasks.ours TASK`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.client_tasks.timing import Task, main
from ldp_client import Mechanism, mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Study

MANY = 20_000
UNARY = {"ask": "choice", "choices": {"count": 1024}, "mechanism": {"name": "oue", "epsilon": "1"}}
NUMBER = {"ask": "number", "bounds": ["0", "1"], "mechanism": {"name": "laplace", "epsilon": "1"}}
ONE_OF_16 = {
    "ask": "choice",
    "choices": {"count": 16},
    "mechanism": {"name": "randomized_response", "epsilon": "1"},
}
# v has 11 entries and vvᵀ 66 numbers, of which the constant is known: 65 are released.
FEATURES = [f"x{place}" for place in range(9)]
RECORD = {
    "ask": "record",
    "features": [{"id": name, "bounds": ["-1", "1"]} for name in FEATURES],
    "norm": "1",
    "response": {"id": "y", "bounds": ["-1", "1"]},
    "mechanism": {"name": "gaussian_statistics", "epsilon": "1", "delta": "1e-6"},
}
TEN = [*FEATURES, "x9"]
SIGNS = {
    "ask": "record",
    "features": [{"id": name, "bounds": ["-1", "1"]} for name in TEN],
    "response": {"id": "y", "bounds": ["-1", "1"]},
    "mechanism": {"name": "sampled_products", "epsilon": "1", "weights": {"response": 4}},
}
MODELS = {"choice": "multinomial", "number": "normal", "record": "linear_regression"}


def mechanism(question: dict[str, Any]) -> Mechanism:
    """The mechanism of a question."""
    whole = {"id": "q", "model": {"name": MODELS[question["ask"]]}, **question}
    document = {"format": "ldpkit.study/1", "id": "s", "version": 1, "title": "s", "questions": [whole]}
    return mechanism_for(Study(document).questions[0])


def one(question: dict[str, Any], answer: Any) -> Task:
    """One report for each call."""

    def task() -> tuple[Callable[[], object], int]:
        m = mechanism(question)
        return lambda: m.perturb(answer), 1

    return task


def many_choices() -> tuple[Callable[[], object], int]:
    """perturb_many of MANY choices."""
    import numpy as np

    m, answers = mechanism(UNARY), np.arange(MANY) % 1024
    return lambda: perturb_many(m, answers), MANY


def many_records() -> tuple[Callable[[], object], int]:
    """perturb_many of MANY records, given as columns."""
    import numpy as np

    columns = {name: np.linspace(-1, 1, MANY) for name in [*FEATURES, "y"]}
    m = mechanism(RECORD)
    return lambda: perturb_many(m, columns), MANY


TASKS: dict[str, Task] = {
    "rr16": one(ONE_OF_16, 3),
    "unary": one(UNARY, 3),
    "laplace": one(NUMBER, 0.3),
    "gaussian": one(RECORD, {name: 0.1 for name in [*FEATURES, "y"]}),
    "signs": one(SIGNS, {name: 0.1 for name in [*TEN, "y"]}),
    "unary_many": many_choices,
    "gaussian_many": many_records,
}

if __name__ == "__main__":
    main(TASKS)
