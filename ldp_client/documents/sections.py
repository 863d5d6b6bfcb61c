"""Sections of a study: questions that are shown together under a title."""

from ldp_client.documents.fields import Boolean, Identifier
from ldp_client.documents.shapes import ListOf, Record
from ldp_client.documents.spoken import Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
