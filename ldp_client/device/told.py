"""What a device has told so far: which study asked what, what that cost, and what became of the reports."""

import json
from fractions import Fraction

from ldp_client.device.known_studies import shown_publisher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.ledger import Ledger

# A report's state in the ledger, by what a person would call it.
_STATES = {
    "queued": "waiting",
    "trying": "waiting",
    "sent": "sent",
    "refused": "refused",
    "withdrawn": "being_deleted",
}
STATES = ("sent", "waiting", "refused", "being_deleted")


class Told:
    """One publisher's study, as far as this device answered it.

    Attributes:
        study: its id.
        publisher: its collector's base URL, or the key that signed it; "" where an old ledger does not say.
        version: the latest that was answered.
        questions: ids of those that were asked.
        epsilon: what the answers cost, exactly, in nats.
        delta: the same, a probability.
        reports: {state: how many}, for each of STATES. None of any was withdrawn and is deleted.
        untokened: of those that wait, how many need a token that is still to be asked for.
        batched: how many have one, or need none, and leave together with others.
        strata: of those with a token whose key stands for public values, {field: value}: what the issuer says
            of the person, and the collector will add.
    """

    def __init__(self, study: str, publisher: str) -> None:
        self.study = study
        self.publisher = publisher
        self.version = 0
        self.questions: "list[str]" = []
        self.epsilon = Fraction(0)
        self.delta = Fraction(0)
        self.reports = dict.fromkeys(STATES, 0)
        self.untokened = 0
        self.batched = 0
        self.strata: "list[dict[str, str]]" = []


def told_by(ledger: "Ledger") -> "list[Told]":
    """Give what each publisher's study was told, in the order of ids. Raises LedgerError.

    Keys whose reports are for one collector are one publisher there: what was answered to one goes over to
    the next.
    """
    spent = "SELECT study, publisher, question, version, epsilon, delta FROM spent ORDER BY 1, 2, 3"
    sent = "SELECT study, publisher, collector, state FROM reports ORDER BY 1, 2"
    leaving = """SELECT reports.study, reports.publisher, channel, IFNULL(token, ''), key
      FROM reports JOIN channels USING (document) LEFT JOIN tokens ON report = id
      WHERE state IN ('queued', 'trying')"""
    with ledger.reading() as connection:
        together = connection.execute(leaving).fetchall()
        spends = connection.execute(spent).fetchall()
        reports = connection.execute(sent).fetchall()
    places = {(study, publisher): collector for study, publisher, collector, _ in reports}
    found: "dict[tuple[str, str], Told]" = {}

    def entry_of(study: str, publisher: str) -> Told:
        place = places.get((study, publisher), "")
        name = shown_publisher(publisher, place) if publisher else place
        return found.setdefault((study, place or publisher), Told(study, name))

    for study, publisher, question, version, epsilon, delta in spends:
        entry = entry_of(study, publisher)
        entry.version = max(entry.version, version)
        # Of a study that draws one question the others cost nothing.
        if Fraction(epsilon) and question not in entry.questions:
            entry.questions.append(question)
        entry.epsilon += Fraction(epsilon)
        entry.delta += Fraction(delta)
    for study, publisher, _, state in reports:
        entry_of(study, publisher).reports[_STATES[state]] += 1
    for study, publisher, channel, token, key in together:
        entry = entry_of(study, publisher)
        tokens = json.loads(channel).get("tokens")
        awaits = tokens is not None and not token
        entry.untokened += awaits
        entry.batched += not awaits
        stratum = tokens["keys"][key].get("public") if token else None
        entry.strata += [stratum] if stratum else []
    return list(found.values())
