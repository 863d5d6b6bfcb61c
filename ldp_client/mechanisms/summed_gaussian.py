"""`summed_gaussian` for one answer: a choice, a number's cell, or a number and its square."""

from ldp_client.core.integers import isqrt
from ldp_client.core.quantise import UNIT, grid_index, signed_units
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.summed import (
    SQUARE_BOTTOM,
    SQUARE_TOP,
    SummedMechanism,
    nearest,
    summed_distance,
)
from ldp_client.mechanisms.summed_records import SummedMarginals, SummedRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.study import Question


class SummedChoice(SummedMechanism):
    """One-hot: a coordinate for each choice; for yes/no one coordinate, the yes."""

    statistic = "choice"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self._choices = ChoiceMechanism(question)
        boolean = self._choices.boolean
        self._first = 1 if boolean else 0
        self.size = self._choices.choices - self._first
        distance = summed_distance(question, self.size)
        self._take_grid(distance if boolean else isqrt(distance * distance // 2), 1)

    def quantise(self, answer: "Any") -> "list[int]":
        """Raises AnswerError for what is not one of the choices."""
        chosen = self._choices.quantise(answer) - self._first
        return [self.grid if index == chosen else 0 for index in range(self.size)]


class SummedHistogram(SummedMechanism):
    """A number's cell among `size` equal ones between its bounds, one-hot."""

    statistic = "histogram"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        assert question.mechanism.cells is not None
        self.bounds = question.bounds
        self.size = question.mechanism.cells
        distance = summed_distance(question, self.size)
        self._take_grid(isqrt(distance * distance // 2), 1)

    def quantise(self, answer: "Any") -> "list[int]":
        """Beyond the bounds the outermost cells. Raises AnswerError."""
        place = grid_index(answer, self.bounds, self.size * UNIT, self.field)
        cell = min(place // UNIT, self.size - 1)
        return [self.grid if index == cell else 0 for index in range(self.size)]


class SummedMoments(SummedMechanism):
    """A number scaled to [−1, 1], and 3/2 of its square. Two numbers' vectors are at most 2 apart."""

    statistic = "moments"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        self.bounds = question.bounds
        self.size = 2
        # Rounding moves each coordinate of a difference by at most 1: less than 2 in L2.
        self._take_grid((summed_distance(question, self.size) - 2) // 2, 2)

    def quantise(self, answer: "Any") -> "list[int]":
        """Beyond the bounds the nearest bound. Raises AnswerError."""
        units = signed_units(answer, self.bounds, UNIT, self.field)
        square = SQUARE_TOP * units * units
        return [nearest(units * self.grid, UNIT), nearest(square * self.grid, SQUARE_BOTTOM * UNIT * UNIT)]


def summed_gaussian(question: "Question") -> Mechanism:
    """The mechanism `summed_gaussian` for what the question asks. Raises StudyError."""
    if question.ask == "record":
        return SummedMarginals(question) if question.mechanism.statistic else SummedRecord(question)
    if question.ask == "number":
        return SummedMoments(question) if question.mechanism.cells is None else SummedHistogram(question)
    return SummedChoice(question)
