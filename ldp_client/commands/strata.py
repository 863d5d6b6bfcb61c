"""Strata of a study without a token key. No report from such a stratum can be sent."""

from ldp_client.documents.errors import StudyError
from ldp_client.documents.public import PublicField
from ldp_client.documents.study import Study
from ldp_client.words.text import say, visible


def require_keys(study: Study) -> None:
    """Raise StudyError if invitations may carry a value that no key has: its stratum would get no tokens.

    This check is for authors. Devices accept such studies: participants in other strata answer, and must be
    able to withdraw.
    """
    tokens = study.channel.tokens if study.channel is not None else None
    if tokens is None:
        return
    for field in study.carried:
        have = {key.public[field.id] for key in tokens.keys}
        if len(have) < field.size:
            raise StudyError("channel.tokens.keys", _problem(field, have), code="study.stratum_key_missing")


def _problem(field: PublicField, have: set[str]) -> str:
    place = 0
    while field.value(place) in have:
        place += 1
    first, lost = visible(field.value(place)), field.size - len(have)
    return say("cli.stratum_without_key", field=field.id, first=first, lost=lost, size=field.size)
