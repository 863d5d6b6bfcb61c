"""The share of people who prefer not to say, beside the law of those who answer (METHODS 3.5).

Of all people a share `refused` gives no answer; the others answer by the law that the question's model is,
whose parameters keep their meaning and their priors. The same noise tells who refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Draws, Truth
from inference.models.family import Answers, Priors, draw
from inference.priors.laws import state
from inference.results.intervals import REFUSED
from schemas import Question

Values = NDArray[np.float64]
NOTE = f"{REFUSED} is the share of all people who prefer not to say; all else is of those who answer"


def refusal_prior(question: Question) -> Priors:
    """Even, where the question offers refusal."""
    return {REFUSED: state("beta", a=1.0, b=1.0)} if question.refusal else {}


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
