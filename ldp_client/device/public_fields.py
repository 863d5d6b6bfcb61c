"""Guard values sent in clear: none was asked behind noise before, and none is sent by mistake.

A public field of a newer version, or of another publisher's study, may have the id or the text of a question
that the ledger charged for. Without this check its answer would leave without noise, at no cost.
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

    from ldp_client.device.pricing import Terms
    from ldp_client.documents.study import Study

# Prefix of a mark. The ledger keeps marks in one column with the digests of a question's words.
MARK = "="
# Prefix of the mark of a public field that was asked along with the question.
CLEAR = "+"


def clear_mark(field: "Any") -> str:
    """Return a digest of a public field's whole document: fields with equal ids or texts may still differ."""
    text = json.dumps(field, sort_keys=True)
    return CLEAR + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def kept_marks(terms: "Terms", question: str, rows: "list[str]") -> "set[str]":
    """Return the words and marks to keep for a question: those in its `rows` so far and its current marks.

    A clear mark stays only if its field was in clear each time the question was asked. Such a field was sent
    before and hides nothing.
    """
    clear = set(terms.clear_marks)
    clear.intersection_update(*[row.split() for row in rows if row])
    known = {one for one in " ".join(rows).split() if one[:1] != CLEAR}
    return known.union(terms.marks[question], clear)


def marks_in(documents: "list[dict[str, Any]]", question: str) -> "set[str]":
    """Return the marks by which a question may be recognised, in any language."""
    return {mark(name) for name in {name for one in documents for name in names_in(one, question)}}


def public_marks_in(documents: "list[dict[str, Any]]") -> "list[set[str]]":
    """Return the marks by which each public field may be recognised."""
    same = zip(*[one.get("public", []) for one in documents])
    return [{mark(one[key]) for one in field for key in ("id", "text") if one.get(key)} for field in same]


def mark(name: str) -> str:
    """Return a digest of a text or id that ignores case, blanks and punctuation."""
    return MARK + hashlib.sha256(letters(name).encode("utf-8", "surrogatepass")).hexdigest()


def refuse_asked_behind_noise(connection: sqlite3.Connection, terms: "Terms") -> None:
    """Raise RefusedError if a public field was a question of any publisher's study with this id."""
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
    """Return answers and public values in one dict.

    is_watched: the person agreed to exactly this study, and so to the fields that leave in clear. Otherwise
    public values must be given in `public`: `answers` alone do not show that a field is no longer private.

    Raises RefusedError if they are not given there, AnswerError for an unknown public field or a value given
    twice.
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
