"""Reducing payloads that are in memory already, in CPU seconds."""

from collections.abc import Iterator

import numpy as np

from benchmarks.ldpbi.surveys import choice_study, number_study
from benchmarks.running import Row, Size, cost_of
from ldp_client import mechanism_for
from schemas import Study
from summaries.reductions import REDUCTIONS


def _rate(study: Study, payloads: np.ndarray) -> float:
    """Payloads reduced per CPU second, the best of a few turns."""
    question = study.questions[0]
    mechanism, reduction = mechanism_for(question), REDUCTIONS[question.mechanism.name]
    return len(payloads) / cost_of(lambda: reduction.reduce(mechanism, payloads)).cpu


def rates(size: Size) -> Iterator[Row]:
    """Unary encoding of 1024 choices, and numbers."""
    choices, numbers = size.of((400_000, 10_000_000), (400_000, 10_000_000), (1000, 1000))
    random = np.random.default_rng(0)
    # A bit is 1 with probability near 1 / (1 + e).
    bits = random.integers(0, 256, (3, choices, 128), dtype=np.uint8)
    unary = _rate(choice_study(1024, 1.0), bits[0] & (bits[1] | bits[2]))
    yield Row(
        "summarise unary encoding, k = 1024", f"{unary / 1e6:.1f} M reports / CPU-s", "≥ 5 M", unary >= 5e6
    )
    values = np.rint(random.laplace(0.5e6, 2.0**20, numbers)).astype(">i4")
    rate = _rate(number_study("normal", 1.0), values.view(np.uint8).reshape(-1, 4))
    yield Row("summarise numbers", f"{rate / 1e6:.1f} M reports / CPU-s", "≥ 50 M", rate >= 50e6)
