"""Studies of one question, and their summaries drawn in NumPy from the mechanisms' own integers.

The draws are the mechanisms' laws in floats, a group of reports at a time: right for experiments on simulated
or public data, not for devices, which use `mechanism.perturb`.
"""

from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ldp_client import mechanism_for
from ldp_client.bulk import randomise_many
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.quantise import UNIT
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.number import Laplace
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question, Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS
from summaries.reductions.choice import keeps_patterns, pattern_bits

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
DELTA = "1e-5"
# From these ε on two, three and four products a report, as docs/models.md has it.
SEVERAL_FROM = (1.35, 2.7, 3.8)


def number_study(model: str, epsilon: float) -> Study:
    """One number between 0 and 1, with Laplace noise."""
    return _study(ask="number", bounds=["0", "1"], mechanism=_pure("laplace", epsilon), model={"name": model})


def choice_study(choices: int, epsilon: float, mechanism: str = "oue") -> Study:
    """One of `choices`."""
    labels = [str(choice) for choice in range(choices)]
    return _study(
        ask="choice", choices=labels, mechanism=_pure(mechanism, epsilon), model={"name": "multinomial"}
    )


def yes_no_study(epsilon: float) -> Study:
    """Yes or no, by randomized response."""
    mechanism = _pure("randomized_response", epsilon)
    return _study(ask="yes_no", mechanism=mechanism, model={"name": "bernoulli"})


def record_study(features: int, epsilon: float, model: str, scale: str | None = None) -> Study:
    """A record whose features and response lie between −1 and 1; norm 1, δ = 1e-5.

    scale: sd of the coefficients' prior; the model's own unless given.
    """
    return _study(
        ask="record",
        features=[{"id": f"x{i}", "bounds": ["-1", "1"]} for i in range(features)],
        norm="1",
        response=_response(model),
        mechanism={**_pure("gaussian_statistics", epsilon), "delta": DELTA},
        model=_regression(model, features, scale),
    )


def signs_study(limits: Vector, epsilon: float, model: str, scale: str | None = None) -> Study:
    """The same by signs of products, of features that lie within ± their limits: pure ε, and no norm."""
    products = 1 + sum(epsilon >= least for least in SEVERAL_FROM)
    stated = {**_pure("sampled_products", epsilon), "weights": {"response": 4}}
    return _study(
        ask="record",
        features=[
            {"id": f"x{i}", "bounds": [f"{-limit:.4f}", f"{limit:.4f}"]} for i, limit in enumerate(limits)
        ],
        response=_response(model),
        mechanism={**stated, **({"products": products} if products > 1 else {})},
        model=_regression(model, len(limits), scale),
    )


def _regression(name: str, features: int, scale: str | None) -> dict[str, Any]:
    prior = {"distribution": "normal", "loc": "0", "scale": scale}
    stated = {"prior": {"coefficients": {f"x{i}": prior for i in range(features)}}}
    return {"name": name, **(stated if scale else {})}


def _response(model: str) -> dict[str, Any]:
    if model == "logistic_regression":
        return {"id": "y", "ask": "yes_no"}
    return {"id": "y", "bounds": ["-1", "1"]}


def _pure(name: str, epsilon: float) -> dict[str, str]:
    return {"name": name, "epsilon": f"{epsilon:g}"}


def _study(**question: Any) -> Study:
    head = {"format": "ldpkit.study/1", "id": "experiment", "version": 1, "title": "An experiment"}
    return Study({**head, "questions": [{"id": "x", **question}]})


def number_summary(question: Question, answers: Vector, random: Generator) -> QuestionSummary:
    """Reports of one number in [0, 1] for each person."""
    mechanism = cast(Laplace, mechanism_for(question))
    index = np.floor(np.clip(answers, 0, 1) * mechanism.levels + 0.5)
    noise = np.rint(random.laplace(0.0, float(1 << NOISE_BITS), len(answers)))
    limit = float((1 << 31) - 1)
    reports = np.clip(np.minimum(index, mechanism.levels) + noise, -limit, limit)
    payloads = reports.astype(">i4").view(np.uint8).reshape(-1, 4)
    return QuestionSummary(len(answers), REDUCTIONS["laplace"].reduce(mechanism, payloads))


def choice_summary(question: Question, made: NDArray[np.int64], random: Generator) -> QuestionSummary:
    """Unary reports of people of whom made[j] made choice j; cost independent of how many."""
    mechanism = cast(ChoiceMechanism, mechanism_for(question))
    p, q, n = float(mechanism.p), float(mechanism.q), int(made.sum())
    if not keeps_patterns(mechanism.choices):
        return QuestionSummary(n, random.binomial(made, p) + random.binomial(n - made, q))
    bits = pattern_bits(mechanism.choices)
    values = np.zeros(len(bits), dtype=np.int64)
    for choice, people in enumerate(made):
        ones = np.full(mechanism.choices, q)
        ones[choice] = p
        values += random.multinomial(people, np.prod(np.where(bits == 1, ones, 1 - ones), axis=1))
    return QuestionSummary(n, values)


def yes_no_summary(question: Question, people: int, yes: int, random: Generator) -> QuestionSummary:
    """Randomized responses of people of whom `yes` would truly say so."""
    mechanism = cast(ChoiceMechanism, mechanism_for(question))
    said = random.binomial(yes, float(mechanism.p)) + random.binomial(people - yes, float(mechanism.q))
    return QuestionSummary(people, np.array([people - said, said]))


def record_summary(
    question: Question, features: Matrix, responses: Vector, random: Generator
) -> QuestionSummary:
    """Reports of a record for each person: features (n, d) and responses (n,) in [−1, 1]."""
    mechanism = cast(GaussianStatistics, mechanism_for(question))
    shrink = np.maximum(np.linalg.norm(np.clip(features, -1, 1), axis=1, keepdims=True), 1.0)
    ones = np.ones((len(features), 1))
    weight = mechanism.weight / UNIT
    v = np.hstack(
        [weight * ones, np.clip(features, -1, 1) / shrink, weight * np.clip(responses, -1, 1)[:, None]]
    )
    moments = v.T @ v
    rows, columns = np.array(mechanism.coordinates).T
    exact = moments[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0)) * mechanism.grid
    noise = random.normal(0.0, np.sqrt(len(features)) * (1 << NOISE_BITS), len(rows))
    return QuestionSummary(len(features), np.rint(exact + noise).astype(np.int64))


def signs_summary(
    question: Question, features: Matrix, responses: Vector, random: Generator
) -> QuestionSummary:
    """The same of `signs_study`, by the mechanism's own sampler."""
    mechanism = cast(SampledProducts, mechanism_for(question))
    limits = np.array([float(feature.bounds[1]) for feature in question.features if feature.bounds])
    ones = np.ones((len(features), 1))
    entries = np.hstack([ones, np.clip(features / limits, -1, 1), np.clip(responses, -1, 1)[:, None]])
    rows = np.rint(entries * UNIT).astype(np.int64)
    payloads = randomise_many(mechanism, rows, NotForRealAnswers(random.bytes))
    return QuestionSummary(len(features), REDUCTIONS["sampled_products"].reduce(mechanism, payloads))


def summary_of(study: Study, part: QuestionSummary) -> Summary:
    """A summary of the study's only question, as `fit` takes it."""
    return Summary(study.id, study.version, study.digest, {study.questions[0].id: part})
