"""Study documents in files, and what commands take from them."""

from ldp_client.documents.errors import InputError, StudyError
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Optional

    from ldp_client.documents.study import Question, Study


def load_study(path: str) -> "Study":
    """Read a study document. Raises InputError, which names the file, and the field that is wrong."""
    from ldp_client.documents.study import Study

    try:
        return Study.from_json(read_bytes(path))
    except StudyError as error:
        raise InputError(f"{path}: {error}") from None


def chosen_questions(study: "Study", question_id: "Optional[str]") -> "list[Question]":
    """The question that `--question` names; all of them where it names none. Raises InputError."""
    questions = [question for question in study.questions if question_id in (None, question.id)]
    if not questions:
        known = ", ".join([question.id for question in study.questions])
        raise InputError(say("files.question", known=known))
    return questions


def read_bytes(path: "str | os.PathLike[str]") -> bytes:
    """A file's content. Raises InputError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(say("files.cannot_read", path=path, reason=error.strerror)) from None
