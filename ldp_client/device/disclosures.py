"""A device's history: which study asked what, what the answers cost, and the state of the reports."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldp_client.device.ledger import Ledger


# A report's state in the ledger: its name for a person.
_STATES = {
    "queued": "waiting",
    "trying": "waiting",
    "sent": "sent",
    "refused": "refused",
    "withdrawn": "being_deleted",
}
STATES = ("sent", "waiting", "refused", "being_deleted")


class Disclosure:
    """One collector's study, as far as this device answered it.

    Attributes:
        study: its id.
        collector: the origin of its collector; "" if no collector was named yet.
        version: the latest version that was answered.
        questions: ids of the questions that were asked.
        epsilon: the exact cost of the answers, in nats.
        delta: their exact cost as a probability.
        reports: {state: number of reports}, for each of STATES. All are 0 if every report was withdrawn and
            deleted.
        untokened: how many waiting reports still have to request a token.
        batched: how many waiting reports have a token or need none, and leave together with others.
        strata: {field: value} for each waiting report whose token's key encodes public values. The issuer
            states these values, and the collector will add them.
    """

    def __init__(self, study: str, collector: str) -> None:
        self.study = study
        self.collector = collector
        self.version = 0
        self.questions: list[str] = []
        self.epsilon = Fraction(0)
        self.delta = Fraction(0)
        self.reports = dict.fromkeys(STATES, 0)
        self.untokened = 0
        self.batched = 0
        self.strata: list[dict[str, str]] = []


def told_by(ledger: Ledger) -> list[Disclosure]:
    """Return an entry for each collector's study, in the order of ids. Raises LedgerError."""
    spent = "SELECT study, origin, question, version, epsilon, delta FROM spent ORDER BY 1, 2, 3"
    sent = "SELECT study, origin, state FROM reports ORDER BY 1, 2"
    leaving = """SELECT reports.study, reports.origin, channel, IFNULL(token, ''), key
      FROM reports JOIN channels USING (document) LEFT JOIN tokens ON report = id
      WHERE state IN ('queued', 'trying')"""
    with ledger.reading() as connection:
        together = connection.execute(leaving).fetchall()
        spends = connection.execute(spent).fetchall()
        reports = connection.execute(sent).fetchall()
    entries: dict[tuple[str, str], Disclosure] = {}

    def entry_of(study: str, origin: str) -> Disclosure:
        return entries.setdefault((study, origin), Disclosure(study, origin))

    for study, origin, question, version, epsilon, delta in spends:
        entry = entry_of(study, origin)
        entry.version = max(entry.version, version)
        # In a study that draws one question, the other questions cost nothing.
        if Fraction(epsilon) and question not in entry.questions:
            entry.questions.append(question)
        entry.epsilon += Fraction(epsilon)
        entry.delta += Fraction(delta)
    for study, origin, state in reports:
        entry_of(study, origin).reports[_STATES[state]] += 1
    for study, origin, channel, token, key in together:
        entry = entry_of(study, origin)
        tokens = json.loads(channel).get("tokens")
        awaits = tokens is not None and not token
        entry.untokened += awaits
        entry.batched += not awaits
        stratum = tokens["keys"][key].get("public") if token else None
        entry.strata += [stratum] if stratum else []
    return list(entries.values())
