"""What a device disclosed: each study that it answered, what that cost, and the state of its reports."""

import json
from dataclasses import dataclass, field
from fractions import Fraction

from ldp_client.device.budget import ZERO
from ldp_client.device.ledger import Ledger

# A report's state in the ledger: its name for a person.
_STATES = {
    "sent": "sent",
    "queued": "waiting",
    "trying": "waiting",
    "refused": "refused",
    "withdrawn": "being_deleted",
}


@dataclass
class Disclosure:
    """One collector's study, as far as this device answered it.

    Attributes:
        study: its id.
        collector: the origin of its collector; "" if no collector was named yet.
        version: the latest version that was answered.
        questions: ids of the questions that were asked.
        epsilon: the exact cost of the answers, in nats.
        delta: their exact cost as a probability.
        reports: {state: number of reports}, for "sent", "waiting", "refused" and "being_deleted". All are 0
            if every report was withdrawn and deleted.
        strata: {field: value} for each waiting report whose token's key encodes public values. The issuer
            states these values, and the collector will add them.
    """

    study: str
    collector: str
    version: int = 0
    questions: list[str] = field(default_factory=list)
    epsilon: Fraction = ZERO
    delta: Fraction = ZERO
    reports: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATES.values(), 0))
    strata: list[dict[str, str]] = field(default_factory=list)


def disclosures_of(ledger: Ledger) -> list[Disclosure]:
    """Return an entry for each collector's study, in the order of ids. Raises LedgerError."""
    spent = "SELECT study, origin, question, version, epsilon, delta FROM spent ORDER BY 1, 2, 3"
    tokens = """SELECT study, origin, channel, key FROM reports JOIN tokens ON report = id
      WHERE token <> ''"""
    with ledger.reading() as connection:
        leaving = connection.execute(tokens).fetchall()
        spends = connection.execute(spent).fetchall()
        reports = connection.execute("SELECT study, origin, state FROM reports ORDER BY 1, 2").fetchall()
    entries: dict[tuple[str, str], Disclosure] = {}
    for study, origin, question, version, epsilon, delta in spends:
        entry = entries.setdefault((study, origin), Disclosure(study, origin))
        entry.version = max(entry.version, version)
        # In a study that draws one question, the other questions cost nothing.
        if Fraction(epsilon):
            entry.questions.append(question)
        entry.epsilon += Fraction(epsilon)
        entry.delta += Fraction(delta)
    for study, origin, state in reports:
        entries.setdefault((study, origin), Disclosure(study, origin)).reports[_STATES[state]] += 1
    for study, origin, channel, key in leaving:
        values = json.loads(channel)["tickets"]["keys"][key].get("public")
        entries[study, origin].strata += [values] if values else []
    return list(entries.values())
