"""Are planned widths those that fits have? Studies are simulated at a plan's truth, and fitted with NUTS.

    python -m benchmarks.formula_plans [--studies 40] [--people 1000,5000,50000] [--case NAME …]

Of every case it prints the planned half width of each 90 % interval beside the median of the fits, and the
planned power of each stated effect beside how often the interval lay on its side of 0.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from numpyro import handlers

from inference.analyses.analysing import model_of
from inference.analyses.assembling import assemble
from inference.analyses.program import Assembled
from inference.design.formula_plan import FormulaPlan, plan_formula
from inference.design.formula_truth import FormulaTruth
from inference.design.possible_reports import Possible, possible_of_study
from inference.design.simulated_posteriors import posterior_draws
from schemas import Study

Values = np.ndarray
DRAWS, THIN = 400, 1


@dataclass(frozen=True)
class Case:
    """A formula over the study below, and its truth."""

    formula: str
    shares: Mapping[str, float] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)


def _question(name: str, ask: str, mechanism: str, epsilon: str, **more: Any) -> dict[str, Any]:
    model = "bernoulli" if ask == "yes_no" else "multinomial"
    noise = {"name": mechanism, "epsilon": epsilon}
    return {"id": name, "ask": ask, "text": name, "mechanism": noise, "model": {"name": model}, **more}


STUDY = Study(
    {
        "format": "ldpkit.study/1",
        "id": "planned",
        "version": 1,
        "title": "Planned",
        "public": [
            {"id": "region", "choices": ["north", "south", "west"]},
            {"id": "age", "bounds": ["18", "78"], "step": "12"},
            {"id": "died", "choices": ["alive", "dead"]},
            {"id": "clinic", "choices": [f"c{place}" for place in range(30)]},
        ],
        "questions": [
            _question("ever", "yes_no", "randomized_response", "2"),
            _question("job", "choice", "oue", "3", choices=["none", "worker", "teacher"]),
        ],
    }
)
CASES: Mapping[str, Case] = {
    "outcome": Case("ever ~ region + age", {"ever": 0.2}, {"region[south]": 0.5, "age": 0.02}),
    "choice": Case("job ~ region", {"job[worker]": 0.5, "job[teacher]": 0.2}, {"region[west, teacher]": 0.6}),
    "predictor": Case("died ~ job", {"died": 0.3}, {"job[teacher]": 0.8}),
    "both": Case("ever ~ job + region", {"ever": 0.3}, {"job[worker]": 0.8}),
    "clinics": Case("ever ~ age + (1 | clinic)", {"ever": 0.3}, {"1|clinic_sigma": 0.5, "age": 0.02}),
}


@dataclass(frozen=True)
class Held:
    """Of one number of people: planned and fitted half widths, and of effects how often each was found."""

    planned: Mapping[str, float]
    fitted: Mapping[str, float]
    power: Mapping[str, tuple[float, float]]


def held(case: Case, people: int, studies: int, seed: int = 1) -> Held:
    """A plan beside fits of studies that were simulated at its truth."""
    possible = possible_of_study(STUDY, case.formula, None)
    plan = plan_formula(possible, case.formula, [people], shares=case.shares, effects=case.effects)
    analysis = assemble(possible.table, case.formula)
    truth = FormulaTruth(analysis, case.shares, case.effects)
    random = np.random.default_rng(seed)
    model = model_of(analysis)
    models = [
        replace(model, data={**model.data, "counts": random.multinomial(people, chances).astype(float)})
        for chances in (_chances(analysis, truth, possible, random) for _ in range(studies))
    ]
    draws = posterior_draws(models, seed, DRAWS, THIN)
    ends = {name: np.quantile(draws[name], [0.05, 0.95], axis=1) for name in plan.half_widths}
    fitted = {name: float(np.median(high - low) / 2) for name, (low, high) in ends.items()}
    return Held({name: float(one[0]) for name, one in plan.half_widths.items()}, fitted, _found(plan, ends))


def _found(plan: FormulaPlan, ends: Mapping[str, Values]) -> dict[str, tuple[float, float]]:
    """Of each stated effect its planned power, and how often its interval lay on its own side of 0."""
    found = {}
    for name, power in plan.power.items():
        low, high = ends[name]
        often = np.mean(low > 0) if plan.truth[name] > 0 else np.mean(high < 0)
        found[name] = (float(power[0]), float(often))
    return found


def _chances(
    analysis: Assembled, truth: FormulaTruth, possible: Possible, random: np.random.Generator
) -> Values:
    """P(cell and pattern) of all that may come, with groups as they may fall."""
    counts = analysis.cells.counts
    effects = {
        name: random.normal(size=np.shape(truth.sites[name])) for name in truth.sites if name[-2:] == "_z"
    }
    sites = {**truth.sites, **effects}
    with jax.enable_x64(True):
        data = {name: jax.numpy.asarray(value) for name, value in analysis.data().items()}
        with handlers.block(), handlers.substitute(data=sites):
            each = np.exp(np.asarray(analysis.each(data, *analysis.drawn(data))))
    found = each * counts * (possible.rows / counts.sum())
    return np.asarray(found / found.sum())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--people", default="1000,5000,50000")
    parser.add_argument("--case", choices=list(CASES), action="append")
    given = parser.parse_args(arguments)
    for name in given.case or CASES:
        for people in map(int, given.people.split(",")):
            begin = time.time()
            found = held(CASES[name], people, given.studies)
            print(f"{name}, {people:,} people: {given.studies} studies in {time.time() - begin:.0f} s")
            for parameter, planned in found.planned.items():
                fitted = found.fitted[parameter]
                print(
                    f"  {parameter:28} planned {planned:8.4f}  fitted {fitted:8.4f}  {planned / fitted:6.2f}"
                )
            for parameter, (power, often) in found.power.items():
                print(f"  {parameter:28} power {power:6.0%}  found {often:6.0%}")


if __name__ == "__main__":
    main()
