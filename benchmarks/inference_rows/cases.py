"""A study and simulated reports of any number for each built-in model."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.ldpbi.surveys import (
    choice_study,
    choice_summary,
    number_study,
    number_summary,
    record_study,
    record_summary,
    yes_no_study,
    yes_no_summary,
)
from benchmarks.running import Size
from schemas import Question, Study
from summaries import QuestionSummary

PEOPLE, AT_ONCE = 100_000, 1_000_000
Draw = Callable[[Question, int, Generator], QuestionSummary]


class Case(NamedTuple):
    """One model: its study, and how reports are simulated."""

    study: Study
    draw: Draw

    @property
    def question(self) -> Question:
        """The study's only question."""
        return self.study.questions[0]

    def summary(self, people: int, seed: int = 0) -> QuestionSummary:
        """The summary of so many simulated reports."""
        sizes = [AT_ONCE] * (people // AT_ONCE) + [people % AT_ONCE] * (people % AT_ONCE > 0)
        randoms = np.random.default_rng(seed).spawn(len(sizes))
        parts = [self.draw(self.question, size, random) for size, random in zip(sizes, randoms, strict=True)]
        return reduce(QuestionSummary.merge, parts)


def _normal(question: Question, n: int, random: Generator) -> QuestionSummary:
    return number_summary(question, random.normal(0.45, 0.15, n), random)


def _exponential(question: Question, n: int, random: Generator) -> QuestionSummary:
    return number_summary(question, random.exponential(0.3, n), random)


def _bernoulli(question: Question, n: int, random: Generator) -> QuestionSummary:
    return yes_no_summary(question, n, round(0.3 * n), random)


def _multinomial(question: Question, n: int, random: Generator) -> QuestionSummary:
    k = len(question.choices)
    shares = 1 / (np.arange(k) + 3.0)
    return choice_summary(question, random.multinomial(n, shares / shares.sum()), random)


def _slopes(d: int) -> np.ndarray:
    return 0.4 * np.cos(np.arange(d)) / np.sqrt(d)


def _features(d: int, n: int, random: Generator) -> np.ndarray:
    """Of norm 1 at most for nearly all."""
    return random.normal(0, 0.6 / np.sqrt(d), (n, d))


def _linear(question: Question, n: int, random: Generator) -> QuestionSummary:
    x = _features(len(question.features), n, random)
    y = 0.1 + x @ _slopes(x.shape[1]) + random.normal(0, 0.2, n)
    return record_summary(question, x, y, random)


def _logistic(question: Question, n: int, random: Generator) -> QuestionSummary:
    x = _features(len(question.features), n, random)
    chance = 1 / (1 + np.exp(-0.2 - 5 * x @ _slopes(x.shape[1])))
    return record_summary(question, x, np.where(random.random(n) < chance, 1.0, -1.0), random)


CASES: dict[str, Case] = {
    "normal": Case(number_study("normal", 1.0), _normal),
    "exponential": Case(number_study("exponential", 1.0), _exponential),
    "bernoulli": Case(yes_no_study(1.0), _bernoulli),
    "multinomial k = 8": Case(choice_study(8, 1.0), _multinomial),
    "multinomial k = 64": Case(choice_study(64, 1.0), _multinomial),
    "linear d = 10": Case(record_study(10, 2.0, "linear_regression"), _linear),
    "logistic d = 10": Case(record_study(10, 2.0, "logistic_regression"), _logistic),
}


def cases_of(size: Size) -> Iterable[tuple[str, Case]]:
    """Of a tiny run the quickest alone."""
    names = size.of(list(CASES), list(CASES), ["bernoulli"])
    return [(name, CASES[name]) for name in names]
