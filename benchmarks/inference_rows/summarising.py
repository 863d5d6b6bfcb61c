"""Reducing payloads that are in memory already, in CPU seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.surveys import choice_study, number_study
from ldp_client import mechanism_for
from schemas import Study
from summaries.reductions import REDUCTIONS

TURNS = 5


def _rate(study: Study, payloads: np.ndarray) -> float:
    """Payloads reduced per CPU second, the best of a few turns."""
    question = study.questions[0]
    mechanism, reduction = mechanism_for(question), REDUCTIONS[question.mechanism.name]
    costs = []
    for _ in range(TURNS):
        start = time.process_time()
        reduction.reduce(mechanism, payloads)
        costs.append(time.process_time() - start)
    return len(payloads) / min(costs)


def rates() -> Iterator[Row]:
    """Unary encoding of 1024 choices, and numbers."""
    random = np.random.default_rng(0)
    # A bit is 1 with probability near 1 / (1 + e).
    bits = random.integers(0, 256, (3, 400_000, 128), dtype=np.uint8)
    unary = _rate(choice_study(1024, 1.0), bits[0] & (bits[1] | bits[2]))
    yield Row(
        "summarise unary encoding, k = 1024", f"{unary / 1e6:.1f} M reports / CPU-s", "≥ 5 M", unary >= 5e6
    )
    values = np.rint(random.laplace(0.5e6, 2.0**20, 10_000_000)).astype(">i4")
    numbers = _rate(number_study("normal", 1.0), values.view(np.uint8).reshape(-1, 4))
    yield Row("summarise numbers", f"{numbers / 1e6:.1f} M reports / CPU-s", "≥ 50 M", numbers >= 50e6)
