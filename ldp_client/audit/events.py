"""Lower bounds on ε: events are found on one half of the samples and tested on the other."""

from math import exp, sqrt

from ldp_client.audit.claims import Claim, lower_share, upper_share
from ldp_client.audit.exact import support_law
from ldp_client.audit.findings import Check
from ldp_client.audit.views import AnyView, Batch, Family, Pair, families, support_view

# Events are chosen by bounds of this many standard errors; the test itself uses exact bounds.
CAUTION = 5.0


TIE_BREAK = exp(-20)


class Event:
    """A set of labels of one view. It contains every payload that has such a label."""

    def __init__(self, view: AnyView, labels: frozenset[int]) -> None:
        self.view = view
        self.labels = labels

    def count(self, batch: Batch) -> int:
        """Return how many payloads of the batch belong to the event."""
        counts = self.view.counts(batch)
        return sum([counts.get(label, 0) for label in self.labels])


class Evidence:
    """The evidence of one event about a claim, on samples that did not choose the event.

    seen: its counts under the two answers, out of `samples` each. refutes: whether Clopper–Pearson bounds
    of both shares break the claim. Both bounds hold except with the given probability. epsilon: the evidence
    in nats.
    """

    def __init__(self, event: Event, claim: Claim, one: Batch, other: Batch, false_alarm: float) -> None:
        self.name = event.view.name
        self.samples = one.n
        self.seen = (event.count(one), event.count(other))
        low = lower_share(self.seen[0], one.n, false_alarm / 2)
        high = upper_share(self.seen[1], other.n, false_alarm / 2)
        value = claim.evidence(low, high)
        self.refutes = value > claim.limit
        self.epsilon = claim.as_epsilon(value)


def best_event(family: Family, one: Batch, other: Batch) -> Event:
    """Return the most promising event of a family, judged on these samples alone."""
    found = [_best_of(view, family.claim, one, other) for view in family.views]
    return max(found, key=lambda scored: scored[0])[1]


def _best_of(view: AnyView, claim: Claim, one: Batch, other: Batch) -> tuple[float, Event]:
    """Return the labels most likely under the first answer, as many as give the strongest evidence."""
    here, there = view.counts(one), view.counts(other)
    ratios = {label: (here[label] + 0.5) / (there.get(label, 0) + 0.5) for label in here}
    labels = sorted(here, key=None if view.ordered else lambda label: ratios[label], reverse=True)
    best, cut, first, second = -1.0, 0, 0, 0
    for place, label in enumerate(labels):
        first, second = first + here[label], second + there.get(label, 0)
        score = _promise(first / one.n, second / other.n, one.n, claim)
        if score > best:
            best, cut = score, place + 1
    return best, Event(view, frozenset(labels[:cut]))


def _promise(p: float, q: float, n: int, claim: Claim) -> float:
    """Return the evidence from cautious bounds of the shares. Their plain difference breaks ties."""
    low, high = _wilson(p, n, -CAUTION), _wilson(q, n, CAUTION)
    return claim.evidence(low, high) + TIE_BREAK * (p - q)


def _wilson(share: float, n: int, z: float) -> float:
    """Return Wilson's score bound: from above for z > 0, from below for z < 0."""
    middle = share + z * z / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return min(max((middle + spread) / (1 + z * z / n), 0.0), 1.0)


class Found(Evidence):
    """Evidence, with its family of events and the answers that it compares."""

    family: str
    answers: str

    def in_words(self) -> str:
        return (
            f"epsilon ≥ {self.epsilon:.4g} ({self.name}: {self.seen[0]} and {self.seen[1]} "
            f"of {self.samples}, {self.answers})"
        )


def evidence_of(pair: Pair, answers: str, one: Batch, other: Batch, false_alarm: float) -> list[Found]:
    """Return evidence from each family of events; each is wrong with at most that probability."""
    (learn, test), (learn_other, test_other) = one.halves, other.halves
    found = []
    for family in families(pair, learn, learn_other):
        event = best_event(family, learn, learn_other)
        evidence = Found(event, family.claim, test, test_other, false_alarm)
        evidence.family, evidence.answers = family.name, answers
        found.append(evidence)
    return found


def bound_checks(found: list[Found]) -> list[Check]:
    """Check each family's strongest evidence, and that no event is possible under one answer only."""
    strongest: dict[str, Found] = {}
    for evidence in found:
        known = strongest.get(evidence.family)
        if known is None or (evidence.refutes, evidence.epsilon) > (known.refutes, known.epsilon):
            strongest[evidence.family] = evidence
    checks = [Check(f"bound from {name}", not e.refutes, e.in_words()) for name, e in strongest.items()]
    impossible = [e for e in found if e.refutes and e.seen[1] == 0]
    told = impossible[0].in_words() if impossible else f"{len(found)} events, of {len(strongest)} kinds"
    return [*checks, Check("no output of one answer is impossible for another", not impossible, told)]


def support_check(pair: Pair, batch: Batch, false_alarm: float) -> Check:
    """Check how often reports support the true choice, the other, both or neither, against the exact law."""
    p, q, both = support_law(pair)
    law = {3: both, 2: p - both, 1: q - both, 0: 1 - p - q + both}
    counts = support_view(pair).counts(batch)
    rate = false_alarm / (2 * len(law))
    outside = 0
    for label, chance in law.items():
        seen = counts.get(label, 0)
        low, high = lower_share(seen, batch.n, rate), upper_share(seen, batch.n, rate)
        outside += not low <= float(chance) <= high
    told = ", ".join(
        [f"{counts.get(label, 0)} of {float(chance) * batch.n:.0f}" for label, chance in law.items()]
    )
    return Check("supported choices follow the stated law", outside == 0, told)
