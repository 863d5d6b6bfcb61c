"""Which published versions need a gateway's key still: a deletion leaves through the relay as its report did,
under the key that the report's version states, for as long as the report is stored.
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
    """The open studies whose version of now states one of the keys that is not left, by id."""
    documents = queries.unfinished_documents(session)
    studies = [Study.from_json(canonical) for canonical, is_open in documents if is_open]
    return sorted(study.id for study in studies if _needs(study, keys, left))


def withdrawable(session: Session, keys: GatewayKeys, left: GatewayKeys) -> list[Needing]:
    """The versions whose reports no device can withdraw once only these keys are left, and could before.

    Of every study: one that is over has reports that people may take back.
    """
    return [
        Needing(study.id, study.version, reports)
        for study, reports in relayed_with_reports(session)
        if _needs(study, keys, left)
    ]


def relayed_with_reports(session: Session) -> Iterator[tuple[Study, int]]:
    """The versions of all studies that state a relay, and how many reports of each are stored.

    Others are not read: nobody withdraws anything of them, and this release may not know what they say.
    """
    relayed = list(_perhaps_relayed(session))
    # Counting reads every report: only where anybody stated a relay.
    stored = _by_version(arrivals(session)) if relayed else Counter()
    for number, version, canonical in relayed:
        if stored[number, version]:
            study = Study.from_json(canonical)
            if study.channel is not None and study.channel.oblivious is not None:
                yield study, stored[number, version]


def _perhaps_relayed(session: Session) -> Iterator[tuple[int, int, bytes]]:
    """The versions that have the word, without which none states a relay: number, version, document."""
    for study_id, number, version in queries.every_version(session):
        canonical = queries.canonical_bytes(session, study_id, version)
        if canonical is not None and b'"oblivious"' in canonical:
            yield number, version, canonical


def lost_withdrawals(
    number: int, versions: Iterable[Study], came: Iterable[Arrivals], keys: GatewayKeys
) -> list[str]:
    """What an operator is told of a study's versions whose devices cannot withdraw, for want of a key.

    number: the study's. came: of whatever studies.
    """
    reports = _by_version(came)
    lost = [study for study in versions if reports[number, study.version] and not keys.opens(study)]
    return [
        f"{counted(reports[number, study.version], 'report')} of version {study.version} cannot be withdrawn "
        f"by devices, as ohttp_keys lacks the key of a gateway that it states: put the file with that key "
        "back, unless it was retired because it leaked; where it stays away, delete with an operator's key "
        "what people ask you to"
        for study in lost
    ]


def _by_version(came: Iterable[Arrivals]) -> Counter[tuple[int, int]]:
    reports: Counter[tuple[int, int]] = Counter()
    for one in came:
        reports[one.study, one.version] += one.reports
    return reports


def _needs(study: Study, keys: GatewayKeys, left: GatewayKeys) -> bool:
    return keys.opens(study) and not left.opens(study)
