"""Fits that are bad, or sound, by the reports of people who answered.

Reports are made here as devices make them. Some of them are then lost, forged, or read under another study.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.sampling.nuts import Sampled
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Report, Study
from tests import studies
from tests.statistics import seeded

Payloads = NDArray[np.uint8]
Values = NDArray[np.float64]
Answers = Callable[[Generator], Any]

JOBS = ("student", "worker", "teacher")
USABLE, NOT_USABLE = 0, 4


@dataclass(frozen=True)
class Case:
    """A question and what people answer. The rest is what goes wrong on the way to a posterior.

    told: the question that their devices read, where it is another one. arrives: what becomes of payloads.
    spoils: what becomes of the sampler's draws.
    """

    question: dict[str, Any]
    answers: Answers
    told: dict[str, Any] | None = None
    arrives: Callable[[Payloads], Payloads] = np.asarray
    spoils: Callable[[Sampled], Sampled] | None = None
    slow: bool = False


def asked(question: dict[str, Any], mechanism: str, epsilon: str) -> dict[str, Any]:
    return {**question, "mechanism": {"name": mechanism, "epsilon": epsilon}}


def yes(share: float, people: int, epsilon: str = "1", **prior: Any) -> Case:
    model = {"name": "bernoulli", **({"prior": {"p": prior}} if prior else {})}
    question = {**studies.with_epsilon(studies.YES_NO, epsilon), "model": model}
    return Case(question, lambda random: random.random(people) < share)


def jobs(mechanism: str, *shares: float, people: int = 3000, epsilon: str = "1", **more: Any) -> Case:
    question = asked(studies.CHOICE, mechanism, epsilon)
    return Case(question, lambda random: random.choice(JOBS, people, p=shares), **more)


def number(law: str, answers: Answers, top: str = "12", epsilon: str = "4", **more: Any) -> Case:
    question = {**asked(studies.NUMBER, "laplace", epsilon), "bounds": ["0", top], "model": {"name": law}}
    return Case(question, answers, slow=True, **more)


def refusing(people: int, epsilon: str) -> Case:
    """A yes or no, and a fifth who prefer not to say."""

    def answers(random: Generator) -> NDArray[np.object_]:
        found = (random.random(people) < 0.3).astype(object)
        found[random.random(people) < 0.2] = None
        return found

    return Case({**studies.with_epsilon(studies.YES_NO, epsilon), "refusal": True}, answers)


def products(question: dict[str, Any], answers: Answers) -> Case:
    """A record that is asked by signs of sampled products."""
    without = {key: value for key, value in question.items() if key != "norm"}
    return Case(asked(without, "sampled_products", "1"), answers, slow=True)


def command_of(case: Case, folder: Path, *seed: Any) -> list[str]:
    """The command that fits a case, whose files are written here. seed: of people and noise."""
    study = Study(studies.document(case.question))
    told = Study(studies.document(case.told)) if case.told else study
    answers = case.answers(np.random.default_rng(list(repr(seed).encode())))
    made = perturb_many(mechanism_for(told.questions[0]), answers, seeded(*seed), "refusal" in case.question)
    reports = (
        Report(f"{place:032}", study.id, 1, study.digest, {study.questions[0].id: bytes(payload)})
        for place, payload in enumerate(case.arrives(np.array(made, np.uint8)))
    )
    (folder / "evidence").write_text("".join(report.to_json() + "\n" for report in reports))
    (folder / "study.json").write_text(study.to_json())
    files = [str(folder / name) for name in ("study.json", "evidence")]
    return ["fit", *files, "--out", str(folder / "out"), "--method", "gaussian_approx"]


LEVELS = ("never", "seldom", "often")


def spoilt(change: Callable[[Values], Values], site: int = 0, case: Case | None = None) -> Case:
    """Sound reports, of whose draws one site (chains, draws, …) is changed."""

    def spoils(sampled: Sampled) -> Sampled:
        name = list(sampled.sites)[site]
        sites = {**sampled.sites, name: change(np.array(sampled.sites[name]))}
        return replace(sampled, sites=sites, mixing=None, chained=True)

    return replace(case or yes(0.3, 3000), spoils=spoils)


def stuck_everywhere(draws: Values) -> Values:
    draws[:] = draws[0, 0]
    return draws


def chain_apart(draws: Values) -> Values:
    draws[0] = draws[0] * 0.8
    return draws


def slow_walk(draws: Values) -> Values:
    return np.sort(draws, axis=1)


def not_a_number(draws: Values) -> Values:
    draws[0, 0] = np.nan
    return draws


def diverging(sampled: Sampled) -> Sampled:
    flags = np.zeros_like(sampled.diverging)
    flags[0, :5] = True
    return replace(sampled, diverging=flags, mixing=None, chained=True)


def two_peaks(random: Generator) -> Values:
    return np.concatenate([random.normal(19, 1, 4000), random.normal(41, 1, 4000)])


def heap(random: Generator) -> Values:
    return np.where(random.random(20_000) < 0.4, 2.0, random.normal(7, 1.5, 20_000))


def zeros(random: Generator) -> Values:
    """More than a third 0, and others about 4.4."""
    return np.where(random.random(20_000) < 0.35, 0.0, random.gamma(4, 1.1, 20_000))


def log_odds(random: Generator, people: int = 20_000) -> dict[str, Any]:
    smokes, married = random.random(people) < 0.4, random.random(people) < 0.6
    affair = random.random(people) < 1 / (1 + np.exp(1 - smokes))
    return {"smokes": smokes, "married": married, "affair": affair}


def first_repeated(payloads: Payloads) -> Payloads:
    return np.concatenate([np.repeat(payloads[:1], 20, axis=0), payloads[20:]])


YES_NO_RECORD = {
    **studies.LOGISTIC,
    "features": [{"id": "smokes", "ask": "yes_no"}, {"id": "married", "ask": "yes_no"}],
}
SCALE = {**studies.ONE_OF, "ordered": True, "choices": list(LEVELS)}

# Where nothing was learnt, or nothing came.
TOO_FEW = {
    "30 reports that noise drowns": yes(0.3, 30, "0.1"),
    "30 numbers that noise drowns": number(
        "exponential", lambda random: random.exponential(3, 30), epsilon="0.1"
    ),
    "a regression of 100 people": products(YES_NO_RECORD, lambda random: log_odds(random, 100)),
}
FALSE = {
    "reports that no answers can give": replace(
        yes(1, 600), arrives=lambda payloads: payloads[payloads[:, 0] == 1]
    ),
    "reports of a larger epsilon": replace(yes(0.1, 3000), told=studies.with_epsilon(studies.YES_NO, "4")),
    "bits of another mechanism": replace(
        jobs("sue", 0.2, 0.5, 0.3), told=asked(studies.CHOICE, "oue", "1"), slow=True
    ),
    "one number twenty times": replace(
        number("exponential", lambda random: random.exponential(3, 4000)), arrives=first_repeated
    ),
}
WRONG_PRIOR = {
    "a prior that rules the truth out": yes(0.6, 3000, distribution="uniform", low="0", high="0.1"),
    "a prior far from the truth": yes(0.6, 10_000, distribution="beta", a="500", b="4500"),
}
WRONG_LAW = {
    "two peaks under a normal law": Case(studies.with_epsilon(studies.AGE, "4"), two_peaks, slow=True),
    "even answers under an exponential law": number(
        "exponential", lambda random: random.uniform(6, 12, 8000)
    ),
    "an exponential number under a normal law": number(
        "normal", lambda random: random.exponential(3, 20_000)
    ),
    "a heap under a normal law": number("normal", heap, epsilon="8"),
    "counts of unlike people under a Poisson law": number(
        "poisson", lambda random: random.negative_binomial(2, 0.25, 8000).astype(float), top="20"
    ),
}
SPOILT = {
    "chains that all stand still": spoilt(stuck_everywhere),
    "one of two parameters stands still": spoilt(stuck_everywhere, 1, refusing(5000, "1")),
    "a chain elsewhere": spoilt(chain_apart),
    "chains that walk slowly": spoilt(slow_walk),
    "a draw that is no number": spoilt(not_a_number),
    "transitions that diverge": replace(yes(0.3, 3000), spoils=diverging),
}
BAD = {**TOO_FEW, **FALSE, **WRONG_PRIOR, **WRONG_LAW, **SPOILT}

GOOD = {
    "a yes or no": yes(0.3, 3000),
    "a rare yes": yes(0.02, 10_000),
    "a share of nobody": yes(0, 5000),
    "a yes or no under much noise": yes(0.3, 10_000, "0.2"),
    "few people under little noise": yes(0.3, 200, "4"),
    "a prior near the truth": yes(0.3, 3000, distribution="beta", a="3", b="7"),
    "a yes or no that some refuse": refusing(5000, "1"),
    "choices by randomized response": jobs("randomized_response", 0.15, 0.6, 0.25),
    "choices of which one is common": jobs("randomized_response", 0.9, 0.08, 0.02, people=5000),
    "choices of which one is nobody's": jobs("randomized_response", 0.6, 0.4, 0, people=5000),
    "choices by unary encoding": jobs("oue", 0.15, 0.6, 0.25),
    "choices by subset selection": jobs("subset_selection", 0.15, 0.6, 0.25, slow=True),
    "choices by local hashing": jobs("olh", 0.15, 0.6, 0.25, slow=True),
    "choices by Hadamard codes": jobs("hadamard", 0.15, 0.6, 0.25, slow=True),
    "a scale": Case(SCALE, lambda random: random.choice(LEVELS, 5000, p=[0.5, 0.3, 0.2]), slow=True),
    # No report shows that the law is wrong, so the mean as clipped leads.
    "zeros under a normal law": number("normal", zeros, top="24"),
    "a normal number": Case(
        studies.with_epsilon(studies.AGE, "4"), lambda random: random.normal(30, 5, 4000), slow=True
    ),
    "an exponential number": number("exponential", lambda random: random.exponential(3, 4000)),
    "a count": number("poisson", lambda random: random.poisson(6, 4000).astype(float), top="20"),
    "failures before a success": number(
        "geometric", lambda random: random.geometric(0.25, 4000) - 1.0, top="20"
    ),
    "a logistic regression": products(YES_NO_RECORD, log_odds),
}
