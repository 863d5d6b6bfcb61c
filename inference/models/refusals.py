"""The share of people who prefer not to say, beside the law of those who answer (METHODS 3.5).

Of all people a share `refused` gives no answer; the others answer by the law that the question's model is,
whose parameters keep their meaning and their priors. The same noise tells who refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods.common import CellCounts
from inference.models.base import Draws, Truth
from inference.models.family import Answers, draw
from inference.results.intervals import REFUSED
from ldp_client import Mechanism
from ldp_client.mechanisms.refusable import RefusableNumber
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
NOTE = f"{REFUSED} is the share of all people who prefer not to say; all else is of those who answer"


def of_all(question: Question, shares: Array) -> Array:
    """Shares of all people, those who refuse last, from those of who answers; inside a NumPyro program."""
    if not question.refusal:
        return shares
    refused = draw(question, REFUSED)
    return jnp.append((1 - refused) * shares, refused)


def of_answers(question: Question, shares: Values) -> Values:
    """The way back, for a start: shares of all people may be a little out of range, as noise leaves them."""
    if not question.refusal:
        return shares
    return np.asarray(shares[:-1] / max(1 - shares[-1], 0.01))


def refusal_start(question: Question, shares: Values) -> dict[str, object]:
    """Where the share of refusals starts, from shares of all people."""
    return {REFUSED: float(np.clip(shares[-1], 0.01, 0.99))} if question.refusal else {}


def refusal_draws(question: Question, draws: Draws) -> dict[str, Values]:
    """The parameter, of draws of the sites."""
    return {REFUSED: draws[REFUSED]} if question.refusal else {}


def refusal_notes(question: Question) -> tuple[str, ...]:
    """What a reader must know."""
    return (NOTE,) if question.refusal else ()


def with_refusals(question: Question, truth: Truth, answers: Any, random: Generator) -> Any:
    """Simulated answers, None for each person who refuses."""
    if not question.refusal:
        return answers
    found = np.asarray(answers).astype(object)
    found[random.random(len(found)) < truth.parameters[REFUSED]] = None
    return found


def split_refused(parameters: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """The other parameters, and the share of refusals where it is one."""
    others = {name: value for name, value in parameters.items() if name != REFUSED}
    return others, {name: value for name, value in parameters.items() if name == REFUSED}


def count_answers(question: Question, answers: Answers) -> NDArray[np.int64]:
    """How many raw answers each choice has, refusals last where they are one."""
    labels: list[Any] = [False, True] if question.ask == "yes_no" else list(question.choices)
    labels += [None] if question.refusal else []
    return np.asarray([sum(answer == label for answer in answers) for label in labels], np.int64)


def split_answers(question: Question, answers: Answers) -> tuple[Answers, int]:
    """Raw answers that were given, and how many were refused."""
    given = [answer for answer in answers if answer is not None] if question.refusal else answers
    return given, len(answers) - len(given)


def refusals_log_prob(question: Question, given: int, refused: int) -> Array | float:
    """Of so many raw answers and refusals, inside a NumPyro program."""
    if not question.refusal:
        return 0.0
    share = draw(question, REFUSED)
    return given * jnp.log1p(-share) + refused * jnp.log(share)


class RefusableCounts(CellCounts):
    """How many of `total_count` reports lie in each cell: of those that tell a number, then a refusal.

    Args:
        answers: the same of the numbers of people who answer, one law of the numbers' cells.
        refused: the share of people who refuse.
        middle: log probabilities of the cells of who refuses, (K,).
        truth: the probability of a coin that is true.
        total_count: how many reports.
        validate_args: whether NumPyro checks arguments and values.

    Source:
        METHODS 3.5.
    """

    pytree_data_fields = ("answers", "refused", "middle", "truth", "total_count")

    def __init__(
        self,
        answers: CellCounts,
        refused: Array,
        middle: Values,
        truth: float,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.answers, self.refused, self.middle = answers, jnp.asarray(refused), jnp.asarray(middle)
        self.truth, self.total_count = truth, total_count
        super().__init__(answers.batch_shape, (2 * self.middle.shape[-1],), validate_args=validate_args)

    @property
    def log_cell_probs(self) -> Array:
        said = jnp.log1p(-self.refused) + self.answers.log_cell_probs
        silent = jnp.log(self.refused) + self.middle
        true, false = jnp.log(self.truth), jnp.log1p(-self.truth)
        parts = [jnp.logaddexp(said + true, silent + false), jnp.logaddexp(said + false, silent + true)]
        return jnp.concatenate(parts, axis=-1)


class Told(NamedTuple):
    """What reports of a number say, whether it may be refused or not.

    numbers: the mechanism of the numbers. answers: the summary of numbers, as estimated of those who answer,
    for a start and for notes. values: the whole summary. middle: log probabilities of refusals' cells.
    start: of the share of refusals. truth: the probability of a coin that is true.
    """

    numbers: Mechanism
    answers: QuestionSummary
    values: NDArray[np.int64]
    middle: Values
    start: dict[str, object]
    truth: float = 1.0

    def law(self, question: Question, answers: CellCounts, n: ArrayLike) -> CellCounts:
        """The law of all reports, from that of people's who answer, inside a NumPyro program."""
        if not question.refusal:
            return answers
        return RefusableCounts(answers, draw(question, REFUSED), self.middle, self.truth, n)


def told_by(mechanism: Mechanism, summary: QuestionSummary, middle: Callable[[Mechanism], Values]) -> Told:
    """Read a number's reports. middle: probabilities of the cells of who says the middle of the bounds."""
    if not isinstance(mechanism, RefusableNumber):
        return Told(mechanism, summary, summary.values, np.zeros(0), {})
    said, silent = summary.values.reshape(2, -1).astype(np.float64)
    p, q = float(mechanism.p), float(mechanism.q)
    # Without bias, but for what is below nothing; a coin that tells little leaves as much as so many answers.
    found = np.maximum(p * said - q * silent, 0.0) / (p - q)
    share = 1 - found.sum() / max(summary.n, 1)
    scale = (p - q) ** 2 / (p**2 + q**2)
    estimated = np.rint(scale * found).astype(np.int64)
    answers = QuestionSummary(int(estimated.sum()), estimated)
    chances = np.log(np.maximum(middle(mechanism.number), 1e-300))
    start: dict[str, object] = {REFUSED: float(np.clip(share, 0.05, 0.95))}
    return Told(mechanism.number, answers, summary.values, chances, start, p)
