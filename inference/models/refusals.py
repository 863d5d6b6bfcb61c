"""The share of people who prefer not to say, with the law of the people who answer (METHODS 3.5).

A share `refused` of all people gives no answer. The others answer by the law of the question's model, whose
parameters keep their meaning and their priors. The mechanism also adds noise to refusals.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Draws, Model, Truth
from inference.models.family import draw
from inference.results.intervals import REFUSED
from ldp_client import Mechanism
from ldp_client.mechanisms.number import RefusableNumber
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
NOTE = f"{REFUSED} is the share of all people who prefer not to say; all else describes people who answer"


def of_all(question: Question, shares: Array) -> Array:
    """Turn shares among people who answer into shares of all, refusals last; inside a NumPyro program."""
    if not question.refusal:
        return shares
    refused = draw(question, REFUSED)
    return jnp.append((1 - refused) * shares, refused)


def of_answers(question: Question, shares: Values) -> Values:
    """Invert `of_all` for a start; noise may have put the shares of all people a little out of range."""
    if not question.refusal:
        return shares
    return np.asarray(shares[:-1] / max(1 - shares[-1], 0.01))


def with_refused(question: Question, model: Model) -> Model:
    """Return a model that also reports and explains the share of refusals, if the question offers refusal."""
    if not question.refusal:
        return model

    def parameters(draws: Draws) -> dict[str, Values]:
        return {**model.parameters(draws), REFUSED: draws[REFUSED]}

    start = {REFUSED: 0.1, **model.initial}
    return replace(model, parameters=parameters, initial=start, notes=(*model.notes, NOTE))


def with_refusals(question: Question, truth: Truth, answers: Any, random: Generator) -> Any:
    """Replace the simulated answers of people who refuse by None."""
    if not question.refusal:
        return answers
    found = np.asarray(answers).astype(object)
    found[random.random(len(found)) < truth.parameters[REFUSED]] = None
    return found


class Told(NamedTuple):
    """Reports of a number, whether the question offers refusal or not.

    numbers: the mechanism of the numbers. answers: the estimated summary of the numbers of people who answer,
    for a start and for notes. values: the whole summary. middle: log probabilities of refusals' cells. start:
    starting value of the share of refusals. truth: the probability that the reported coin is true.
    """

    numbers: Mechanism
    answers: QuestionSummary
    values: NDArray[np.int64]
    middle: Values
    start: dict[str, object]
    truth: float = 1.0

    def law(self, question: Question, answers: Array) -> Array:
        """Return log probabilities of all reports' cells from those of people who answer (METHODS 3.5).

        With refusals, the cells of reported numbers come first, then those of reported refusals. Inside a
        NumPyro program.
        """
        if not question.refusal:
            return answers
        refused = draw(question, REFUSED)
        said, silent = jnp.log1p(-refused) + answers, jnp.log(refused) + self.middle
        true, false = jnp.log(self.truth), jnp.log1p(-self.truth)
        parts = [jnp.logaddexp(said + true, silent + false), jnp.logaddexp(said + false, silent + true)]
        return jnp.concatenate(parts)


def told_by(mechanism: Mechanism, summary: QuestionSummary, middle: Callable[[Mechanism], Values]) -> Told:
    """Read a number's reports. middle: returns cell probabilities for the answer at the bounds' middle."""
    if not isinstance(mechanism, RefusableNumber):
        return Told(mechanism, summary, summary.values, np.zeros(0), {})
    said, silent = summary.values.reshape(2, -1).astype(np.float64)
    p, q = float(mechanism.p), float(mechanism.q)
    # Unbiased except for the cut at 0. `scale` shrinks the counts to the noiseless answers they are worth.
    found = np.maximum(p * said - q * silent, 0.0) / (p - q)
    share = 1 - found.sum() / max(summary.n, 1)
    scale = (p - q) ** 2 / (p**2 + q**2)
    estimated = np.rint(scale * found).astype(np.int64)
    answers = QuestionSummary(int(estimated.sum()), estimated)
    chances = np.log(np.maximum(middle(mechanism.number), 1e-300))
    start: dict[str, object] = {REFUSED: float(np.clip(share, 0.05, 0.95))}
    return Told(mechanism.number, answers, summary.values, chances, start, p)
