"""Chances of reports under a formula, added up over all true answers, term by term and row by row."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from tests.inference.golden.reference import Values


class Rows(NamedTuple):
    """Distinct rows: public columns, P(report | answer) of private ones (rows, answers), and how many."""

    public: pd.DataFrame
    answers: Mapping[str, Sequence[str]]
    chances: Mapping[str, Values]
    counts: Values

    def number(self, name):
        """A public number, (rows, 1)."""
        return np.asarray(self.public[[name]], np.float64)

    def level(self, name, level):
        """Whether rows are of this level, (rows, 1)."""
        return np.asarray(self.public[[name]] == level, np.float64)


def linear(rows, points, terms, given, label=""):
    """η (rows, points), from parameters by name; given: answers to private questions. label: of an output."""

    def of(name, level=""):
        inside = ", ".join(part for part in (level, label) if part)
        return points.get(f"{name}[{inside}]" if inside else name, 0.0)

    total = np.zeros((len(rows.public), len(next(iter(points.values()))))) + of("Intercept")
    for term in terms:
        if term in given:
            total = total + of(term, given[term])
        elif pd.api.types.is_numeric_dtype(rows.public[term]):
            total = total + rows.number(term) * of(term)
        else:
            for level in rows.public[term].unique():
                total = total + rows.level(term, level) * of(term, level)
    return np.asarray(total)


def _law(rows, points, family, outcome, terms, given):
    """P(each answer) (answers, rows, points), or the chance or density of a public outcome (rows, points)."""
    if family == "softmax":
        etas = [linear(rows, points, terms, given, one) for one in rows.answers[outcome][1:]]
        return np.asarray(special.softmax([np.zeros_like(etas[0]), *etas], axis=0))
    eta = linear(rows, points, terms, given)
    if family == "poisson":
        return np.asarray(stats.poisson.pmf(rows.number(outcome), np.exp(eta)))
    if family == "normal":
        return np.asarray(stats.norm.pdf(rows.number(outcome), eta, points["sigma"]))
    if family == "ordered":
        below = [special.expit(points[f"threshold[{one}]"] - eta) for one in rows.answers[outcome][:-1]]
        return np.diff([0 * eta, *below, 0 * eta + 1], axis=0)
    link = special.expit if family == "logit" else special.ndtr
    if outcome in rows.answers:
        return np.stack([link(-eta), link(eta)])
    yes = rows.public[[outcome]].isin([1, "yes"])
    return np.asarray(link(np.where(yes, eta, -eta)))


def likelihood(text, family, rows, points):
    """P(a row's reports and public outcome), (rows, points): the sum over all answers of the people."""
    outcome, _, right = text.partition(" ~ ")
    terms = [term for term in right.split(" + ") if term != "1"]
    predictors = [term for term in terms if term in rows.answers]
    public, lead = [term for term in terms if term not in predictors], f"{':'.join(predictors)}_"
    own = {name.removeprefix(lead): one for name, one in points.items() if name.startswith(lead)} or points
    cases = list(product(*(rows.answers[name] for name in predictors)))
    logits = [linear(rows, own, public, {}, ", ".join(case)) for case in cases]
    shares = special.softmax([0 * logits[0], *logits[1:]], axis=0)
    total = 0 * logits[0]
    for case, share in zip(cases, shares, strict=True):
        for name, answer in zip(predictors, case, strict=True):
            share = share * rows.chances[name][:, [list(rows.answers[name]).index(answer)]]
        law = _law(rows, points, family, outcome, terms, dict(zip(predictors, case, strict=True)))
        if outcome in rows.answers:
            law = np.einsum("ra,arp->rp", rows.chances[outcome], law)
        total = total + share * law
    return total
