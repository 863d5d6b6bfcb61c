"""Golden fits under default priors: twenty people at ε = 0.01 say so little that the prior remains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from tests import studies
from tests.inference.golden.case import Case, Collected, Draws, Question, collected, fitted
from tests.inference.golden.choices import LABELS, chances_of, log_likelihood
from tests.inference.golden.numbers import counted, masses_of, places_of
from tests.inference.golden.numbers import log_likelihood as of_numbers
from tests.inference.golden.reference import Points, Target, Values

PEOPLE, EPSILON = 20, "0.01"


def _share(data: Collected, scale: float) -> Target:
    """beta(1, 1)."""
    table = chances_of(data.payloads("ever"), {"name": "randomized_response", "epsilon": EPSILON}, 2, scale)

    def log_density(points: Points) -> Values:
        return log_likelihood(table, np.column_stack([1 - points["p"], points["p"]]))

    return Target({"p": "share"}, log_density)


def _shares(data: Collected, scale: float) -> Target:
    """dirichlet(1)."""
    table = chances_of(data.payloads("colour"), {"name": "randomized_response", "epsilon": EPSILON}, 3, scale)

    def quantities(points: Points) -> Points:
        return {f"p[{label}]": points["p"][:, place] for place, label in enumerate(LABELS)}

    return Target({"p": "simplex 3"}, lambda points: log_likelihood(table, points["p"]), quantities)


def _logs(points: Points) -> Points:
    """Of the rate itself the sd rests on the prior's rarest draws."""
    return {"log rate": np.log(points["rate"])}


def _number(question: Question) -> Callable[[Collected, float], Target]:
    """Of answers between 0 and 30."""
    low, high = 0.0, 30.0
    middle, width = (low + high) / 2, high - low

    def target(data: Collected, scale: float) -> Target:
        table = counted(data.payloads("hours"), question["mechanism"], places_of(0), scale)

        def normal(points: Points) -> Values:
            prior = stats.norm(middle, width).logpdf(points["mean"])
            prior = prior + stats.gamma(2, scale=width / 4).logpdf(points["sd"])
            masses = masses_of(stats.norm(points["mean"], points["sd"]), low, high)
            return np.asarray(of_numbers(table, masses) + prior)

        def exponential(points: Points) -> Values:
            prior = stats.lognorm(1.5, scale=4 / high).logpdf(points["rate"])
            masses = masses_of(stats.expon(scale=1 / points["rate"]), low, high)
            return np.asarray(of_numbers(table, masses) + prior)

        if question["model"]["name"] == "normal":
            return Target({"mean": "real", "sd": "positive"}, normal, start={"mean": middle, "sd": middle})
        return Target({"rate": "positive"}, exponential, _logs, {"rate": 0.1})

    return target


def _case(question: Question, people: list[object], target: Callable[[Collected, float], Target]) -> Case:
    asked = studies.with_epsilon(dict(question), EPSILON)

    def draws(data: Collected) -> Draws:
        found = fitted(data)
        return dict(_logs(found)) if "rate" in found else found

    return Case(lambda: collected(f"default {asked['id']}", asked, people), draws, target)


NORMAL = {**studies.NUMBER, "bounds": ["0", "30"], "model": {"name": "normal"}}
EXPONENTIAL = {**NORMAL, "model": {"name": "exponential"}}
NUMBERS: list[object] = [float(place) for place in range(5, 5 + PEOPLE)]

CASES: dict[str, Case] = {
    "bernoulli": _case(studies.YES_NO, [place % 3 == 0 for place in range(PEOPLE)], _share),
    "multinomial": _case(studies.ONE_OF, [LABELS[place % 3] for place in range(PEOPLE)], _shares),
    "normal": _case(NORMAL, NUMBERS, _number(studies.with_epsilon(NORMAL, EPSILON))),
    "exponential": _case(EXPONENTIAL, NUMBERS, _number(studies.with_epsilon(EXPONENTIAL, EPSILON))),
}
