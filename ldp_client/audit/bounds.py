"""From samples of two answers to checks: the lower bound on ε of every family, and impossible outputs."""

from ldp_client.audit.binomial import lower_share, upper_share
from ldp_client.audit.events import Evidence, best_event
from ldp_client.audit.exact import support_law
from ldp_client.audit.findings import Check
from ldp_client.audit.views import families, support_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.audit.batches import Batch
    from ldp_client.audit.views import Pair


class Found(Evidence):
    """Evidence with the family and the answers that it is about."""

    family: str
    answers: str

    def in_words(self) -> str:
        return (
            f"epsilon ≥ {self.epsilon:.4g} ({self.name}: {self.seen[0]} and {self.seen[1]} "
            f"of {self.samples}, {self.answers})"
        )


def evidence_of(
    pair: "Pair", answers: str, one: "Batch", other: "Batch", false_alarm: float
) -> "list[Found]":
    """One piece of evidence for each family of events; each is wrong with at most that probability."""
    (learn, test), (learn_other, test_other) = one.halves(), other.halves()
    found = []
    for family in families(pair, learn, learn_other):
        event = best_event(family, learn, learn_other)
        evidence = Found(event, family.claim, test, test_other, false_alarm)
        evidence.family, evidence.answers = family.name, answers
        found.append(evidence)
    return found


def bound_checks(found: "list[Found]") -> "list[Check]":
    """Of each family the strongest evidence; and all events that came under one answer only."""
    strongest: "dict[str, Found]" = {}
    for evidence in found:
        known = strongest.get(evidence.family)
        if known is None or (evidence.refutes, evidence.epsilon) > (known.refutes, known.epsilon):
            strongest[evidence.family] = evidence
    checks = [Check(f"bound from {name}", not e.refutes, e.in_words()) for name, e in strongest.items()]
    impossible = [e for e in found if e.refutes and e.seen[1] == 0]
    told = impossible[0].in_words() if impossible else f"{len(found)} events, of {len(strongest)} kinds"
    return [*checks, Check("no output of one answer is impossible for another", not impossible, told)]


def support_check(pair: "Pair", batch: "Batch", false_alarm: float) -> Check:
    """How often a report supports the true choice, the other, both or neither, against the exact law."""
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
