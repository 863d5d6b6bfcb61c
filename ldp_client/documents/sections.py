"""Sections of a study: questions that are shown together under a title."""

from ldp_client.documents.errors import StudyError
from ldp_client.documents.fields import Boolean, Identifier
from ldp_client.documents.shapes import ListOf, Record
from ldp_client.documents.spoken import Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


MOST = 100
# A title that ends with such a mark needs no colon before the text that follows.
ENDS = "?:.!…؟？：。"
_SECTION = Record({"title": Spoken(200), "questions": ListOf(Identifier(), 1, MOST)}, {"any_of": Boolean()})
SECTIONS = ListOf(_SECTION, 1, MOST, unique_by="title")


class Section:
    """Questions that are shown together.

    Args:
        parsed: the section's part of a study document.

    Attributes:
        title: the heading above the questions.
        questions: their ids, in the order in which they are shown.
        any_of: whether the title is the question, and its questions are a list of boxes to tick.
    """

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.title: str = parsed["title"]
        self.questions: "tuple[str, ...]" = tuple(parsed["questions"])
        self.any_of: bool = bool(parsed["any_of"])


def below(title: str, text: str) -> str:
    """Return the full text of a box: the title of its list, then the box's own text."""
    ends = "" if title[-1] in ENDS else ":"
    return f"{title}{ends} {text}"


def check_sections(parsed: "dict[str, Any]") -> None:
    """Raise StudyError unless each question of a parsed study is in exactly one section."""
    if parsed["respondent"] == "holder":
        problem = "do not go with the respondent 'holder', who is shown no questions"
        raise StudyError("sections", problem, code="study.sections_for_holders")
    if parsed["sample_one_question"]:
        problem = "do not go with sample_one_question: each device is shown one question"
        raise StudyError("sections", problem, code="study.sections_with_sample_one_question")
    asked = {question["id"]: question for question in parsed["questions"]}
    left = list(asked)
    for index, section in enumerate(parsed["sections"]):
        for place, name in enumerate(section["questions"]):
            problem = _misplaced(asked.get(name), name, left, section["any_of"])
            if problem:
                raise StudyError(
                    f"sections[{index}].questions[{place}]",
                    f"{name!r} {problem}",
                    code="study.section_question_invalid",
                )
            left.remove(name)
    if left:
        problem = f"leave out {left[0]!r}: each question must be in a section"
        raise StudyError("sections", problem, code="study.question_in_no_section")


def _misplaced(
    question: "Optional[dict[str, Any]]", name: str, left: "list[str]", is_list: "Optional[bool]"
) -> str:
    """Return the reason why a question is not allowed at a place in a section, or ""."""
    if question is None:
        return "is not a question of this study"
    if name not in left:
        return "is already in a section"
    once = question["mechanism"]["name"] != "memoized"
    if is_list and not (question["ask"] == "yes_no" and once and not question.get("refusal")):
        return "is no yes/no that is asked once and without refusal, as each box of a list is"
    return ""
