"""Strata of a study that no token key stands for: no report of their people ever leaves."""

from ldp_client.documents.errors import StudyError
from ldp_client.words.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from ldp_client.documents.channel import Tokens
    from ldp_client.documents.public import PublicField
    from ldp_client.documents.study import Study

# So many are named.
SHOWN = 3


def count_strata(study: "Study") -> int:
    """How many combinations of values invitations can carry: 1 where they carry none."""
    count = 1
    for field in _carried(study):
        count *= field.size
    return count


def without_key(study: "Study") -> "tuple[int, list[str]]":
    """How many strata have no token key, and the first few in words; none of a study without tokens."""
    tokens = _tokens_of(study)
    if tokens is None:
        return 0, []
    # Each key's values are listed ones, and no other key's.
    count, have = count_strata(study) - len(tokens.keys), [key.public for key in tokens.keys]
    shown: "list[str]" = []
    place = 0
    while len(shown) < min(count, SHOWN):
        values = _stratum(_carried(study), place)
        if values not in have:
            shown.append(", ".join([f"{name}={visible(values[name])}" for name in sorted(values)]))
        place += 1
    return count, shown


def require_keys(study: "Study") -> None:
    """Raises StudyError where a value that invitations may carry stands in no key: nobody of it gets a token.

    For who publishes. A device takes such a study, which earlier releases published: it answers whoever is
    of another stratum, and has to withdraw.
    """
    tokens = _tokens_of(study)
    if tokens is None:
        return
    for field in _carried(study):
        have = {key.public[field.id] for key in tokens.keys}
        if len(have) < field.size:
            raise StudyError("channel.tokens.keys", _problem(field, have))


def _problem(field: "PublicField", have: "set[str]") -> str:
    place = 0
    while field.value(place) in have:
        place += 1
    first, lost = visible(field.value(place)), field.size - len(have)
    return (
        f"have none for {field.id}={first} ({lost} of {field.size} values lack one): its people would pay, "
        "and no report of theirs ever leave. State all that `ldpkit issuer key` prints once each value has a "
        "key, or list no such value in public"
    )


def _stratum(fields: "list[PublicField]", place: int) -> "dict[str, str]":
    """The values at a place in the order of all strata, the last field's first."""
    values = {}
    for field in reversed(fields):
        values[field.id] = field.value(place % field.size)
        place //= field.size
    return values


def _carried(study: "Study") -> "list[PublicField]":
    return [field for field in study.public if field.from_invitation]


def _tokens_of(study: "Study") -> "Optional[Tokens]":
    return study.channel.tokens if study.channel is not None else None
