"""Golden fits of formulas: reports are added up over true answers, cell by cell of the public fields."""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from inference import analyse_waves
from inference.analyses.analysing import analyse_table
from inference.analyses.survey import load_survey
from tests import studies
from tests.inference.golden.case import KEPT, Case, Collected, Draws, Question, analysed, collected, stated
from tests.inference.golden.choices import chances_of
from tests.inference.golden.numbers import counted, log_prior, masses_of, places_of
from tests.inference.golden.reference import Points, Target, Values

FEW, PEOPLE, MANY = 400, 2_000, 40_000
WIDE = stated("normal", loc=0, scale="1.5")
SIGMA = stated("half_normal", scale=2)
REGIONS = ("south", "north")
EVER = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "2"}}
JOB = {**studies.CHOICE, "id": "job", "mechanism": {"name": "oue", "epsilon": "3"}}
TIRED = {
    **studies.ONE_OF,
    "id": "tired",
    "ordered": True,
    "choices": ["never", "seldom", "often"],
    "mechanism": {"name": "randomized_response", "epsilon": "2"},
}
HOURS = {**studies.NUMBER, "mechanism": {"name": "laplace", "epsilon": "6"}, "model": {"name": "normal"}}
REGION = {"id": "region", "choices": list(REGIONS)}
AGE = {"id": "age", "bounds": ["-2", "2"], "step": "1"}
DIED = {"id": "died", "choices": ["no", "yes"]}
VISITS = {"id": "visits", "bounds": ["0", "40"], "step": "1"}
INCOME = {"id": "income", "bounds": ["-20", "20"], "step": "0.1"}
CLINIC = {"id": "clinic", "choices": ["a", "b", "c", "d", "e"]}
WEIGHT = {"id": "weight", "bounds": ["1", "3"], "step": "1"}
PUBLIC = (REGION, AGE, DIED, VISITS, INCOME, CLINIC, WEIGHT)


class Rows(NamedTuple):
    """Distinct rows: public fields, P(report | answer) of each question (rows, answers), and how many."""

    public: pd.DataFrame
    chances: dict[str, Values]
    counts: Values

    @property
    def north(self) -> Values:
        """Whether each row is of the north."""
        return np.asarray(self.public["region"] == "north", np.float64)

    def number(self, name: str) -> Values:
        """A public number."""
        return np.asarray(self.public[name], np.float64)


# Density of a public outcome, given the linear predictor.
Density = Callable[[Rows, Values, Points], Values]


def rows_of(data: Collected, fields: Sequence[str], questions: Sequence[str]) -> Rows:
    """Count the reports that are alike."""
    keys = [
        (
            tuple((report.public or {})[name] for name in fields),
            tuple(report.payloads[name] for name in questions),
        )
        for report in data.reports
    ]
    distinct = Counter(keys)
    chances, every = {}, {one["id"]: one for one in data.study.document["questions"]}
    for place, name in enumerate(questions):
        asked = every[name]
        many = 2 if asked["ask"] == "yes_no" else len(asked["choices"])
        known = {
            payload: chances_of([payload], asked["mechanism"], many)[0, :-1]
            for payload in {payloads[place] for _, payloads in distinct}
        }
        chances[name] = np.array([known[payloads[place]] for _, payloads in distinct])
    public = pd.DataFrame([public for public, _ in distinct], columns=list(fields))
    return Rows(public, chances, np.array(list(distinct.values()), float))


def people(count: int) -> list[dict[str, Any]]:
    """Public fields and answers: ever, job and hours go with region and age, all else with ever."""
    random = np.random.default_rng(20261130)
    north, age = random.random(count) < 0.4, random.integers(-2, 3, count)
    clinic = random.integers(0, 5, count)
    eta = -0.5 + 0.6 * north + 0.3 * age + np.array([-0.6, -0.2, 0.0, 0.3, 0.7])[clinic]
    ever = random.random(count) < special.expit(eta)
    job = np.minimum(random.integers(0, 3, count) + (random.random(count) < 0.5 * ever), 2)
    tired = np.digitize(0.5 * age + random.logistic(size=count), [-0.5, 1.0])
    hours = np.clip(random.normal(5 + north, 1.5), 0, 12)
    died = random.random(count) < np.where(ever, 0.6, 0.3)
    visits = np.minimum(random.poisson(np.where(ever, 4.0, 2.0)), 40)
    income = np.round(np.clip(random.normal(np.where(ever, 1.0, 0.0), 1.0), -20, 20), 1)
    rows = []
    for place in range(count):
        rows.append(
            {
                "region": REGIONS[int(north[place])],
                "age": str(age[place]),
                "died": ["no", "yes"][int(died[place])],
                "visits": str(visits[place]),
                "income": f"{income[place] + 0.0:g}",
                "clinic": CLINIC["choices"][clinic[place]],
                "weight": str(1 + place % 3 if north[place] else 1),
                "ever": bool(ever[place]),
                "job": JOB["choices"][job[place]],
                "tired": TIRED["choices"][tired[place]],
                "hours": float(hours[place]),
            }
        )
    return rows


def reports_of(
    fields: Sequence[str], questions: Sequence[Question], count: int, name: str = "", **more: Any
) -> Collected:
    """Of these public fields and questions."""
    wanted = [*fields, *(one["id"] for one in questions)]
    answers = [{key: one[key] for key in wanted} for one in people(count)]
    public = [field for field in PUBLIC if field["id"] in fields]
    stated_fields = {"public": public} if public else {}
    return collected(f"{name} {wanted}", list(questions), answers, **stated_fields, **more)


def _priors(*names: str, **others: Question) -> dict[str, Question]:
    return {**dict.fromkeys(names, WIDE), **others}


def _real(names: Sequence[str]) -> dict[str, str]:
    return dict.fromkeys(names, "real")


def _column(values: Values) -> Values:
    return values[:, None]


def _sum(rows: Rows, inside: Values, priors: Mapping[str, Question], points: Points) -> Values:
    """Log posterior: inside is P(a row's report), (rows, points)."""
    return np.asarray(rows.counts @ np.log(inside) + log_prior(priors, points))


def _yes_no(
    rows_in: Callable[[Any], Rows],
    terms: Callable[[Rows, Points], Values],
    names: Sequence[str],
    link: Any = special.expit,
) -> Callable[[Any], Target]:
    """A private yes/no by public fields, and its share of all."""
    priors = _priors(*names)

    def target(data: Any) -> Target:
        rows = rows_in(data)
        ((outcome, chances),) = rows.chances.items()

        def log_density(points: Points) -> Values:
            yes = link(terms(rows, points))
            return _sum(rows, chances[:, :1] * (1 - yes) + chances[:, 1:] * yes, priors, points)

        def quantities(points: Points) -> Points:
            share = (rows.counts / rows.counts.sum()) @ link(terms(rows, points))
            return {**{name: points[name] for name in names}, f"share {outcome} = yes": share}

        return Target(_real(names), log_density, quantities)

    return target


def _by_age_and_region(rows: Rows, points: Points) -> Values:
    north = _column(rows.north) * points["region[north]"]
    return np.asarray(points["Intercept"] + _column(rows.number("age")) * points["age"] + north)


AGE_REGION = ("Intercept", "age", "region[north]")


def _softmax(data: Collected) -> Target:
    rows = rows_of(data, ["region"], ["job"])
    names = [
        f"{term}{choice}]" for choice in ("worker", "teacher") for term in ("Intercept[", "region[north, ")
    ]
    priors = _priors(*names)

    def log_density(points: Points) -> Values:
        north = _column(rows.north)
        etas = [
            points[f"Intercept[{one}]"] + north * points[f"region[north, {one}]"]
            for one in ("worker", "teacher")
        ]
        shares = special.softmax(np.stack([np.zeros_like(etas[0]), *etas]), axis=0)
        return _sum(rows, np.einsum("rk,krp->rp", rows.chances["job"], shares), priors, points)

    return Target(_real(names), log_density)


def _ordered(rows_in: Callable[[Any], Rows], column: str, levels: Sequence[str]) -> Callable[[Any], Target]:
    """P(answer ≤ j) = logistic(threshold j − the column's effect), of three levels."""

    def target(data: Any) -> Target:
        rows = rows_in(data)
        (chances,) = rows.chances.values()
        values = rows.number(column)
        middle = float(rows.counts @ values / rows.counts.sum())

        def log_density(points: Points) -> Values:
            eta = _column(values) * points[column]
            below = [special.expit(points["cuts"][:, place] - eta) for place in (0, 1)]
            shares = np.stack([below[0], below[1] - below[0], 1 - below[1]])
            # A prior of thresholds, also a stated one, is of those at the columns' means.
            cuts = points["cuts"] - middle * points[column][:, None]
            prior = stats.norm(0, 1.5).logpdf(cuts).sum(axis=1)
            return _sum(rows, np.einsum("rk,krp->rp", chances, shares), _priors(column), points) + prior

        def quantities(points: Points) -> Points:
            cuts = {f"threshold[{name}]": points["cuts"][:, place] for place, name in enumerate(levels[:-1])}
            return {column: points[column], **cuts}

        return Target({column: "real", "cuts": "ordered 2"}, log_density, quantities)

    return target


def _by_ever(
    field: str, density: Density, names: Sequence[str], **others: Question
) -> Callable[[Collected], Target]:
    """A public outcome by a private yes/no, whose own share has a law too."""
    priors = _priors(*names, "ever_Intercept[yes]", **others)

    def target(data: Collected) -> Target:
        rows = rows_of(data, [field], ["ever"])

        def log_density(points: Points) -> Values:
            share, chances, total = special.expit(points["ever_Intercept[yes]"]), rows.chances["ever"], 0.0
            for place, own in enumerate((1 - share, share)):
                eta = points["Intercept"] + place * points["ever[yes]"]
                total = total + chances[:, place : place + 1] * own * density(rows, eta, points)
            return _sum(rows, np.asarray(total), priors, points)

        space = {**_real([*names, "ever_Intercept[yes]"]), **dict.fromkeys(others, "positive")}
        return Target(space, log_density)

    return target


def _died(rows: Rows, eta: Values, points: Points) -> Values:
    del points
    yes = _column(np.asarray(rows.public["died"] == "yes"))
    return np.where(yes, special.expit(eta), special.expit(-eta))


def _visits(rows: Rows, eta: Values, points: Points) -> Values:
    del points
    return np.asarray(stats.poisson.pmf(_column(rows.number("visits")), np.exp(eta)))


def _income(rows: Rows, eta: Values, points: Points) -> Values:
    return np.asarray(stats.norm.pdf(_column(rows.number("income")), eta, points["sigma"]))


def _private_by_private(data: Collected) -> Target:
    rows = rows_of(data, [], ["ever", "job"])
    own = ["job_Intercept[worker]", "job_Intercept[teacher]"]
    names = ["Intercept", "job[worker]", "job[teacher]", *own]

    def log_density(points: Points) -> Values:
        zero = np.zeros_like(points["Intercept"])
        shares = special.softmax(np.stack([zero, *(points[name] for name in own)]), axis=0)
        effects = np.stack([zero, points["job[worker]"], points["job[teacher]"]])
        yes, ever = special.expit(points["Intercept"] + effects), rows.chances["ever"]
        both = ever[:, :1, None] * (1 - yes) + ever[:, 1:, None] * yes
        inside = np.einsum("rk,rkp,kp->rp", rows.chances["job"], both, shares)
        return _sum(rows, inside, _priors(*names), points)

    return Target(_real(names), log_density)


def _private_number(data: Collected) -> Target:
    """Normal before it is clipped; of each region the reports are counted in fine cells."""
    tables = []
    for region in REGIONS:
        own = [one.payloads["hours"] for one in data.reports if (one.public or {})["region"] == region]
        tables.append(counted(own, HOURS["mechanism"], places_of(0)))

    def log_density(points: Points) -> Values:
        total = log_prior(NUMBER_PRIORS, points)
        for place, table in enumerate(tables):
            mean = points["Intercept"] + place * points["region[north]"]
            masses = masses_of(stats.norm(mean, points["sigma"]), 0.0, 12.0)
            total = total + table[:, -1] @ np.log(table[:, :-1] @ masses)
        return np.asarray(total)

    space = {"Intercept": "real", "region[north]": "real", "sigma": "positive"}
    return Target(space, log_density, start={"Intercept": 5, "sigma": 2})


def _varying(data: Collected) -> Target:
    """Effects of five clinics are normal, with an sd of their own: each is integrated out."""
    rows = rows_of(data, ["clinic"], ["ever"])
    clinics = [np.asarray(rows.public["clinic"] == one) for one in CLINIC["choices"]]
    # Near enough to each other for clinics whose own reports tell their effect sharply.
    nodes = np.linspace(-7, 7, 401)
    log_weights = stats.norm.logpdf(nodes) + np.log(nodes[1] - nodes[0])

    def log_density(points: Points) -> Values:
        eta = points["Intercept"][:, None] + points["1|clinic_sigma"][:, None] * nodes
        yes, total = special.expit(eta)[..., None], stats.halfnorm.logpdf(points["1|clinic_sigma"])
        for inside in clinics:
            chances, counts = rows.chances["ever"][inside], rows.counts[inside]
            logs = np.log(chances[:, 0] * (1 - yes) + chances[:, 1] * yes) @ counts
            total = total + special.logsumexp(logs + log_weights, axis=1)
        return np.asarray(total + log_prior(_priors("Intercept"), points))

    space = {"Intercept": "real", "1|clinic_sigma": "positive"}
    return Target(space, log_density, start={"1|clinic_sigma": 0.5})


def _over(how: str, by_region: bool, count: Callable[[Rows], Values]) -> Callable[[Collected], Target]:
    """Shares of people, each row of whom stands for so many; by_region: by region instead."""

    def target(data: Collected) -> Target:
        weighted = ["weight"] if "weight" in (data.reports[0].public or {}) else []
        rows = rows_of(data, ["age", "region", *weighted], ["ever"])

        def quantities(points: Points) -> Points:
            yes, own = special.expit(_by_age_and_region(rows, points)), count(rows)
            if not by_region:
                return {f"share ever = yes, {how}": own @ yes / own.sum()}
            found = {}
            for name, inside in (("south", 1 - rows.north), ("north", rows.north)):
                found[f"share ever = yes, region = {name}, {how}"] = own * inside @ yes / (own @ inside)
            south, north = found.values()
            return {**found, f"share ever = yes, region: north − south, {how}": north - south}

        return replace(LOGIT(data), quantities=quantities)

    return target


# How many people of each region and age there are.
CENSUS = pd.DataFrame(
    [
        (region, age, 100 + 40 * place * (age + 2))
        for place, region in enumerate(REGIONS)
        for age in range(-2, 3)
    ],
    columns=["region", "age", "count"],
)


def _in_census(data: Collected) -> Target:
    counts = np.asarray(CENSUS["count"], np.float64)
    rows = Rows(CENSUS, {}, counts)

    def quantities(points: Points) -> Points:
        yes = counts @ special.expit(_by_age_and_region(rows, points))
        return {"share ever = yes, in the census": yes / counts.sum(), "total ever = yes, in the census": yes}

    return replace(LOGIT(data), quantities=quantities)


WAVES = {"2024": "2", "2025": "1"}


class Waves(NamedTuple):
    """Two waves with other noise."""

    each: dict[str, Collected]

    @property
    def digest(self) -> str:
        """Of both."""
        return " ".join(one.digest for one in self.each.values())


def _waves() -> Waves:
    found = {}
    for place, (name, epsilon) in enumerate(WAVES.items()):
        asked = studies.with_epsilon(EVER, epsilon)
        found[name] = reports_of(["region"], [asked], PEOPLE - 200 * place, name, version=place + 1)
    return Waves(found)


def _fitted_waves(data: Waves) -> Draws:
    waves = {name: (one.study, one.reports) for name, one in data.each.items()}
    priors = _priors("Intercept", "wave[2025]", "region[north]")
    found = analyse_waves(waves, "ever ~ wave + region", priors=priors, draws=KEPT)
    return dict(found.draws)


def _target_of_waves(data: Waves) -> Target:
    names = ["Intercept", "wave[2025]", "region[north]"]
    parts = [rows_of(one, ["region"], ["ever"]) for one in data.each.values()]

    def log_density(points: Points) -> Values:
        total = log_prior(_priors(*names), points)
        for place, rows in enumerate(parts):
            north = _column(rows.north) * points["region[north]"]
            yes = special.expit(points["Intercept"] + place * points["wave[2025]"] + north)
            chances = rows.chances["ever"]
            total = total + rows.counts @ np.log(chances[:, :1] * (1 - yes) + chances[:, 1:] * yes)
        return np.asarray(total)

    return Target(_real(names), log_density)


def _case(
    fields: Sequence[str],
    questions: Sequence[Question],
    draws: Callable[[Collected], Draws],
    target: Callable[[Collected], Target],
    count: int = PEOPLE,
) -> Case:
    return Case(lambda: reports_of(fields, questions, count), draws, target)


def _by_age(target: Callable[[Collected], Target], more: Sequence[str] = (), **options: Any) -> Case:
    """Of a share by age and region."""
    fitted = analysed("ever ~ age + region", _priors(*AGE_REGION), **options)
    return _case(["age", "region", *more], [EVER], fitted, target)


def _of_field(
    field: str,
    density: Callable[[Rows, Values, Points], Values],
    family: str | None = None,
    **others: Question,
) -> Case:
    """Of a public field by a share."""
    names = ("Intercept", "ever[yes]")
    priors = _priors(*names, "ever_Intercept[yes]", **others)
    fitted = analysed(f"{field} ~ ever", priors, family=family)
    return _case([field], [EVER], fitted, _by_ever(field, density, names, **others))


def _by_age_region(data: Collected) -> Rows:
    return rows_of(data, ["age", "region"], ["ever"])


def _tired_by_age(data: Collected) -> Rows:
    return rows_of(data, ["age"], ["tired"])


LOGIT = _yes_no(_by_age_region, _by_age_and_region, AGE_REGION)
PROBIT = _yes_no(_by_age_region, _by_age_and_region, AGE_REGION, special.ndtr)
NUMBER_PRIORS = _priors("region[north]", Intercept=stated("normal", loc=5, scale=2), sigma=SIGMA)

CASES: dict[str, Case] = {
    "logit": _by_age(LOGIT),
    "probit": _by_age(PROBIT, family="probit"),
    "softmax": _case(["region"], [JOB], analysed("job ~ region", _priors("Intercept", "region")), _softmax),
    "ordered": _case(
        ["age"],
        [TIRED],
        analysed("tired ~ age", _priors("threshold", "age")),
        _ordered(_tired_by_age, "age", TIRED["choices"]),
    ),
    "public choice by private": _of_field("died", _died),
    "public count by private": _of_field("visits", _visits, "poisson"),
    "public number by private": _of_field("income", _income, sigma=SIGMA),
    "private by private": _case(
        [],
        [EVER, JOB],
        analysed("ever ~ job", _priors("Intercept", "job[worker]", "job[teacher]", "job_Intercept")),
        _private_by_private,
    ),
    "private number": _case(
        ["region"], [HOURS], analysed("hours ~ region", NUMBER_PRIORS), _private_number, FEW
    ),
    "groups": _case(
        ["clinic"],
        [EVER],
        analysed(
            "ever ~ (1 | clinic)",
            {"Intercept": WIDE, "1|clinic_sigma": stated("half_normal", scale=1)},
        ),
        _varying,
    ),
    "by region": _by_age(_over("among those asked", True, lambda rows: rows.counts), by="region"),
    "weights": _by_age(
        _over("weighted", False, lambda rows: rows.counts * rows.number("weight")),
        ["weight"],
        weights="weight",
    ),
    "census": _by_age(_in_census, census=CENSUS),
    "waves": Case(_waves, _fitted_waves, _target_of_waves),
    "many, logit": _case(
        ["age", "region"], [EVER], analysed("ever ~ age + region", _priors(*AGE_REGION)), LOGIT, MANY
    ),
}


# Surveys done with dice: a report's chances are a row of the design's matrix.
Matrix = Sequence[Sequence[str]]
FORCED: Matrix = [["5/6", "1/6"], ["1/6", "5/6"]]
KUK: Matrix = [["0.09", "0.42", "0.49"], ["0.64", "0.32", "0.04"]]
THREE: Matrix = [["0.6", "0.3", "0.1"], ["0.2", "0.7", "0.1"], ["0.1", "0.2", "0.7"]]


class Table(NamedTuple):
    """What people said (codes of reports), whether each is married, the dice of each row, and its columns."""

    said: Values
    married: Values
    matrices: Values
    rows: list[dict[str, str]]
    design: dict[str, Any]

    @property
    def digest(self) -> str:
        """Of what was said."""
        return hashlib.sha256(repr(self.rows).encode()).hexdigest()


def _floats(matrix: Matrix) -> Values:
    return np.array([[float(Fraction(one)) for one in row] for row in matrix])


def table(parts: Mapping[str, Matrix], answers: Sequence[str], people: int, **column: Any) -> Table:
    """A survey with dice; parts: the matrix of each arm, or of all under ""."""
    random = np.random.default_rng(20261201)
    married, arm = random.random(people) < 0.6, random.integers(0, len(parts), people)
    shares = np.where(married[:, None], [0.5, 0.3, 0.2], [0.7, 0.2, 0.1])[:, : len(answers)]
    shares = shares / shares.sum(axis=1, keepdims=True)
    answer = (random.random((people, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    matrices = np.array([_floats(one) for one in parts.values()])[arm]
    chances = matrices[np.arange(people), answer]
    said = (random.random((people, 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    names = list(parts)
    rows = [
        {"q": f"r{said[place]}", "married": str(int(married[place])), "arm": names[arm[place]] or "all"}
        for place in range(people)
    ]
    reports = [f"r{place}" for place in range(matrices.shape[2])]
    head = {"answers": list(answers), "reports": reports, **column}
    if len(parts) == 1:
        head["matrix"] = [list(row) for row in parts[names[0]]]
    else:
        head["matrices"] = [
            {"rows": {"arm": name}, "matrix": [list(row) for row in one]} for name, one in parts.items()
        ]
    design = {"format": "ldpkit.design/1", "columns": {"q": head}}
    return Table(said.astype(float), married.astype(float), matrices, rows, design)


def _analysed_table(formula: str, priors: Mapping[str, Question]) -> Callable[[Table], Draws]:
    """Of the table as a file."""

    def draws(data: Table) -> Draws:
        with tempfile.TemporaryDirectory() as folder:
            path, design = Path(folder) / "survey.csv", Path(folder) / "design.json"
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(data.rows[0]))
                writer.writeheader()
                writer.writerows(data.rows)
            design.write_text(json.dumps(data.design), encoding="utf-8")
            read, _ = load_survey(str(path), str(design), formula)
        return dict(analyse_table(read, formula, priors=priors).draws)

    return draws


def _dice_rows(data: Table) -> Rows:
    """Distinct rows of a table: whether married, and P(report | answer)."""
    chances = data.matrices[np.arange(len(data.said)), :, data.said.astype(int)]
    keys, counts = np.unique(np.column_stack([data.married, chances]), axis=0, return_counts=True)
    return Rows(pd.DataFrame({"married": keys[:, 0]}), {"q": keys[:, 1:]}, counts)


def _by_married(rows: Rows, points: Points) -> Values:
    return np.asarray(points["Intercept"] + _column(rows.number("married")) * points["married"])


def _married(data: Table) -> Target:
    return replace(_yes_no(_dice_rows, _by_married, ("Intercept", "married"))(data), quantities=dict)


def _dice(parts: Mapping[str, Matrix], people: int = PEOPLE) -> Case:
    fitted = _analysed_table("q ~ married", _priors("Intercept", "married"))
    return Case(lambda: table(parts, ("no", "yes"), people), fitted, _married)


DICE: dict[str, Case] = {
    "forced": _dice({"": FORCED}),
    "cards of three kinds": _dice({"": KUK}),
    "two arms": _dice({"a": FORCED, "b": FORCED[::-1]}),
    "ordered": Case(
        lambda: table({"": THREE}, "abc", PEOPLE, ordered=True),
        _analysed_table("q ~ married", _priors("threshold", "married")),
        _ordered(_dice_rows, "married", "abc"),
    ),
    "many, forced": _dice({"": FORCED}, MANY),
}
