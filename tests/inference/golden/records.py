"""Golden fits of regressions: sums of products, records and signs of devices, and sums over holders' tables.

All features and responses lie between −1 and 1, so that own units are scaled ones.
"""

import numpy as np
import pandas as pd
from scipy import special, stats

from tests.inference.golden.case import Case, collected, fitted, stated
from tests.inference.golden.numbers import gaussian_scale, log_prior
from tests.inference.golden.reference import Target

PEOPLE = 2_000
EPSILON, SHARE = 8.0, 0.25
# Pairs of (1, x, y) that are released beside the constant's own square.
PAIRS = [(0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
DISTANCE = 2 * np.sqrt(2.0)
PRIORS = {
    "centre": stated("normal", loc=0, scale="0.5"),
    "coefficients": stated("normal", loc=0, scale="0.7"),
    "sd": stated("gamma", shape=2, rate=6),
    "feature_mean": stated("normal", loc=0, scale="0.4"),
    "feature_sd": stated("gamma", shape=2, rate=5),
}
SPACE = {name: "positive" if name.endswith("sd") else "real" for name in PRIORS}
START = {"sd": 0.3, "feature_sd": 0.3}


def question_of(mechanism, **fields):
    of_feature = ("coefficients", "feature_mean", "feature_sd")
    priors = {name: {"age": one} if name in of_feature else one for name, one in PRIORS.items()}
    return {
        "id": "rating",
        "ask": "record",
        "features": [{"id": "age", "bounds": ["-1", "1"]}],
        "norm": "1",
        "response": {"id": "rate", "bounds": ["-1", "1"]},
        "mechanism": dict(mechanism),
        "model": {"name": "linear_regression", "prior": priors},
        **fields,
    }


def people(count):
    random = np.random.default_rng(20261202)
    age = random.normal(0.1, 0.3, count)
    rate = 0.2 + 0.5 * age + random.normal(0, 0.25, count)
    return [{"age": own, "rate": one} for own, one in zip(age.tolist(), rate.tolist(), strict=True)]


def words(payload, size=4):
    return np.frombuffer(payload[: len(payload) - len(payload) % size], f">i{size}").astype(np.float64)


def linear_moments(points, pairs):
    """Mean and covariance of products of (1, x, y), y = centre + slope x + noise, x normal (Isserlis)."""
    slope, of_x = points["coefficients"], points["feature_sd"] ** 2
    zero, one, mean = np.zeros_like(slope), np.ones_like(slope), points["feature_mean"]
    centre = np.stack([one, mean, points["centre"] + slope * mean])
    of_y = slope**2 * of_x + points["sd"] ** 2
    spread = np.array([[zero, zero, zero], [zero, of_x, slope * of_x], [zero, slope * of_x, of_y]])
    second = spread + centre[:, None] * centre
    i, j = np.array(pairs).T[:, :, None]
    k, m = i.T, j.T
    cross = second[i, k] * second[j, m] + second[i, m] * second[j, k]
    cross -= 2 * centre[i] * centre[j] * centre[k] * centre[m]
    return np.stack([second[pair] for pair in pairs], axis=-1), np.moveaxis(cross, -1, 0)


def log_density_of_sum(total, n, mean, covariance, noise):
    """Of the sum of n vectors with this mean (points, entries) and covariance, and noise on each entry."""
    factor = np.linalg.cholesky(n * covariance + noise**2 * np.eye(mean.shape[1]))
    white = np.linalg.solve(factor, (total - n * mean)[:, :, None])[:, :, 0]
    logs = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(-0.5 * np.sum(white**2, axis=1) - logs)


def factors_of(pairs):
    """What each product is multiplied by: the entries' weights, and √2 off the diagonal."""
    weights = (0.5**0.5, 1.0, 0.5**0.5)
    return np.array([weights[i] * weights[j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in pairs])


def regression(log_likelihood):
    def log_density(points):
        return np.asarray(log_likelihood(points) + log_prior(PRIORS, points))

    def quantities(points):
        called = {"centre": "intercept", "coefficients": "coefficient[age]", "sd": "sd"}
        return {new: points[name] for name, new in called.items()}

    return Target(SPACE, log_density, quantities, START)


def regression_of_sums(sums, noise, factors, pairs=PAIRS):
    """The posterior from sums of products, each of so many records, with this noise on each entry."""

    def log_likelihood(points):
        mean, covariance = linear_moments(points, pairs)
        mean, covariance = mean * factors, covariance * np.outer(factors, factors)
        each = [log_density_of_sum(total, count, mean, covariance, noise) for total, count in sums]
        return np.sum(each, axis=0)

    return regression(log_likelihood)


def _sums(data):
    noise, count = DISTANCE * gaussian_scale(EPSILON), len(data.reports)
    total = np.sum([words(one) for one in data.payloads("rating")], axis=0) * noise / 2**20
    return regression_of_sums([(total, count)], noise * np.sqrt(count), factors_of(PAIRS))


def _records(data):
    """Feature and response are jointly normal, with noise on both."""
    sds = 2 * gaussian_scale(EPSILON) / np.sqrt([1 - SHARE, SHARE])
    rows = np.array([words(one) for one in data.payloads("rating")]) * sds / 2**20
    pairs = [(0, 1), (0, 2)]

    def log_likelihood(points):
        mean, covariance = linear_moments(points, pairs)
        covariance = covariance + np.diag(sds**2)
        spread, middle = np.cov(rows.T, bias=True), rows.mean(axis=0)
        inverse, off = np.linalg.inv(covariance), middle - mean
        distance = np.einsum("pij,ij->p", inverse, spread) + np.einsum("pi,pij,pj->p", off, inverse, off)
        return np.asarray(-0.5 * len(rows) * (distance + np.linalg.slogdet(covariance)[1]))

    return regression(log_likelihood)


SMOKES = {
    "id": "rating",
    "ask": "record",
    "features": [{"id": "smokes", "ask": "yes_no"}],
    "response": {"id": "rate", "ask": "yes_no"},
    "mechanism": {"name": "sampled_products", "epsilon": "4"},
    "model": {
        "name": "logistic_regression",
        "prior": {"centre": PRIORS["centre"], "coefficients": {"smokes": PRIORS["coefficients"]}},
    },
}


def _yes_no_signs(data):
    """Feature and response are −1 or 1; the feature's log share is normal(0, 1), as docs/models.md says.

    A product is drawn evenly; its sign is 1 with chance (1 + tanh(ε/2) · mean) / 2.
    """
    signs = [int.from_bytes(one, "big") for one in data.payloads("rating")]
    minus, plus = np.bincount(signs, minlength=6).reshape(-1, 2).T
    sharp = np.tanh(float(SMOKES["mechanism"]["epsilon"]) / 2)

    def log_density(points):
        share = special.expit(2 * points["log share"])
        yes, no = (np.tanh((points["centre"] + side * points["coefficients"] / 2) / 2) for side in (1, -1))
        products = [2 * share - 1, share * yes + (1 - share) * no, share * yes - (1 - share) * no]
        prior = log_prior({name: PRIORS[name] for name in ("centre", "coefficients")}, points)
        prior = prior + stats.norm.logpdf(points["log share"])
        told = sharp * np.stack(products, axis=-1)
        return np.asarray(np.log1p(told) @ plus + np.log1p(-told) @ minus + prior)

    def quantities(points):
        slope = points["coefficients"]
        return {"intercept": points["centre"] - slope / 2, "coefficient[smokes]": slope}

    return Target(dict.fromkeys(("centre", "coefficients", "log share"), "real"), log_density, quantities)


def _smokers():
    random = np.random.default_rng(20261203)
    smokes = random.random(PEOPLE) < 0.35
    yes = random.random(PEOPLE) < np.where(smokes, 0.6, 0.3)
    both = zip(smokes.tolist(), yes.tolist(), strict=True)
    return collected("smokers", SMOKES, [{"smokes": one, "rate": other} for one, other in both])


GAUSSIAN = {"name": "gaussian_statistics", "epsilon": "8", "delta": "1e-6"}
RECORD = {"name": "gaussian_record", "epsilon": "8", "delta": "1e-6", "response_share": "0.25"}
# Of three holders' tables, of which each releases sums once.
SIZES = (200, 300, 400)


def _holders(seed, mechanism, distance, factors, pairs):
    """seed: of noise. distance: how far apart the sums of two tables are at most that differ by a record."""
    stated_mechanism = {"name": mechanism, "epsilon": "1", "delta": "1e-6"}

    def data():
        records = pd.DataFrame(people(sum(SIZES)))
        holder = np.repeat(range(len(SIZES)), SIZES)
        answers = [one.to_dict("list") for _, one in records.groupby(holder)]
        return collected(seed, question_of(stated_mechanism, ask="table"), answers, respondent="holder")

    def target(data):
        noise = distance * gaussian_scale(1)
        holders = [words(payload, 8) for payload in data.payloads("rating")]
        sums = [(sums[1:] * noise / 2**20, sums[0]) for sums in holders]
        return regression_of_sums(sums, noise, factors, pairs)

    return Case(data, fitted, target)


def _case(name, mechanism, target):
    return Case(lambda: collected(name, question_of(mechanism), people(PEOPLE)), fitted, target)


CASES = {
    "linear, gaussian_statistics": _case("linear, gaussian_statistics", GAUSSIAN, _sums),
    "linear, gaussian_record": _case("linear, gaussian_record", RECORD, _records),
    "logistic, sampled_products": Case(_smokers, fitted, _yes_no_signs),
}
# Normal equations leave out the response's square, and weigh all products alike.
HOLDERS = {
    "table_statistics": _holders("table_statistics", "table_statistics", DISTANCE, factors_of(PAIRS), PAIRS),
    "table_normal_equations": _holders(
        "table_statistics_ddplr", "table_normal_equations", np.sqrt(10.0), np.ones(4), PAIRS[:-1]
    ),
}
