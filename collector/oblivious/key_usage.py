"""Find published versions that still need a gateway's key.

A deletion is sent through the relay as its report was, under the key that the report's version states. So the
version needs this key as long as the report is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from collector.storage import queries
from collector.storage.overviews import Arrivals, arrivals
from ldp_client.words.text import counted
from schemas import Study

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from collector.oblivious.keys import GatewayKeys


class Needing(NamedTuple):
    """A version of a study that states a key, and how many reports of it are stored."""

    study: str
    version: int
    reports: int

    def __str__(self) -> str:
        return f"{self.study}, version {self.version} ({counted(self.reports, 'report')})"


def open_studies(session: Session, keys: GatewayKeys, left: GatewayKeys) -> list[str]:
    """Return the ids of open studies whose current version states one of `keys` that is not in `left`."""
    documents = queries.unfinished_documents(session)
    studies = [Study.from_json(canonical) for canonical, is_open in documents if is_open]
    return sorted(study.id for study in studies if _needs(study, keys, left))


def withdrawable(session: Session, keys: GatewayKeys, left: GatewayKeys) -> list[Needing]:
    """Return the versions whose reports devices can withdraw with `keys`, but not with `left`.

    Studies that are over are included, because people may still withdraw reports from them.
    """
    return [
        Needing(study.id, study.version, reports)
        for study, reports in relayed_with_reports(session)
        if _needs(study, keys, left)
    ]


def relayed_with_reports(session: Session) -> Iterator[tuple[Study, int]]:
    """Yield the versions of all studies that state a relay, and how many reports of each are stored.

    Documents without a relay or without reports are not parsed: no device withdraws from them through a
    relay, and this release may not be able to read them.
    """
    relayed = list(_perhaps_relayed(session))
    # Counting reads every report, so count only if a version may state a relay.
    stored = _by_version(arrivals(session)) if relayed else Counter()
    for number, version, canonical in relayed:
        if stored[number, version]:
            study = Study.from_json(canonical)
            if study.channel is not None and study.channel.oblivious is not None:
                yield study, stored[number, version]


def _perhaps_relayed(session: Session) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, version and document of each version whose text has the word that every relay needs."""
    for study_id, number, version in queries.every_version(session):
        canonical = queries.canonical_bytes(session, study_id, version)
        if canonical is not None and b'"oblivious"' in canonical:
            yield number, version, canonical


def lost_withdrawals(
    number: int, versions: Iterable[Study], came: Iterable[Arrivals], keys: GatewayKeys
) -> list[str]:
    """Return warnings about a study's versions whose devices cannot withdraw because a key is missing.

    number: the study's number. came: arrivals of any studies.
    """
    reports = _by_version(came)
    lost = [study for study in versions if reports[number, study.version] and not keys.opens(study)]
    return [
        f"devices cannot withdraw {counted(reports[number, study.version], 'report')} of version "
        f"{study.version}: the gateway's key is missing in ohttp_keys. Restore the key file; if the key "
        "leaked or is lost, delete on request with an operator's key"
        for study in lost
    ]


def _by_version(came: Iterable[Arrivals]) -> Counter[tuple[int, int]]:
    reports: Counter[tuple[int, int]] = Counter()
    for one in came:
        reports[one.study, one.version] += one.reports
    return reports


def _needs(study: Study, keys: GatewayKeys, left: GatewayKeys) -> bool:
    return keys.opens(study) and not left.opens(study)
