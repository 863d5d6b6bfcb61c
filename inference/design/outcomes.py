"""The private outcome of a planned formula: its law, and the probabilities of its reports. Loads no JAX."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from inference.analyses.design_file import ColumnDesign
from inference.analyses.parameter_names import named
from inference.analyses.survey import groups_of_rows
from inference.design.information import masses, number_channel
from inference.design.people import People
from inference.design.shares import law_of_reports
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question

Vector = NDArray[np.float64]
# Places for a private number's answers between its bounds.
ANSWERS = 257


@dataclass(frozen=True)
class Outcome:
    """A private outcome as it is reported.

    answers: of a choice, () for a number. channel: P(report | answer), (answers, reports), or one for each
    cell. units: a number's lower bound, and the distance of its bounds.
    """

    name: str
    answers: tuple[str, ...]
    channel: Vector
    ordered: bool = False
    units: tuple[float, float] = (0.0, 1.0)

    @property
    def own(self) -> tuple[str, ...]:
        """Return the parameters of the law beside the linear predictor's: cutpoints, or an sd."""
        if not self.answers:
            return ("sigma",)
        return tuple(named("threshold", one) for one in self.answers[:-1]) if self.ordered else ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the labels of the linear predictors: several choices have one for each but the first."""
        return self.answers[1:] if len(self.answers) > 2 and not self.ordered else ("",)

    def law(self, arguments: Vector) -> Vector:
        """Return P(answer) (cells, answers) from linear predictors and own parameters (cells, arguments)."""
        if not self.answers:
            mean, sd = arguments.T[:, :, None]
            low, width = self.units
            return masses(lambda x: ndtr((x - mean) / sd), np.linspace(low, low + width, ANSWERS))
        if self.ordered:
            below = expit(arguments[:, 1:] - arguments[:, :1])
            ends = np.zeros((len(below), 1))
            return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)
        eta = np.concatenate([np.zeros((len(arguments), 1)), arguments], axis=1)
        weights = np.exp(eta - eta.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def outcome_of_question(question: Question) -> Outcome:
    """Return a question's outcome. Raises InputError for reports that are too many, or of other kinds."""
    mechanism = mechanism_for(question)
    if isinstance(mechanism, NumberMechanism):
        low, width = number_units(question)
        channel = number_channel(question, np.linspace(low, low + width, ANSWERS))
        return Outcome(question.id, (), channel, units=(low, width))
    law = law_of_reports(mechanism) if isinstance(mechanism, ChoiceMechanism) else None
    if law is None or not isinstance(mechanism, ChoiceMechanism):
        raise InputError(
            f"{question.id}: a plan of a formula takes yes or no, not too many choices, and numbers under "
            f"laplace or gaussian noise, but this is a {question.ask} under {mechanism.name}",
            code="plan.outcome_not_plannable",
        )
    answers = ["(refused)" if label is None else str(label) for label in mechanism.labels]
    return Outcome(question.id, tuple(answers), law.T, bool(question.ordered and not question.refusal))


def outcome_of_design(design: ColumnDesign, people: People) -> Outcome:
    """Return the outcome of a survey done with dice. Raises InputError for unknown shares of people."""
    if any(part.channel.weights for part in design.parts):
        raise InputError(
            f'{design.name}: a plan needs a number for each share of people in the design, not "unknown"',
            code="plan.unknown_share_of_people",
        )
    channels = np.stack([part.channel.chances[0, 0] for part in design.parts])
    return Outcome(
        design.name, design.answers, channels[groups_of_rows(people.frame, design)], design.ordered
    )
