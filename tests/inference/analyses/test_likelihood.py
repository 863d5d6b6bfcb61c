"""Every shape of an analysis has the likelihood, and the gradient, of enumerating all true answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm, poisson

from inference.analyses import likelihood, program
from inference.analyses.assembling import assemble
from tests.inference.analyses.simulated import ANSWERS, CHANNELS, any_draws, log_density, table


def linear(b, row, terms, label=""):
    """η of one row, term by term, from parameters by name."""
    total = b.get(f"Intercept[{label}]" if label else "Intercept", 0.0)
    for term in terms:
        labels = [one for one in (row[term], label) if isinstance(one, str) and one]
        name = f"{term}[{', '.join(labels)}]" if labels else term
        total += b.get(name, 0.0) * (1.0 if isinstance(row[term], str) else row[term])
    return total


def law_of(family, outcome, terms, b, row):
    """P(each answer), or the chance or density of the row's public value."""
    if family == "softmax":
        return softmax([0.0] + [linear(b, row, terms, one) for one in ANSWERS[outcome][1:]])
    eta = linear(b, row, terms)
    if family == "poisson":
        return poisson.pmf(row[outcome], np.exp(eta))
    if family == "normal":
        return norm.pdf(row[outcome], eta, b["sigma"])
    if family == "ordered":
        below = [expit(b[f"threshold[{one}]"] - eta) for one in ANSWERS[outcome][:-1]]
        return np.diff([0.0, *below, 1.0])
    yes = expit(eta) if family == "logit" else norm.cdf(eta)
    return np.asarray([1 - yes, yes]) if outcome in ANSWERS else (1 - yes, yes)[int(row[outcome])]


def enumerated(found, b, family, outcome, terms, public):
    """Σ over reports of log Σ over true answers of channel × shares × law."""
    total, whole = 0.0, table(ROWS)
    predictors = [one.name for one in found.predictors]
    lead = ":".join(predictors) + "_"
    own = {name.removeprefix(lead): value for name, value in b.items() if name.startswith(lead)}
    cases = list(product(*(ANSWERS[name] for name in predictors)))
    for place, row in enumerate(whole.public.to_dict("records")):
        # P(the row's report | each answer).
        said = {name: np.asarray(CHANNELS[name])[:, one.codes[place]] for name, one in whole.private.items()}
        shares = softmax([0.0] + [linear(own, row, public, ", ".join(case)) for case in cases[1:]])
        inside = 0.0
        for case, share in zip(cases, shares, strict=True):
            answers = dict(zip(predictors, case, strict=True))
            chances = [said[name][ANSWERS[name].index(answer)] for name, answer in answers.items()]
            values = law_of(family, outcome, terms, b, {**row, **answers})
            inside += share * np.prod(chances) * (said[outcome] @ values if outcome in ANSWERS else values)
        total += np.log(inside)
    return total


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
    sites = {name: one[0, 0] for name, one in any_draws(found, 1).items()}

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
            # By differences whose error is of the sixth order in the step.
            slope, step = 0.0, np.zeros(value.shape)
            step[place] = 2e-3
            for weight, times in ((45, 1), (-9, 2), (1, 3)):
                high, low = (by_enumeration({**sites, name: value + sign * times * step}) for sign in (1, -1))
                slope += weight * (high - low) / (60 * 2e-3)
            assert float(np.asarray(slopes[name])[place]) == pytest.approx(slope, rel=1e-8, abs=1e-8)


def test_equal_reports_are_counted_once():
    """Ten times the same table has the same patterns."""
    once = table()
    often = replace(once, counts=once.counts * 10)
    found, ten = assemble(once, "ever ~ region"), assemble(often, "ever ~ region")
    assert len(found.table.counts) == len(ten.table.counts) <= 6
    assert list(ten.table.counts) == list(found.table.counts * 10)
