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

    choices: k. bits: probabilities are integers over 2**bits. p: probability that S contains the
    true choice; q: that it contains a given other one. odds: (a, b) with e^ε = a / b exactly.
    """

    bits = CHOICE_BITS
    p: Rational
    q: Rational

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.labels = question.choices
        self._index = {label: index for index, label in enumerate(question.choices)}
        self.choices = len(question.choices)
        self.boolean = question.ask == "yes_no"

    def quantise(self, answer: "Any") -> int:
        """The index of the choice; a yes/no also takes True and False. Raises AnswerError."""
        if self.boolean and isinstance(answer, bool):
            return int(answer)
        if not isinstance(answer, str) or answer not in self._index:
            raise AnswerError(self.field, f"must be one of its {self.choices} choices")
        return self._index[answer]

    def _state_odds(self, often: int, seldom: int) -> None:
        """Set odds and privacy from the two weights of a report, x in S and x not in S."""
        if seldom < 1 or often <= seldom:
            raise StudyError(f"{self.field}.mechanism.epsilon", f"is too small for {self.choices} choices")
        self.odds = (often, seldom)
        self.privacy = Privacy(log_ratio(often, seldom), Rational(0))
