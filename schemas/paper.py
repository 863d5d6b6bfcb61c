"""Paper mode: questions that dice protect instead of a device, and the meaning of a record on paper."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_client.documents.errors import StudyError
from ldp_client.documents.fields import Identifier, Text
from ldp_client.documents.rational import Rational
from ldp_client.documents.shapes import ListOf, Record

if TYPE_CHECKING:
    from ldp_client.documents.fields import Error

MOST_QUESTIONS = 100
# A limit of what participants can do with dice and cards.
MOST_REPORTS = 20
MOST_DIGITS = 9
_PATTERN = r"^([0-9]{1,9}/[0-9]{1,9}|[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)$"


class Probability:
    """A fraction of whole numbers of at most nine digits, or a decimal, from 0 to 1."""

    def read(self, value: Any, path: str, error: Error) -> Rational:
        number = _number(value) if isinstance(value, str) else None
        if number is None or not Rational(0) <= number <= Rational(1):
            raise error(path, 'must be a probability in a string, such as "5/6" or "0.25"')
        return number

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": _PATTERN, "maxLength": 40}


def _number(text: str) -> Rational | None:
    over, slash, under = text.partition("/")
    if not slash:
        try:
            return Rational.parse(text)
        except ValueError:
            return None
    whole = [
        1 <= len(part) <= MOST_DIGITS and all([c in "0123456789" for c in part]) for part in (over, under)
    ]
    return Rational(int(over), int(under)) if all(whole) and int(under) else None


_ROW = ListOf(Probability(), 2, MOST_REPORTS, repeats=True)
_QUESTION = Record(
    {
        "id": Identifier(),
        "instructions": Text(2000),
        "matrix": ListOf(_ROW, 2, MOST_REPORTS, repeats=True),
    },
    {"reports": ListOf(Text(200), 2, MOST_REPORTS)},
)
PAPER = Record(
    {"questions": ListOf(_QUESTION, 1, MOST_QUESTIONS, unique_by="id")},
    {"instructions": Text(5000)},
)


def check_paper(parsed: dict[str, Any]) -> None:
    """Raise StudyError if a study's paper mode does not fit its questions, or a matrix reveals nothing."""
    if parsed["sample_one_question"] or parsed["protocol"] is not None or parsed["respondent"] == "holder":
        problem = "goes with neither sample_one_question, nor a secure sum, nor data holders"
        raise StudyError("paper", problem, code="study.paper_invalid")
    asked = {question["id"]: question for question in parsed["questions"]}
    for index, one in enumerate(parsed["paper"]["questions"]):
        path = f"paper.questions[{index}]"
        choices = _choices(asked.get(one["id"]))
        if not 2 <= len(choices) <= MOST_REPORTS:
            problem = f"must be a question of the study with 2 to {MOST_REPORTS} labels, or yes or no"
            raise StudyError(f"{path}.id", problem, code="study.paper_invalid")
        if asked[one["id"]]["mechanism"]["name"] == "memoized":
            raise StudyError(
                f"{path}.id", "does not go with 'memoized': dice keep no answer", code="study.paper_invalid"
            )
        _check_matrix(one["matrix"], len(choices), len(one["reports"] or choices), f"{path}.matrix")


def _choices(question: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the labels of a question, or () if it has none."""
    if question is None:
        return ()
    if question["ask"] == "yes_no":
        return ("no", "yes")
    choices = question.get("choices")
    return choices if isinstance(choices, tuple) else ()


def _check_matrix(matrix: tuple[tuple[Rational, ...], ...], answers: int, reports: int, path: str) -> None:
    if len(matrix) != answers:
        raise StudyError(path, f"must have {answers} rows, one for each answer", code="study.paper_invalid")
    for index, row in enumerate(matrix):
        if len(row) != reports:
            problem = f"must have {reports} entries, one for each report"
            raise StudyError(f"{path}[{index}]", problem, code="study.paper_invalid")
        if sum(row, Rational(0)) != Rational(1):
            raise StudyError(
                f"{path}[{index}]", "must add up to 1 exactly: state fractions", code="study.paper_invalid"
            )
    if all([row == matrix[0] for row in matrix]):
        problem = "gives the same reports for every answer: they would say nothing"
        raise StudyError(path, problem, code="study.paper_invalid")


class PaperQuestion:
    """A question as it is asked on paper.

    Args:
        parsed: its part of a study document, as PAPER reads it.
        choices: the question's, in the study's order.

    Attributes:
        id: of the study's question.
        instructions: what participants do before they answer.
        answers: the possible true answers, the rows of the matrix.
        reports: the possible written reports, the columns of the matrix.
        matrix: P(report | answer), exact.
    """

    def __init__(self, parsed: dict[str, Any], choices: tuple[str, ...]) -> None:
        self.id: str = parsed["id"]
        self.instructions: str = parsed["instructions"]
        self.answers = choices
        self.reports: tuple[str, ...] = parsed["reports"] or choices
        self.matrix: tuple[tuple[Rational, ...], ...] = parsed["matrix"]

    @property
    def ratio(self) -> Fraction | None:
        """The largest likelihood ratio of a report under two answers: e^ε, or None if unbounded."""
        ratios = [Fraction(1)]
        for column in zip(*self.matrix, strict=True):
            chances = [Fraction(chance.numerator, chance.denominator) for chance in column]
            if max(chances) > 0 and min(chances) == 0:
                return None
            ratios += [max(chances) / min(chances)] if max(chances) > 0 else []
        return max(ratios)


class Paper:
    """A study's paper mode.

    Args:
        parsed: its part of a study document, as PAPER reads it.
        choices: {question id: its choices}.

    Attributes:
        instructions: for all questions together; "" if the document has none.
        questions: the questions asked on paper.
    """

    def __init__(self, parsed: dict[str, Any], choices: dict[str, tuple[str, ...]]) -> None:
        self.instructions: str = parsed["instructions"] or ""
        self.questions = tuple([PaperQuestion(one, choices[one["id"]]) for one in parsed["questions"]])
