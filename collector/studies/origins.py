"""Where devices' requests go beside the collector: every page names the issuers and relays of all studies.

It names them in a header, which proxies bound, so whoever publishes gets so much of it and no more.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from collector.problems import STUDY_INVALID, ProblemError
from collector.storage import queries
from collector.studies.reading_once import ReadOnce
from ldp_client.documents.channel import CHANNEL, Channel
from ldp_client.documents.errors import StudyError

# Of 4 kB, which nginx takes of all headers.
MOST_IN_ALL = 2048
# Of one study's versions: two origins of any length; a key of one study leaves the others their room.
MOST_OF_A_STUDY = 600
# Every document with a channel has it, and some without.
CHANNEL_KEY = b'"channel":{'


def origins_of(channel: Channel | None) -> list[str]:
    """Where a device's requests go beside the collector, by its study's channel: issuer and relay."""
    tokens, oblivious = (channel.tokens, channel.oblivious) if channel else (None, None)
    found = [tokens.issuer] if tokens else []
    found += [oblivious.relay] if oblivious else []
    parts = [urlsplit(address) for address in found]
    return list(dict.fromkeys(f"{part.scheme}://{part.netloc}" for part in parts))


def published_origins(session: Session) -> dict[int, set[str]]:
    """Those of every study that is not deleted, by its number: of all its versions.

    A document is read once in a process: a key of one study may publish very many, and long ones.
    """
    found: dict[int, set[str]] = {}
    for study, origins in _ORIGINS.of(session, queries.all_versions(session)):
        found.setdefault(study, set()).update(origins)
    return found


def require_room(session: Session, number: int, channel: Channel | None) -> None:
    """Refuse a version with which all pages' headers would be too long.

    Args:
        session: in which the version is published.
        number: its study's.
        channel: the version's.

    Raises:
        ProblemError: its issuer or relay is new, and there is no room for it.
    """
    new = set(origins_of(channel))
    if not new:
        return
    known = published_origins(session)
    own, all_known = known.get(number, set()), set().union(*known.values())
    is_long = not new <= own and _length(new | own) > MOST_OF_A_STUDY
    if is_long or (not new <= all_known and _length(new | all_known) > MOST_IN_ALL):
        detail = (
            f"all pages name all issuers and relays: a study's may have {MOST_OF_A_STUDY} characters in all "
            f"versions, all studies' {MOST_IN_ALL}; take shorter names, or those of a study that is here"
        )
        raise ProblemError(STUDY_INVALID, detail, "channel")


def _length(origins: set[str]) -> int:
    return sum(len(origin) + 1 for origin in origins)


def _channel_in(text: bytes) -> Channel | None:
    """The channel of a study's document; None where it has none, or one that an earlier release took.

    The text alone does not tell: a feature may be called so too. What cannot be read costs no other study.
    """
    if CHANNEL_KEY not in text:
        return None
    try:
        found = json.loads(text).get("channel")
        return None if found is None else Channel(CHANNEL.read(found, "channel", StudyError))
    except (ValueError, AttributeError, StudyError):
        return None


_ORIGINS = ReadOnce(lambda text: origins_of(_channel_in(text)))
