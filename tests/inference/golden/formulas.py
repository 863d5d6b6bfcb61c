"""Golden fits of formulas: reports are added up over true answers, cell by cell of the public fields."""

import hashlib
import json
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from inference import analyse_waves
from inference.analyses.analysing import analyse_table
from inference.analyses.design_file import read_design
from inference.analyses.survey import survey_of
from tests import studies
from tests.inference.golden.case import KEPT, Case, Collected, analysed, collected, stated
from tests.inference.golden.choices import chances_of
from tests.inference.golden.enumeration import Rows, likelihood, linear
from tests.inference.golden.numbers import log_prior
from tests.inference.golden.reference import Target, Values

PEOPLE = 2_000
WIDE = stated("normal", loc=0, scale="1.5")
EVER = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "2"}}
REGIONS, CLINICS = ("south", "north"), ("a", "b", "c", "d", "e")
PUBLIC = (
    {"id": "region", "choices": list(REGIONS)},
    {"id": "age", "bounds": ["-2", "2"], "step": "1"},
    {"id": "died", "choices": ["no", "yes"]},
    {"id": "clinic", "choices": list(CLINICS)},
)


def rows_of(fields):
    """Count the reports of these public fields that are alike."""

    def rows(data):
        (question,) = data.study.document["questions"]
        public = [tuple(one.public[name] for name in fields) for one in data.reports]
        distinct = Counter(zip(public, data.payloads("ever"), strict=True))
        known = [chances_of([payload], question["mechanism"], 2)[0, :-1] for _, payload in distinct]
        public = pd.DataFrame([public for public, _ in distinct], columns=list(fields))
        if "age" in fields:
            public["age"] = public["age"].astype(float)
        counts = np.array(list(distinct.values()), float)
        return Rows(public, {"ever": ("no", "yes")}, {"ever": np.array(known)}, counts)

    return rows


def people(count):
    """Public fields and answers: ever goes with region, age and clinic, died with ever."""
    random = np.random.default_rng(20261130)
    north, age = random.random(count) < 0.4, random.integers(-2, 3, count)
    clinic = random.integers(0, 5, count)
    eta = -0.5 + 0.6 * north + 0.3 * age + np.array([-0.6, -0.2, 0.0, 0.3, 0.7])[clinic]
    ever = random.random(count) < special.expit(eta)
    died = random.random(count) < np.where(ever, 0.6, 0.3)
    return [
        {
            "region": REGIONS[int(north[at])],
            "age": str(age[at]),
            "died": ["no", "yes"][int(died[at])],
            "clinic": CLINICS[clinic[at]],
            "ever": bool(ever[at]),
        }
        for at in range(count)
    ]


def reports_of(fields, question=EVER, count=PEOPLE, name="", version=1):
    wanted = [*fields, "ever"]
    answers = [{key: one[key] for key in wanted} for one in people(count)]
    public = [field for field in PUBLIC if field["id"] in fields]
    return collected(f"{name} {wanted}", [question], answers, version=version, public=public)


def posterior(priors, rows_in, text, quantities=lambda _, points: points):
    def target(data):
        rows = rows_in(data)

        def log_density(points):
            chances = likelihood(text, "logit", rows, points)
            return np.asarray(rows.counts @ np.log(chances) + log_prior(priors, points))

        return Target(dict.fromkeys(priors, "real"), log_density, lambda points: quantities(rows, points))

    return target


def _case(text, names, quantities=lambda _, points: points, census=None):
    priors = dict.fromkeys(names, WIDE)
    known = {one["id"] for one in PUBLIC}
    fields = [word for word in text.split() if word in known]
    target = posterior(priors, rows_of(fields), text, quantities)
    return Case(lambda: reports_of(fields), analysed(text, priors, census), target)


BY_AGE, AGE_REGION = "ever ~ age + region", ("Intercept", "age", "region[north]")


def _share(rows, points):
    """The share of ever among people of whom each row stands for so many."""
    shares = special.expit(linear(rows, points, ["age", "region"], {}))
    return np.asarray(rows.counts @ shares / rows.counts.sum())


# How many people of each region and age there are.
CENSUS = pd.DataFrame(
    [(region, age, 100 + 40 * at * (age + 2)) for at, region in enumerate(REGIONS) for age in range(-2, 3)],
    columns=["region", "age", "count"],
)


def _in_census(_, points):
    counts = np.asarray(CENSUS["count"], np.float64)
    share = _share(Rows(CENSUS, {}, {}, counts), points)
    return {"share ever = yes, in the census": share, "total ever = yes, in the census": share * counts.sum()}


def _groups():
    """Effects of five clinics are normal, with an sd of their own: each is integrated out."""
    priors = {"Intercept": WIDE, "1|clinic_sigma": stated("half_normal", scale=1)}
    # Near enough to each other for clinics whose own reports tell their effect sharply.
    nodes = np.linspace(-7, 7, 401)
    log_weights = stats.norm.logpdf(nodes) + np.log(nodes[1] - nodes[0])

    def target(data):
        rows = rows_of(["clinic"])(data)

        def log_density(points):
            eta = points["Intercept"][:, None] + points["1|clinic_sigma"][:, None] * nodes
            yes, total = special.expit(eta)[..., None], log_prior(priors, points)
            for clinic in CLINICS:
                inside = rows.level("clinic", clinic)[:, 0] == 1
                chances = rows.chances["ever"][inside]
                logs = np.log(chances[:, 0] * (1 - yes) + chances[:, 1] * yes) @ rows.counts[inside]
                total = total + special.logsumexp(logs + log_weights, axis=1)
            return np.asarray(total)

        space = {"Intercept": "real", "1|clinic_sigma": "positive"}
        return Target(space, log_density, start={"1|clinic_sigma": 0.5})

    return Case(lambda: reports_of(["clinic"]), analysed("ever ~ (1 | clinic)", priors), target)


class Waves(NamedTuple):
    each: dict[str, Collected]

    @property
    def digest(self):
        return " ".join(one.digest for one in self.each.values())


def _waves():
    text = "ever ~ wave + region"
    priors = dict.fromkeys(("Intercept", "wave[2025]", "region[north]"), WIDE)

    def data():
        asked = {"2024": studies.with_epsilon(EVER, "2"), "2025": studies.with_epsilon(EVER, "1")}
        waves = {}
        for place, (name, one) in enumerate(asked.items()):
            waves[name] = reports_of(["region"], one, PEOPLE - 200 * place, name, place + 1)
        return Waves(waves)

    def draws(data):
        waves = {name: (one.study, one.reports) for name, one in data.each.items()}
        return dict(analyse_waves(waves, text, priors=priors, draws=KEPT).draws)

    def rows(data):
        first, second = (rows_of(["region"])(one) for one in data.each.values())
        public = pd.concat([first.public.assign(wave="2024"), second.public.assign(wave="2025")])
        ever = np.concatenate([first.chances["ever"], second.chances["ever"]])
        return Rows(public, first.answers, {"ever": ever}, np.concatenate([first.counts, second.counts]))

    return Case(data, draws, posterior(priors, rows, text))


CASES = {
    "logit": _case(
        BY_AGE, AGE_REGION, lambda rows, points: {**points, "share ever = yes": _share(rows, points)}
    ),
    "public choice by private": _case("died ~ ever", ("Intercept", "ever[yes]", "ever_Intercept[yes]")),
    "groups": _groups(),
    "census": _case(BY_AGE, AGE_REGION, _in_census, CENSUS),
    "waves": _waves(),
}


# Surveys done with dice: a report's chances are a row of the design's matrix.
FORCED = [["5/6", "1/6"], ["1/6", "5/6"]]


class Survey(NamedTuple):
    """What people said, with P(report | answer) of each row (rows, answers), and the design."""

    frame: pd.DataFrame
    chances: Values
    design: str

    @property
    def digest(self):
        return hashlib.sha256(repr(self.frame.astype(str).to_dict("records")).encode()).hexdigest()


def _dice(parts):
    """A survey with dice; parts: the matrix of each arm, or of all."""
    priors = {"Intercept": WIDE, "married": WIDE}

    def surveyed():
        random = np.random.default_rng(20261201)
        married, arm = random.random(PEOPLE) < 0.6, random.integers(0, len(parts), PEOPLE)
        no = np.where(married, 0.5 / 0.8, 0.7 / 0.9)
        answer = (random.random(PEOPLE) > no).astype(int)
        every = np.vectorize(lambda share: float(Fraction(share)))(list(parts.values()))
        said = (random.random(PEOPLE) > every[arm, answer, 0]).astype(int)
        own = np.array(list(parts))[arm]
        frame = pd.DataFrame({"q": [f"r{one}" for one in said], "married": married.astype(int), "arm": own})
        matrices = [{"rows": {"arm": name}, "matrix": one} for name, one in parts.items()]
        column = {"answers": ["no", "yes"], "reports": ["r0", "r1"], "matrices": matrices}
        design = json.dumps({"format": "ldpkit.design/1", "columns": {"q": column}})
        return Survey(frame, every[arm, :, said], design)

    def draws(data):
        table = survey_of(data.frame, read_design(data.design))
        return dict(analyse_table(table, "q ~ married", priors=priors, draws=KEPT).draws)

    def rows(data):
        """Distinct rows of a table: whether married, and P(report | answer)."""
        both = np.column_stack([data.frame["married"], data.chances])
        keys, counts = np.unique(both, axis=0, return_counts=True)
        public = pd.DataFrame({"married": keys[:, 0]})
        return Rows(public, {"q": ("no", "yes")}, {"q": keys[:, 1:]}, counts.astype(float))

    return Case(surveyed, draws, posterior(priors, rows, "q ~ married"))


DICE = {
    "forced": _dice({"all": FORCED}),
    "two arms": _dice({"a": FORCED, "b": FORCED[::-1]}),
}
