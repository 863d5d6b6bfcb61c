"""Every shape of an analysis has the likelihood, and the gradient, of enumerating all true answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import erf, exp, lgamma, log, pi, sqrt

import jax
import numpy as np
import pytest

from inference.analyses import likelihood, program
from inference.analyses.assembling import assemble
from tests.inference.analyses.simulated import ANSWERS, CHANNELS, log_density, table


def linear(b, row, terms, x, output=""):
    """η of one row, term by term, from parameters by name."""

    def of(name, level=""):
        inside = ", ".join(part for part in (level, output) if part)
        return b.get(f"{name}[{inside}]" if inside else name, 0.0)

    total = of("Intercept")
    for term in terms:
        if term in x:
            total += of(term, x[term])
        elif isinstance(row[term], str):
            total += of(term, row[term])
        else:
            total += of(term) * row[term]
    return total


def softmax(logits):
    top = max(logits)
    weights = [exp(one - top) for one in logits]
    return [one / sum(weights) for one in weights]


def law_of(family, outcome, terms):
    """(parameters, row, private answers) -> the law of an outcome: shares, or the density of its value."""

    def shares(b, row, x):
        if family == "softmax":
            return softmax([0.0] + [linear(b, row, terms, x, one) for one in ANSWERS[outcome][1:]])
        eta = linear(b, row, terms, x)
        if family == "logit":
            return softmax([0.0, eta])
        if family == "probit":
            below = 0.5 * (1 + erf(-eta / sqrt(2)))
            return [below, 1 - below]
        cuts = [b[f"threshold[{one}]"] for one in ANSWERS[outcome][:-1]]
        below = [1 / (1 + exp(eta - cut)) for cut in cuts]
        return [after - before for before, after in zip([0.0, *below], [*below, 1.0], strict=True)]

    def density(b, row, x):
        eta, value = linear(b, row, terms, x), row[outcome]
        if family == "poisson":
            return exp(value * eta - exp(eta) - lgamma(value + 1))
        return exp(-((value - eta) ** 2) / (2 * b["sigma"] ** 2)) / (b["sigma"] * sqrt(2 * pi))

    return density if family in ("normal", "poisson") else shares


def enumerated(found, b, family, outcome, terms, public):
    """Σ over reports of log Σ over true answers of channel × shares × law."""
    law, total = law_of(family, outcome, terms), 0.0
    predictors = [one.name for one in found.predictors]
    lead = ":".join(predictors) + "_"
    cases = list(product(*(ANSWERS[name] for name in predictors)))
    whole = table(ROWS)
    for place, row in enumerate(whole.public.to_dict("records")):
        logits = [0.0]
        for case in cases[1:]:
            own = {name.removeprefix(lead): value for name, value in b.items() if name.startswith(lead)}
            logits.append(linear(own, row, public, {}, ", ".join(case)))
        inside = 0.0
        for case, share in zip(cases, softmax(logits), strict=True):
            x = dict(zip(predictors, case, strict=True))
            chance = share
            for name in predictors:
                chance *= said(whole, name, place, ANSWERS[name].index(x[name]))
            values = law(b, row, x)
            if family in ("normal", "poisson"):
                inside += chance * values
            elif outcome in ANSWERS:
                inside += chance * sum(said(whole, outcome, place, k) * v for k, v in enumerate(values))
            else:
                inside += chance * values[int(row[outcome])]
        total += log(inside)
    return total


def said(whole, name, place, answer):
    """P(the row's report | answer)."""
    return CHANNELS[name][answer][int(whole.private[name].codes[place])]


ROWS = 20
SHAPES = [
    ("ever ~ age + region", "logit", ["age", "region"], []),
    ("ever ~ age + cov.size", "probit", ["age", "cov.size"], []),
    ("job ~ age + region", "softmax", ["age", "region"], []),
    ("mood ~ age", "ordered", ["age"], []),
    ("income ~ job + age", "normal", ["job", "age"], ["age"]),
    ("died ~ job + region", "logit", ["job", "region"], ["region"]),
    ("visits ~ ever", "poisson", ["ever"], []),
    ("ever ~ job + region", "logit", ["job", "region"], ["region"]),
    ("job ~ ever + smokes + age", "softmax", ["ever", "smokes", "age"], ["age"]),
    ("mood ~ job", "ordered", ["job"], []),
]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "family", "terms", "public"), SHAPES, ids=[one[0] for one in SHAPES])
def test_likelihood_matches_enumeration(formula, family, terms, public):
    is_enumerated(formula, family, terms, public)


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1_000_000], ids=["own cell", "all cells"])
def test_likelihood_by_cell_products_matches_enumeration(most, monkeypatch):
    monkeypatch.setattr(likelihood, "FEW_LAWS", most)
    is_enumerated(*SHAPES[7])


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "chunk"), [(0, 2000), (2, 7)])
def test_likelihood_by_rows_matches_enumeration(shape, chunk, monkeypatch):
    """In one chunk, and in chunks that do not divide the reports."""
    monkeypatch.setattr(program, "FROM_ROWS", 0)
    monkeypatch.setattr(likelihood, "CHUNK", chunk)
    assert assemble(table(ROWS), SHAPES[shape][0]).by_rows
    is_enumerated(*SHAPES[shape])


@pytest.mark.slow
def test_curvature_by_rows_matches_curvature_by_cells(monkeypatch):
    """Second derivatives of both ways, and the value in single precision."""
    found = assemble(table(), "job ~ age + region")
    random = np.random.default_rng(1)
    sites = {name: random.normal(size=np.shape(value)) for name, value in found.initial().items()}

    def measured(dtype=np.float64):
        own = log_density(found, dtype)
        return float(jax.jit(own)(sites)), jax.jit(jax.hessian(own))(sites)

    with jax.enable_x64(True):
        value, curvature = measured()
        monkeypatch.setattr(program, "FROM_ROWS", 0)
        by_rows, of_rows = measured()
        single, _ = measured(np.float32)
    assert by_rows == pytest.approx(value, abs=1e-10)
    assert single == pytest.approx(value, abs=1e-4)
    for one, other in zip(jax.tree.leaves(curvature), jax.tree.leaves(of_rows), strict=True):
        assert np.allclose(one, other, atol=1e-9)


def is_enumerated(formula, family, terms, public):
    """The value at random parameters, and every slope by differences of the enumeration."""
    found = assemble(table(ROWS), formula, family=family)
    random = np.random.default_rng(3)
    start = {name: np.asarray(value, float) for name, value in found.initial().items()}
    # Thresholds stay in order, sds positive.
    sites = {name: value + 0.3 * random.random(value.shape) for name, value in start.items()}
    if "threshold" in sites:
        sites["threshold"] = np.sort(sites["threshold"])

    def by_enumeration(values):
        b = {name: float(value) for name, value in found.parameters(values).items()}
        return enumerated(found, b, family, found.formula.outcome, terms, public)

    with jax.enable_x64(True):
        value, slopes = jax.jit(jax.value_and_grad(log_density(found)))(sites)
    assert float(value) == pytest.approx(by_enumeration(sites), abs=1e-10)
    for name, value in sites.items():
        for place in np.ndindex(value.shape):
            assert float(np.asarray(slopes[name])[place]) == pytest.approx(
                derivative(by_enumeration, sites, name, place), rel=1e-8, abs=1e-8
            )


def derivative(of, sites, name, place, step=2e-3):
    """By differences whose error is of the sixth order in the step."""
    found = 0.0
    for weight, times in ((45, 1), (-9, 2), (1, 3)):
        for sign in (1, -1):
            moved = {key: np.array(value) for key, value in sites.items()}
            moved[name][place] += sign * times * step
            found += sign * weight * of(moved)
    return found / (60 * step)


def test_equal_reports_are_counted_once():
    """Ten times the same table has the same patterns."""
    once = table()
    often = replace(once, counts=once.counts * 10)
    found, ten = assemble(once, "ever ~ region"), assemble(often, "ever ~ region")
    assert len(found.table.counts) == len(ten.table.counts) <= 6
    assert list(ten.table.counts) == list(found.table.counts * 10)
