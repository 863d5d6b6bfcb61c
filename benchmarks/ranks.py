"""Where ranks of the truth among a posterior's draws are uniform, and where they are not.

python -m benchmarks.ranks [--only ROW …] [--studies 300]

Truths are drawn from the prior, and each row simulates and fits its own studies. Printed for each parameter:
the Kolmogorov–Smirnov p-value of its ranks, how far their mean lies from the middle, in sds of a uniform law
(100 studies tell 0.1), and how often the central 90 % hold the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from inference.design.calibration import DRAWS, Calibration, calibrate, covered
from schemas import Question, Study

HEAD = {"format": "ldpkit.study/1", "id": "ranks", "version": 1, "title": "Ranks"}
PROTOCOL = {
    "name": "secure_sum",
    "nodes": [f"http://127.0.0.1:{9000 + node}#" + "0" * 128 for node in range(3)],
    "devices": 1000,
    "max_faulty": 50,
}


class Row(NamedTuple):
    """What is asked, of how many devices, whether by a secure sum, and whether answers are clipped."""

    question: dict[str, Any]
    n: int
    summed: bool = False
    clip: bool = False


def line(features: int, mechanism: str) -> dict[str, Any]:
    return {
        "id": "line",
        "ask": "record",
        "features": [{"id": f"x{i}", "bounds": ["-1", "1"]} for i in range(features)],
        "norm": "1",
        "response": {"id": "y", "bounds": ["-1", "1"]},
        "mechanism": {"name": mechanism, "epsilon": "1", "delta": "1e-6"},
        "model": {"name": "linear_regression"},
    }


def signs(features: int) -> dict[str, Any]:
    asked = {key: value for key, value in line(features, "sampled_products").items() if key != "norm"}
    return {**asked, "mechanism": {"name": "sampled_products", "epsilon": "1"}}


LEVELS = {
    **signs(2),
    "features": [
        {"id": "x0", "bounds": ["-1", "1"], "cuts": ["-0.5", "0", "0.5"]},
        {"id": "job", "ask": "choice", "choices": ["none", "part", "full"]},
    ],
    "response": {"id": "ill", "ask": "yes_no"},
    "model": {"name": "logistic_regression"},
}
SPARSE = {
    "id": "choice",
    "ask": "choice",
    "choices": {"count": 8},
    "mechanism": {"name": "randomized_response", "epsilon": "2"},
    "model": {"name": "multinomial", "prior": {"p": {"distribution": "dirichlet", "concentration": "0.02"}}},
}
ROWS = {
    "five features": Row(line(5, "gaussian_statistics"), 5000),
    "secure sum of 20": Row(line(1, "summed_gaussian"), 20, summed=True),
    "secure sum of 60": Row(line(1, "summed_gaussian"), 60, summed=True),
    "secure sum of 20, clipped": Row(line(1, "summed_gaussian"), 20, summed=True, clip=True),
    "secure sum of 60, clipped": Row(line(1, "summed_gaussian"), 60, summed=True, clip=True),
    "five features, clipped": Row(line(5, "gaussian_statistics"), 5000, clip=True),
    "signs, two features": Row(signs(2), 100_000),
    "signs, levels": Row(LEVELS, 100_000),
    "sparse shares": Row(SPARSE, 100),
}


def question_of(row: Row) -> Question:
    return Study(
        {**HEAD, **({"protocol": PROTOCOL} if row.summed else {}), "questions": [row.question]}
    ).questions[0]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    for name in given.only:
        row = ROWS[name]
        show(name, calibrate(question_of(row), given.studies, row.n, given.seed, row.clip, print))


def show(name: str, found: Calibration) -> None:
    print(f"{name}: {found.to_document()['studies']} studies", flush=True)
    for parameter, ranks in found.ranks.items():
        places = (ranks + 0.5) / (DRAWS + 1)
        p = stats.kstest(places, "uniform").pvalue
        shift = (places.mean() - 0.5) * np.sqrt(12)
        print(f"  {parameter:18} KS {p:.4f}  shift {shift:+.2f}  90 %: {covered(ranks, 0.9):.1%}", flush=True)


if __name__ == "__main__":
    main()
