"""What a device sends in clear: nothing that it was asked behind noise before, nor what nobody means to send.

A public field of a newer version, or of another publisher's study, may have the id or the text of a question
that the ledger charged for. The answer would leave as it is, and cost nothing.
"""

import hashlib
import json
import sqlite3

from ldp_client.documents.errors import AnswerError, RefusedError
from ldp_client.documents.sections import names_in
from ldp_client.words.text import letters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ldp_client.device.terms import Terms
    from ldp_client.documents.study import Study

# Tells a mark from the digest of a question's words, beside which the ledger keeps it.
MARK = "="
# Before the mark of a public field that stood beside the question.
CLEAR = "+"


def clear_mark(field: "Any") -> str:
    """Of a public field's document: it tells it from every other field, also of the same id or text."""
    text = json.dumps(field, sort_keys=True)
    return CLEAR + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def kept_marks(terms: "Terms", question: str, rows: "list[str]") -> "set[str]":
    """What the ledger keeps of a question beside its words so far, as rows of it have them.

    With which fields in clear it was asked every time: such a field had left before, and hides nothing.
    """
    clear = set(terms.clear_marks)
    clear.intersection_update(*[row.split() for row in rows if row])
    known = {one for one in " ".join(rows).split() if one[:1] != CLEAR}
    return known.union(terms.marks[question], clear)


def marks_in(documents: "list[dict[str, Any]]", question: str) -> "set[str]":
    """By what a question may be recognised, in each language."""
    return {mark(name) for name in {name for one in documents for name in names_in(one, question)}}


def public_marks_in(documents: "list[dict[str, Any]]") -> "list[set[str]]":
    """The same of each public field."""
    same = zip(*[one.get("public", []) for one in documents])
    return [{mark(one[key]) for one in field for key in ("id", "text") if one.get(key)} for field in same]


def mark(name: str) -> str:
    """A digest of a text or id, whatever its case, blanks and punctuation."""
    return MARK + hashlib.sha256(letters(name).encode("utf-8", "surrogatepass")).hexdigest()


def refuse_asked_behind_noise(connection: sqlite3.Connection, terms: "Terms") -> None:
    """Raises RefusedError where a public field was a question of this study's id, whoever published that."""
    study = terms.study
    if not study.public:
        return
    rows = connection.execute("SELECT question, words FROM spent WHERE study = ?", (study.id,)).fetchall()
    for field, clear, names in zip(study.public, terms.clear_marks, terms.public_marks):
        asked = [{mark(question), *words.split()} for question, words in rows]
        if any([names & known and clear not in known for known in asked]):
            raise RefusedError.say("device.asked_behind_noise", study=study.id, field=field.id)


def with_public(
    study: "Study", answers: "dict[str, Any]", public: "Optional[dict[str, Any]]", is_watched: bool
) -> "dict[str, Any]":
    """Answers and public values together.

    is_watched: whether somebody agreed to this very study, and so to which fields leave in clear. Otherwise
    they have to be given apart: of the answers alone nobody can tell that one of them is no longer private.

    Raises RefusedError where they are not, AnswerError for what is no public field or is given twice.
    """
    fields = [field.id for field in study.public]
    if public is not None and not isinstance(public, dict):
        raise AnswerError.say("core.answers", "public")
    if not isinstance(answers, dict):
        return answers  # which `quantise_answers` refuses
    for name in public or {}:
        if name not in fields:
            raise AnswerError.say("core.not_public", str(name)[:64])
        if name in answers:
            raise AnswerError.say("device.given_twice", name)
    unnamed = [name for name in fields if name in answers]
    if unnamed and not is_watched:
        raise RefusedError.say("device.clear_unnamed", study=study.id, fields=", ".join(unnamed))
    return {**answers, **(public or {})}
