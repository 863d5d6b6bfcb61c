"""Count answers that were clipped to a study's bounds, and report the counts to the data holder.

A device does not need the counts and sends none of them: a report is made from the clipped answer.
"""

from typing import Any

from ldp_client.core.quantise import UNIT, as_float, signed_units
from ldp_client.documents.study import Study
from ldp_client.words.text import say

# Tolerance for rounding to the grid, so that a record of exactly the norm is not counted.
ROUNDING = 1e-5


class ClippedCount:
    """Counts of clipped answers (for a table: rows) by question, out of `total`."""

    def __init__(self) -> None:
        self.total = 0
        self.clipped: dict[str, int] = {}

    def add(self, study: Study, answers: dict[str, Any]) -> None:
        """Count one person's answers, which the study's mechanisms have accepted."""
        self.total += 1
        for question in study.questions:
            self.note(question.id, is_clipped(question, answers[question.id]))

    def note(self, question: str, count: int) -> None:
        """Add to one question's count."""
        self.clipped[question] = self.clipped.get(question, 0) + count

    def line(self) -> str:
        """Return one line for the data holder, "" if no answer was clipped."""
        counts = [
            say("core.clipped_of", question=question, count=count, total=self.total)
            for question, count in self.clipped.items()
            if count
        ]
        return say("core.clipped", counts=", ".join(counts)) if counts else ""


def is_clipped(asked: Any, answer: Any) -> bool:
    """Return True if an accepted answer is beyond bounds or norm. asked: a question or its mechanism."""
    if answer is None:  # a refusal
        return False
    bounds = getattr(asked, "bounds", None)
    if bounds is not None:
        return _is_beyond(answer, bounds)
    features = getattr(asked, "features", ())
    if not features:
        return False
    fields = [field for field in (*features, asked.response) if field.bounds is not None]
    if any(_is_beyond(answer[field.id], field.bounds) for field in fields):
        return True
    if asked.norm is None:
        return False
    scaled = [signed_units(answer[field.id], field.bounds, UNIT, field.id) / UNIT for field in features]
    return sum(entry * entry for entry in scaled) > largest_square(asked.norm)


def largest_square(norm: Any) -> float:
    """Return the largest square of a norm that is not clipped."""
    return float(norm) ** 2 * (1 + ROUNDING)


def _is_beyond(value: Any, bounds: Any) -> bool:
    low, high = bounds
    # A value that can be read as a number may not compare with numbers.
    number = as_float(value, "")
    return number < float(low) or number > float(high)
