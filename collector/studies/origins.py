"""Origins that devices contact besides the collector: every page names the token issuers of all studies.

Pages name them in a header. Proxies limit headers, so each study gets a limited share of it.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from collector import store
from collector.problems import STUDY_INVALID, ProblemError
from collector.studies.reading_once import ReadOnce
from ldp_client.documents.channel import CHANNEL, Channel
from ldp_client.documents.errors import StudyError

# Half of the 4 kB that nginx accepts for all headers.
MOST_IN_ALL = 2048
# For all versions of one study: two origins of any length. One study's key leaves room for the others.
MOST_OF_A_STUDY = 600
# Every document with a channel contains this, and so do some without a channel.
CHANNEL_KEY = b'"channel":{'


def origins_of(channel: Channel | None) -> list[str]:
    """Return the origins that devices of a study contact besides the collector: its issuer, if it has one."""
    if channel is None or channel.tickets is None:
        return []
    parts = urlsplit(channel.tickets.issuer)
    return [f"{parts.scheme}://{parts.netloc}"]


def published_origins(session: Session) -> dict[int, set[str]]:
    """Return the origins of every study that is not deleted, by its number, over all its versions.

    Each document is read once in a process: a key of one study may publish very many long documents.
    """
    found: dict[int, set[str]] = {}
    for study, origins in _ORIGINS.of(session, store.all_versions(session)):
        found.setdefault(study, set()).update(origins)
    return found


def require_room(session: Session, number: int, channel: Channel | None) -> None:
    """Reject a version that would make the headers of all pages too long.

    Args:
        session: the session in which the version is published.
        number: its study's number.
        channel: the version's channel.

    Raises:
        ProblemError: its issuer is new, and the header has no room for it.
    """
    new = set(origins_of(channel))
    if not new:
        return
    known = published_origins(session)
    own, all_known = known.get(number, set()), set().union(*known.values())
    is_long = not new <= own and _length(new | own) > MOST_OF_A_STUDY
    if is_long or (not new <= all_known and _length(new | all_known) > MOST_IN_ALL):
        detail = (
            f"every page names all issuers: at most {MOST_OF_A_STUDY} characters for all versions "
            f"of a study, {MOST_IN_ALL} for all studies; use shorter names, or names of another study here"
        )
        raise ProblemError(STUDY_INVALID, detail, "channel")


def _length(origins: set[str]) -> int:
    return sum(len(origin) + 1 for origin in origins)


def _channel_in(text: bytes) -> Channel | None:
    """Return the channel of a study's document, None if it has none.

    CHANNEL_KEY alone proves nothing: a feature may have that name. An unreadable document gives None, so that
    other studies are unaffected.
    """
    if CHANNEL_KEY not in text:
        return None
    try:
        found = json.loads(text).get("channel")
        return None if found is None else Channel(CHANNEL.read(found, "channel", StudyError))
    except (ValueError, AttributeError, StudyError):
        return None


_ORIGINS = ReadOnce(lambda text: origins_of(_channel_in(text)))
