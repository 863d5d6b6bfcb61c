"""Sections of a study: questions that people are shown together, under a title of their own."""

from ldp_client.documents.errors import StudyError
from ldp_client.documents.fields import Identifier, ListOf, Record
from ldp_client.documents.spoken import Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 100
_SECTION = Record({"title": Spoken(200), "questions": ListOf(Identifier(), 1, MOST)})
SECTIONS = ListOf(_SECTION, 1, MOST, unique_by="title")


class Section:
    """Questions that are shown together.

    Args:
        parsed: the section's part of a study document.

    Attributes:
        title: what stands above them, for people.
        questions: their ids, in the order in which they are shown.
    """

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.title: str = parsed["title"]
        self.questions: "tuple[str, ...]" = tuple(parsed["questions"])


def check_sections(parsed: "dict[str, Any]") -> None:
    """Raises StudyError unless each question of a parsed study stands in one of its sections, once."""
    if parsed["unit"] == "holder":
        raise StudyError("sections", "do not go with the unit 'holder', who is shown no questions")
    if parsed["ask_one"]:
        raise StudyError("sections", "do not go with ask_one: each device is shown one question")
    left = [question["id"] for question in parsed["questions"]]
    known = list(left)
    for index, section in enumerate(parsed["sections"]):
        for place, name in enumerate(section["questions"]):
            path = f"sections[{index}].questions[{place}]"
            if name not in known:
                raise StudyError(path, f"{name!r} is no question of this study")
            if name not in left:
                raise StudyError(path, f"{name!r} stands in a section before")
            left.remove(name)
    if left:
        raise StudyError("sections", f"leave out {left[0]!r}: each question stands in one of them")
