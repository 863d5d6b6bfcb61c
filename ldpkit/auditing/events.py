"""Lower bounds on ε: events are found on one half of the samples and tested on the other."""

from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

from ldpkit.auditing.claims import Claim, lower_share, upper_share
from ldpkit.auditing.exact import support_law
from ldpkit.auditing.findings import Check
from ldpkit.auditing.views import Batch, Family, View, families, support_view

# Events are chosen by bounds of this many standard errors; the test itself uses bounds that always hold.
CAUTION = 5.0
TIE_BREAK = exp(-20)


@dataclass(frozen=True)
class Evidence:
    """The evidence of one event about a claim, on samples that did not choose the event.

    family: the event's kind. answers: the answers that it compares. seen: its counts under the two answers,
    out of `samples` each. refutes: whether bounds of both shares break the claim. epsilon: the evidence in
    nats. Both bounds hold except with a given probability.
    """

    family: str
    view: str
    answers: str
    samples: int
    seen: tuple[int, int]
    refutes: bool
    epsilon: float

    def __str__(self) -> str:
        return (
            f"epsilon ≥ {self.epsilon:.4g} ({self.view}: {self.seen[0]} and {self.seen[1]} "
            f"of {self.samples}, {self.answers})"
        )


def evidence_of(
    names: tuple[str, str], answers: tuple[Any, Any], one: Batch, other: Batch, false_alarm: float
) -> list[Evidence]:
    """Return the evidence of each family's best event; each is wrong with at most that probability."""
    (learn, test), (learn_other, test_other) = one.halves, other.halves
    evidence = []
    for family in families(answers, learn, learn_other):
        view, labels = _best_event(family, learn, learn_other)
        counts = [view.counts(batch) for batch in (test, test_other)]
        seen = [sum([count.get(label, 0) for label in labels]) for count in counts]
        low = lower_share(seen[0], test.count, false_alarm / 2)
        high = upper_share(seen[1], test_other.count, false_alarm / 2)
        value = family.claim.evidence(low, high)
        evidence.append(
            Evidence(
                family=family.name,
                view=view.name,
                answers=f"{names[0]} against {names[1]}",
                samples=test.count,
                seen=(seen[0], seen[1]),
                refutes=value > family.claim.limit,
                epsilon=family.claim.as_epsilon(value),
            )
        )
    return evidence


def _best_event(family: Family, one: Batch, other: Batch) -> tuple[View, list[int]]:
    """Return the most promising event of a family, judged on these samples alone: a view and its labels."""
    scored = [(*_best_labels(view, family.claim, one, other), view) for view in family.views]
    _, labels, view = max(scored, key=lambda each: each[0])
    return view, labels


def _best_labels(view: View, claim: Claim, one: Batch, other: Batch) -> tuple[float, list[int]]:
    """Return the labels most likely under the first answer, as many as give the strongest evidence."""
    here, there = view.counts(one), view.counts(other)
    ratios = {label: (here[label] + 0.5) / (there.get(label, 0) + 0.5) for label in here}
    labels = sorted(here, key=None if view.ordered else lambda label: ratios[label], reverse=True)
    best, cut, first, second = -1.0, 0, 0, 0
    for place, label in enumerate(labels):
        first, second = first + here[label], second + there.get(label, 0)
        p, q = first / one.count, second / other.count
        low, high = _wilson(p, one.count, -CAUTION), _wilson(q, one.count, CAUTION)
        score = claim.evidence(low, high) + TIE_BREAK * (p - q)
        if score > best:
            best, cut = score, place + 1
    return best, labels[:cut]


def _wilson(share: float, n: int, z: float) -> float:
    """Return Wilson's score bound: from above for z > 0, from below for z < 0."""
    middle = share + z * z / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return min(max((middle + spread) / (1 + z * z / n), 0.0), 1.0)


def bound_checks(evidence: list[Evidence]) -> list[Check]:
    """Check each family's strongest evidence, and that no event is possible under one answer only."""
    strongest: dict[str, Evidence] = {}
    for each in sorted(evidence, key=lambda e: (e.refutes, e.epsilon)):
        strongest[each.family] = each
    checks = [Check(f"bound from {name}", not e.refutes, str(e)) for name, e in strongest.items()]
    impossible = [e for e in evidence if e.refutes and e.seen[1] == 0]
    detail = str(impossible[0]) if impossible else f"{len(evidence)} events, of {len(strongest)} kinds"
    return [*checks, Check("no output of one answer is impossible for another", not impossible, detail)]


def support_check(answers: tuple[Any, Any], batch: Batch, false_alarm: float) -> Check:
    """Check how often reports support the true choice, the other, both or neither, against the exact law."""
    p, q, both = support_law(batch.mechanism, answers)
    law = {3: both, 2: p - both, 1: q - both, 0: 1 - p - q + both}
    counts = support_view(batch.mechanism, answers).counts(batch)
    rate = false_alarm / (2 * len(law))
    passed, shown = True, []
    for label, chance in law.items():
        seen = counts.get(label, 0)
        low, high = lower_share(seen, batch.count, rate), upper_share(seen, batch.count, rate)
        passed = passed and low <= float(chance) <= high
        shown.append(f"{seen} of {float(chance) * batch.count:.0f}")
    return Check("supported choices follow the stated law", passed, ", ".join(shown))
