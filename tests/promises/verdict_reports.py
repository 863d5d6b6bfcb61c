"""The files of a study that people answered, for verdicts on its fit.

Reports are made here as devices make them. Some of them are then lost, forged, or read under another study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.design.simulation import simulate
from inference.models.base import Truth
from inference.sampling import Sampled
from ldp_client import Mechanism, mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Report, Study
from summaries import Summary
from tests import studies
from tests.statistics import seeded

Payloads = NDArray[np.uint8]
Values = NDArray[np.float64]
Answers = Callable[[Generator], Any]

JOBS = ("student", "worker", "teacher")
NODES = [f"http://127.0.0.1:{9000 + node}#" + "0" * 128 for node in range(3)]
SUMMED = 5000
SUM = {"name": "secure_sum", "nodes": NODES, "devices": SUMMED, "max_faulty": 250}


def same(payloads: Payloads) -> Payloads:
    return payloads


@dataclass(frozen=True)
class Case:
    """A question and what people answer. The rest is what goes wrong on the way to a posterior.

    told: the question that their devices read, where it is another one. arrives: what becomes of payloads.
    spoils: what becomes of the sampler's draws. version: of the study that reports say they answer.
    truth: of a secure sum, where no report arrives.
    """

    question: dict[str, Any]
    answers: Answers = lambda _random: ()
    told: dict[str, Any] | None = None
    arrives: Callable[[Payloads], Payloads] = same
    spoils: Callable[[Sampled], Sampled] | None = None
    version: int = 1
    truth: dict[str, float] = field(default_factory=dict)
    slow: bool = False

    def study(self, version: int = 1) -> Study:
        protocol = {"protocol": SUM} if self.truth else {}
        return Study(studies.document(self.question, version=version, **protocol))


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


def payloads_of(case: Case, mechanism: Mechanism, random: Generator, *seed: Any) -> Payloads:
    """What arrives of one report for each answer."""
    told = mechanism if case.told is None else mechanism_for(Study(studies.document(case.told)).questions[0])
    answers = case.answers(random)
    if len(answers) == 0:
        return np.zeros((0, mechanism.payload_size), np.uint8)
    is_refusable = "refusal" in case.question
    return case.arrives(np.array(perturb_many(told, answers, seeded(*seed), is_refusable), np.uint8))


def evidence_of(case: Case, study: Study, *seed: Any) -> str:
    """A file of reports, or the summary of a secure sum."""
    (question,), answered = study.questions, case.study(case.version)
    mechanism, random = mechanism_for(question), np.random.default_rng(list(repr(seed).encode()))
    if case.truth:
        part = simulate(question, mechanism, Truth(case.truth, {}), SUMMED, random)
        return Summary(study.id, study.version, study.digest, {question.id: part}).to_json()
    reports = (
        Report(f"{place:032}", study.id, case.version, answered.digest, {question.id: bytes(payload)})
        for place, payload in enumerate(payloads_of(case, mechanism, random, *seed))
    )
    return "".join(report.to_json() + "\n" for report in reports)


def command_of(case: Case, folder: Path, *seed: Any) -> list[str]:
    """The command that fits a case, whose files are written here. seed: of people and noise."""
    study, evidence = case.study(), folder / "evidence"
    (folder / "study.json").write_text(study.to_json())
    evidence.write_text(evidence_of(case, study, *seed))
    more = ["--method", "gaussian_approx"]
    return ["fit", str(folder / "study.json"), str(evidence), "--out", str(folder / "out"), *more]
