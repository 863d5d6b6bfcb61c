"""A memoized question asks the same in all versions of its study: devices keep one answer to its id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from collector import store
from collector.problems import STUDY_CONFLICT, ProblemError
from schemas.names import title_above

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schemas import Study

    Document = dict[str, Any]

NAME = "memoized"
# The canonical JSON of every study with a memoized question contains this.
STATED = b'"name":"memoized"'


def refuse_changed_questions(session: Session, study: Study) -> None:
    """Reject a version that changes what a memoized question of an earlier version asks.

    Every earlier version counts, because a device may have answered any of them.

    Args:
        session: the session in which the version is published.
        study: the version.

    Raises:
        ProblemError: a question changed, or is no longer memoized; the error names the question.
    """
    document = study.document
    now = {question["id"]: (index, question) for index, question in enumerate(document["questions"])}
    for version in store.published_versions(session, study.id):
        canonical = store.canonical_bytes(session, study.id, version) or b""
        # Parsed without validation: that takes 0.2 s, and uploads wait for this transaction.
        earlier = json.loads(canonical) if STATED in canonical else {"questions": []}
        for before in earlier["questions"]:
            if before["mechanism"]["name"] != NAME or before["id"] not in now:
                continue
            index, question = now[before["id"]]
            part = _changed_part(earlier, before, document, question)
            if part:
                detail = (
                    f"memoized question {before['id']} differs from version {version} in its {part}: "
                    "give it a new id, because devices keep one answer to each id"
                )
                raise ProblemError(STUDY_CONFLICT, detail, f"questions[{index}]")


def _changed_part(earlier: Document, before: Document, document: Document, question: Document) -> str:
    """Return what differs between a question of an earlier document and of a document, or "" if nothing does.

    Texts are compared in the languages that both documents state. If a document states none, its language is
    unknown: its texts must be those of the other document in one language.
    """
    shape = _shape(question)
    for part, value in _shape(before).items():
        if value != shape[part]:
            return part
    texts, others = _texts(earlier, before), _texts(document, question)
    shared = texts.keys() & others.keys()
    is_known = "" not in {*texts, *others}
    for part in ("choices", "text or title"):
        if shared:
            is_same = all(texts[language][part] == others[language][part] for language in shared)
        else:
            pairs = [(text[part], other[part]) for text in texts.values() for other in others.values()]
            is_same = is_known or any(first == second for first, second in pairs)
        if not is_same:
            return part
    return ""


def _shape(question: Document) -> Document:
    """Return {part: value} of what a question asks apart from its texts; of its labels only their number."""
    choices = question.get("choices", [])
    size = len(choices) if isinstance(choices, list) else choices
    return {"type": question["ask"], "mechanism": question["mechanism"], "choices": size}


def _texts(document: Document, question: Document) -> dict[str, Document]:
    """Return {language: {part: text}}, with the language "" if the document states none.

    A question without text asks the title that is shown above it.
    """
    text = question.get("text") or title_above(document, question["id"])
    choices = question.get("choices", [])
    labels = choices if isinstance(choices, list) else []
    return {
        language: {
            "choices": [_in_language(label, language) for label in labels],
            "text or title": _in_language(text, language),
        }
        for language in document.get("languages", [""])
    }


def _in_language(text: str | dict[str, str], language: str) -> str:
    return text[language] if isinstance(text, dict) else text
