"""Golden fits of numbers: laws cut off at both bounds, with noise; reports are counted in fine cells."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
from scipy import optimize, stats

from tests import studies
from tests.inference.golden.case import Case, approximated, collected, fitted, stated
from tests.inference.golden.reference import Target

PEOPLE = 2_000
# What the sampler fits: no Gaussian approximates the second.
SAMPLED = ("exponential, laplace", "beta, laplace")
WORD = 1 << 20
DELTA = 1e-6
# Cells of answers between the bounds, and of reports for each distance between the bounds.
ANSWERS, REPORTS = 200, 60
NOISE = {"laplace": stats.laplace, "gaussian": stats.norm}
LAPLACE = {"name": "laplace", "epsilon": "4"}
GAUSSIAN = {"name": "gaussian", "epsilon": "20", "delta": "1e-6"}


@cache
def gaussian_scale(epsilon):
    """The standard deviation that hides a distance of 1 (Balle and Wang 2018, theorem 8)."""

    def delta(sd):
        half, rest = 0.5 / sd, epsilon * sd
        return float(stats.norm.cdf(half - rest) - np.exp(epsilon) * stats.norm.cdf(-half - rest))

    return float(optimize.brentq(lambda sd: delta(sd) - DELTA, 0.05, 500))


def masses_of(law, low, high):
    """(ANSWERS + 2, points): of a law what lies below the bounds, in each cell between them, and above."""
    edges = np.linspace(low, high, ANSWERS + 1)[:, None]
    return np.vstack([law.cdf(edges[:1]), np.diff(law.cdf(edges), axis=0), law.sf(edges[-1:])])


def whole_masses_of(law, high):
    """(high + 1, points): of a law on whole numbers from 0, what lies above counted at the upper bound."""
    return np.vstack([law.pmf(np.arange(high)[:, None]), law.sf(np.array([[high - 1]]))])


def places_of(whole):
    """Where answers lie between 0 and 1: whole numbers to the upper bound, or at the ends and in cells."""
    if whole:
        return np.arange(whole + 1) / whole
    return np.concatenate([[0.0], (np.arange(ANSWERS) + 0.5) / ANSWERS, [1.0]])


def counted(payloads, mechanism, places):
    """(cells with reports, places + 1): P(a report in the cell | an answer at a place), and how many are."""
    # The noise's scale where the bounds are 0 and 1.
    epsilon = float(mechanism["epsilon"])
    width = 1 / epsilon if mechanism["name"] == "laplace" else gaussian_scale(epsilon)
    whole = np.array([int.from_bytes(payload, "big", signed=True) for payload in payloads], float)
    reports, reach = whole / WORD * width, 14 * width
    edges = np.linspace(-reach, 1 + reach, 1 + round(REPORTS * (1 + 2 * reach)))
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    counts = np.histogram(reports, edges)[0]
    kept = counts > 0
    chances = np.diff(NOISE[mechanism["name"]].cdf((edges[:, None] - places) / width), axis=0)
    return np.column_stack([chances[kept], counts[kept]])


def log_likelihood(table, masses):
    """Of laws with so much at each place, (places, points)."""
    return np.asarray(table[:, -1] @ np.log(table[:, :-1] @ masses))


def _question(model, mechanism, **priors):
    return {**studies.NUMBER, "mechanism": dict(mechanism), "model": {"name": model, "prior": priors}}


def prior_of(said):
    numbers = {key: float(value) for key, value in said.items() if key != "distribution"}
    laws = {
        "normal": lambda loc, scale: stats.norm(loc, scale),
        "gamma": lambda shape, rate: stats.gamma(shape, scale=1 / rate),
        "log_normal": lambda loc, scale: stats.lognorm(scale, scale=np.exp(loc)),
        "half_normal": lambda scale: stats.halfnorm(scale=scale),
        "beta": lambda a, b: stats.beta(a, b),
        "student_t": lambda degrees_of_freedom, loc, scale: stats.t(degrees_of_freedom, loc, scale),
    }
    return laws[said["distribution"]](**numbers)


def log_prior(priors, points):
    return np.asarray(sum(prior_of(said).logpdf(points[name]) for name, said in priors.items()))


LAWS = {
    "normal": lambda at: stats.norm(at["mean"], at["sd"]),
    "exponential": lambda at: stats.expon(scale=1 / at["rate"]),
    "lognormal": lambda at: stats.lognorm(at["log_sd"], scale=np.exp(at["log_mean"])),
    "gamma": lambda at: stats.gamma(at["shape"], scale=at["mean"] / at["shape"]),
    "weibull": lambda at: stats.weibull_min(at["shape"], scale=at["scale"]),
    "poisson": lambda at: stats.poisson(at["rate"]),
    "geometric": lambda at: stats.geom(at["p"], loc=-1),
}


def _law(question, points):
    low, high = map(float, question["bounds"])
    if question["model"]["name"] == "beta":
        return stats.beta(points["a"], points["b"], low, high - low)
    return LAWS[question["model"]["name"]](points)


def _masses(question, points):
    low, high = map(float, question["bounds"])
    law = _law(question, points)
    is_whole = question["model"]["name"] == "poisson"
    return whole_masses_of(law, int(high)) if is_whole else masses_of(law, low, high)


def target_of(question, start, priors=None):
    """The posterior of a number's law from its reports. priors: if the question states none."""
    whole = int(question["bounds"][1]) if question["model"]["name"] == "poisson" else 0
    priors = priors or question["model"]["prior"]
    space = {name: "real" if name == "mean" else "positive" for name in priors}

    def target(data):
        table = counted(data.payloads(question["id"]), question["mechanism"], places_of(whole))

        def log_density(points):
            return log_likelihood(table, _masses(question, points)) + log_prior(priors, points)

        return Target(space, log_density, start=start)

    return target


def _target_with_refusals(data):
    """A coin tells whether there is a number, with half of epsilon; who refuses sends noise on the middle."""
    payloads, mechanism = data.payloads("hours"), REFUSABLE["mechanism"]
    numbers, coins = [one[:-1] for one in payloads], np.array([one[-1] for one in payloads])
    true = 1 / (1 + np.exp(-float(mechanism["epsilon"]) / 2))
    places = np.append(places_of(0), 0.5)
    tables = []
    for coin in (0, 1):
        tossed = [one for one, own in zip(numbers, coins, strict=True) if own == coin]
        tables.append(counted(tossed, mechanism, places))

    def log_density(points):
        answers, refused = _masses(REFUSABLE, points), points["refused"]
        total = log_prior(REFUSABLE["model"]["prior"], points)
        for table, told in zip(tables, (true, 1 - true), strict=True):
            masses = np.vstack([(1 - refused) * told * answers, refused * (1 - told)])
            total = total + log_likelihood(table, masses)
        return total

    space = {"mean": "real", "sd": "positive", "refused": "share"}
    return Target(space, log_density, start={"mean": 5, "sd": 2, "refused": 0.2})


_gamma = partial(stated, "gamma")
NORMAL = _question("normal", LAPLACE, mean=stated("normal", loc=5, scale=4), sd=_gamma(shape="2", rate="0.6"))
REFUSABLE = {
    **NORMAL,
    "refusal": {"share": "0.5"},
    "model": {"name": "normal", "prior": {**NORMAL["model"]["prior"], "refused": stated("beta", a=1, b=4)}},
}
STUDENT = stated("student_t", degrees_of_freedom=4, loc=5, scale=2)
# The question of each case; the name begins with its model.
QUESTIONS = {
    "normal, laplace": NORMAL,
    "normal, gaussian": _question("normal", GAUSSIAN, mean=STUDENT, sd=stated("half_normal", scale=3)),
    "exponential, laplace": _question("exponential", LAPLACE, rate=stated("log_normal", loc=-1, scale=1)),
    "beta, laplace": _question(
        "beta", LAPLACE, a=_gamma(shape="3", rate="1"), b=_gamma(shape="3", rate="0.5")
    ),
    "poisson, laplace": _question("poisson", LAPLACE, rate=_gamma(shape="2", rate="0.4")),
}
TRUTHS = {
    "normal": {"mean": 5.0, "sd": 2.0},
    "exponential": {"rate": 0.3},
    "beta": {"a": 2.0, "b": 4.0},
    "poisson": {"rate": 3.0},
}


def _answers(question):
    law = _law(question, {name: np.array(one) for name, one in TRUTHS[question["model"]["name"]].items()})
    return list(np.asarray(law.rvs(PEOPLE, random_state=np.random.default_rng(20261128))).tolist())


def _case(name, question):
    return Case(
        lambda: collected(name, question, _answers(question)),
        fitted if name in SAMPLED else approximated,
        target_of(question, TRUTHS[question["model"]["name"]]),
    )


def _with_refusals():
    refuses = np.random.default_rng(4).random(PEOPLE) < 0.2
    numbers = _answers(NORMAL)
    people = [None if away else one for one, away in zip(numbers, refuses, strict=True)]
    return collected("refusable", REFUSABLE, people)


CASES = {
    **{name: _case(name, question) for name, question in QUESTIONS.items()},
    "normal with refusals, laplace": Case(_with_refusals, approximated, _target_with_refusals),
}


def _with_logs(points):
    """Of a rate the sd rests on the prior's rarest draws, and that of its log does not."""
    return {"log rate": np.log(points["rate"])} if "rate" in points else points


def _default(model, start, **priors):
    """Few people at ε = 0.01 say so little that the default prior remains; answers are from 0 to 30."""
    question = {**studies.NUMBER, "bounds": ["0", "30"], "model": {"name": model}}
    question = studies.with_epsilon(question, "0.01")
    target = target_of(question, start, priors)
    return Case(
        lambda: collected("default hours", question, [float(place) for place in range(5, 25)]),
        lambda data: dict(_with_logs(fitted(data))),
        lambda data: replace(target(data), quantities=_with_logs),
    )


SD, RATE = stated("gamma", shape=2, rate=4 / 30), stated("log_normal", loc=np.log(4 / 30), scale=1.5)
DEFAULTS = {
    "normal": _default("normal", {"mean": 15.0, "sd": 15.0}, mean=stated("normal", loc=15, scale=30), sd=SD),
    "exponential": _default("exponential", {"rate": 0.1}, rate=RATE),
}
