"""What a device sends in clear: nothing that it was asked behind noise before, nor what nobody means to send.

A public field of a newer version, or of another publisher's study, may have the id or the text of a question
that the ledger charged for. The answer would leave as it is, and cost nothing.
"""

import hashlib
import json
import sqlite3

from ldp_client.documents.errors import AnswerError, RefusedError
from ldp_client.documents.sections import names_of
from ldp_client.documents.spoken import in_each_language
from ldp_client.words.text import letters, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ldp_client.documents.study import Study

# Tells a mark from the digest of a question's words, beside which the ledger keeps it.
MARK = "="
# Before the mark of a public field that stood beside the question.
CLEAR = "+"


def clear_mark(field: "Any") -> str:
    """Of a public field's document: it tells it from every other field, also of the same id or text."""
    text = json.dumps(field, sort_keys=True)
    return CLEAR + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def kept_marks(study: "Study", shown: "list[Study]", question: str, words: str) -> "set[str]":
    """What the ledger keeps of a question beside its words so far. shown: see `in_each_language`.

    With which fields in clear it was asked every time: such a field had left before, and hides nothing.
    """
    clear = {clear_mark(field) for field in study.document.get("public", [])}
    known = {one for one in words.split() if one[:1] != CLEAR or one in clear}
    names = [mark(name) for one in shown for name in names_of(one, one.question(question))]
    return known.union(names, () if words else clear)


def mark(name: str) -> str:
    """A digest of a text or id, whatever its case, blanks and punctuation."""
    return MARK + hashlib.sha256(letters(name).encode("utf-8", "surrogatepass")).hexdigest()


def refuse_asked_behind_noise(connection: sqlite3.Connection, study: "Study") -> None:
    """Raises RefusedError where a public field was a question of this study's id, whoever published that."""
    if not study.public:
        return
    rows = connection.execute("SELECT question, words FROM spent WHERE study = ?", (study.id,)).fetchall()
    shown = [one.public for one in in_each_language(study)]
    for place, (field, document) in enumerate(zip(study.public, study.document["public"])):
        texts = [fields[place].text for fields in shown]
        names = {mark(field.id), *[mark(text) for text in texts if text]}
        asked = [{mark(question), *words.split()} for question, words in rows]
        if any([names & known and clear_mark(document) not in known for known in asked]):
            raise RefusedError(say("device.asked_behind_noise", study=study.id, field=field.id))


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
        raise AnswerError("public", say("core.answers"))
    if not isinstance(answers, dict):
        return answers  # which `quantise_answers` refuses
    for name in public or {}:
        if name not in fields:
            raise AnswerError(str(name)[:64], say("core.not_public"))
        if name in answers:
            raise AnswerError(name, say("device.given_twice"))
    unnamed = [name for name in fields if name in answers]
    if unnamed and not is_watched:
        raise RefusedError(say("device.clear_unnamed", study=study.id, fields=", ".join(unnamed)))
    return {**answers, **(public or {})}
