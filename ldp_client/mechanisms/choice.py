"""What all choice mechanisms share: a random set of supported choices.

A report stands for a set S of choices, and P(report | x) is c·e^ε if x is in S, else c, with c the
same for every x (METHODS 3.2b). Subclasses say how S is drawn and written.
"""

from ldp_client.core.calibration import CHOICE_BITS, log_ratio
from ldp_client.mechanisms.base import Mechanism, Privacy
from schemas.errors import AnswerError, StudyError
from schemas.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from schemas.study import Question


class ChoiceMechanism(Mechanism):
    """A mechanism for one of k choices.

    choices: k. labels: what they are called, or range(k). bits: probabilities are integers over
    2**bits. p: probability that S contains the true choice; q: that it contains a given other one.
    odds: (a, b) with e^ε = a / b exactly.
    """

    bits = CHOICE_BITS
    p: Rational
    q: Rational

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.labels = question.choices
        self.choices = len(question.choices)
        self.numbered = question.numbered
        labels = () if self.numbered else question.choices
        self._index = {label: index for index, label in enumerate(labels)}
        self.boolean = question.ask == "yes_no"

    def quantise(self, answer: "Any") -> int:
        """The index of the choice; a yes/no also takes True and False. Raises AnswerError.

        Where the choices are numbers they are given as int, or as text.
        """
        if self.boolean and isinstance(answer, bool):
            return int(answer)
        if self.numbered:
            return self._number(answer)
        if not isinstance(answer, str) or answer not in self._index:
            raise AnswerError(self.field, f"must be one of its {self.choices} choices")
        return self._index[answer]

    def _number(self, answer: "Any") -> int:
        if isinstance(answer, str) and 0 < len(answer) <= 7 and all([c in "0123456789" for c in answer]):
            answer = int(answer)
        if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < self.choices:
            raise AnswerError(self.field, f"must be a whole number from 0 to {self.choices - 1}")
        return answer

    def supported(self, payload: bytes, index: int) -> bool:
        """Whether choice `index` is in the set S that a possible payload stands for."""
        raise NotImplementedError(self.name)

    def support_probability(self, true: int, index: int) -> Rational:
        """The probability that S contains choice `index` when choice `true` was answered, exactly."""
        return self.p if true == index else self.q

    def _state_odds(self, often: int, seldom: int) -> None:
        """Set odds and privacy from the two weights of a report, x in S and x not in S."""
        if seldom < 1 or often <= seldom:
            raise StudyError(f"{self.where}.epsilon", f"is too small for {self.choices} choices")
        self.odds = (often, seldom)
        self.privacy = Privacy(log_ratio(often, seldom), Rational(0))
