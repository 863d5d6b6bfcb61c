"""`ldpkit fit` of regressions on signs of sampled products, with the processor seconds of whole processes.

Processor time moves less than the wall's with what else a machine does.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import numpy as np

from benchmarks.inference_rows.fresh import seconds_of
from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.surveys import summary_of
from benchmarks.sizes import Size
from ldp_client import mechanism_for
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Study
from summaries import QuestionSummary

HEAD = {"format": "ldpkit.study/1", "id": "signs", "version": 1, "title": "Signs"}


class Signs(NamedTuple):
    """A regression: how many features, all yes/no where the response is, ε, people; targets in seconds."""

    features: int
    yes_no: bool
    epsilon: str
    people: int
    fresh: float
    second: float

    @property
    def study(self) -> Study:
        """Its study."""
        field: dict[str, Any] = {"ask": "yes_no"} if self.yes_no else {"bounds": ["-1", "1"]}
        stated = {"name": "sampled_products", "epsilon": self.epsilon, "weights": {"response": 4}}
        question = {
            "id": "line",
            "ask": "record",
            "features": [{"id": f"x{place}", **field} for place in range(self.features)],
            "response": {"id": "y", **field},
            "mechanism": stated,
            "model": {"name": "logistic_regression" if self.yes_no else "linear_regression"},
        }
        return Study({**HEAD, "questions": [question]})

    def summary(self) -> QuestionSummary:
        """Reports of people whose features resemble one another."""
        random, n, d = np.random.default_rng(0), self.people, self.features
        x = 0.25 * (random.normal(size=(n, d)) + 0.5 * random.normal(size=(n, 1)))
        slopes = np.linspace(0.4, -0.3, d) / np.sqrt(d)
        if self.yes_no:
            x = np.where(x < -0.05, 1.0, -1.0)
            y = np.where(random.random(n) < 1 / (1 + np.exp(-0.2 - 5 * x @ slopes)), 1.0, -1.0)
        else:
            x = np.clip(x, -1, 1)
            y = np.clip(0.1 + x @ slopes + random.normal(0, 0.2, n), -1, 1)
        mechanism = cast(SampledProducts, mechanism_for(self.study.questions[0]))
        u = np.column_stack([np.ones(n), x, y])
        first, other = np.asarray(mechanism.coordinates).T
        counts = random.multinomial(n, np.asarray(mechanism.weights) / mechanism.total)
        means = float(mechanism.gain) * (u.T @ u / n)[first, other]
        positive = random.binomial(counts, (1 + means) / 2)
        return QuestionSummary(n, np.stack([counts - positive, positive], axis=-1).ravel())


CASES = {
    "linear d = 10": Signs(10, False, "1", 100_000, 12, 5),
    "logistic, 12 yes/no": Signs(12, True, "2", 200_000, 25, 15),
    "logistic, 16 yes/no": Signs(16, True, "2", 200_000, 130, 120),
}
TINY = {"linear d = 1": Signs(1, False, "4", 1000, 12, 5)}


def signs(size: Size) -> Iterator[Row]:
    """Each twice, the second time with the programs that the first left in the cache."""
    for name, case in size.of(CASES, CASES, TINY).items():
        with TemporaryDirectory(prefix="ldpkit-") as folder:
            place = Path(folder)
            (place / "study.json").write_text(case.study.to_json(), encoding="utf-8")
            summary = summary_of(case.study, case.summary())
            (place / "summary.json").write_text(summary.to_json(), encoding="utf-8")
            both = [("fresh", case.fresh), ("second", case.second)]
            for what, target in size.of(both, both, both[:1]):
                before = _processors()
                wall = seconds_of(place, f"out-{what}")
                shown = f"{wall:.1f} s, {_processors() - before:.1f} s of processors"
                yield Row(f"signs, {what} process: {name}", shown, f"≤ {target:g} s", wall <= target)


def _processors() -> float:
    """Seconds of all processes that have ended, of this one's."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
