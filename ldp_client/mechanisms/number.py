"""What mechanisms for one bounded number share: its grid, and one signed integer as payload."""

from ldp_client.core.calibration import NOISE_BITS
from ldp_client.core.quantise import grid_index
from ldp_client.mechanisms.base import Mechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.study import Question


class NumberMechanism(Mechanism):
    """i in 0..levels, plus noise of scale `scale`; a subclass sets `levels` and `privacy`.

    A payload is one signed 32-bit integer in grid units: 0 is the lower bound, `levels` the upper.
    """

    payload_size = 4
    scale = 1 << NOISE_BITS
    levels: int

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        self.bounds = question.bounds
        self._limits = float(self.bounds[0]), float(self.bounds[1])

    def quantise(self, answer: "Any") -> int:
        """The nearest grid point; beyond the bounds the nearest bound. Raises AnswerError."""
        return grid_index(answer, self._limits, self.levels, self.field)
