"""Guard values sent in clear: no question was asked behind noise before, and no value is sent by mistake.

A public field of a newer version may have the id of a question that the ledger charged for. Without this
check its answer would leave without noise, at no cost.
"""

import sqlite3

from ldp_client.documents.errors import AnswerError, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ldp_client.documents.study import Study


def refuse_asked_behind_noise(connection: sqlite3.Connection, study: "Study") -> None:
    """Raise RefusedError if a public field has the id of a question that this study asked before."""
    query = "SELECT 1 FROM spent WHERE study = ? AND question = ? AND is_own(origin)"
    for field in study.public:
        if connection.execute(query, (study.id, field.id)).fetchone():
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
