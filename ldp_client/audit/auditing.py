"""The audit of one question: its mechanism, the hardest pairs of answers, all checks."""

from ldp_client.audit.batches import Batch
from ldp_client.audit.bounds import bound_checks, evidence_of, support_check
from ldp_client.audit.exact import distance_check, law_checks, stated_check
from ldp_client.audit.findings import Audit, Check
from ldp_client.audit.noise import noise_checks
from ldp_client.audit.pairs import answers_for, pairs_of, random_answers
from ldp_client.audit.replay import replay_checks
from ldp_client.audit.thresholds import threshold_checks
from ldp_client.audit.timing import time_checks
from ldp_client.audit.views import Pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ldp_client.audit.timing import Clock
    from ldp_client.mechanisms import Mechanism
    from schemas.study import Question

# The probability that a sound mechanism fails any of the sampled bounds of one question.
FALSE_ALARM = 1e-6
SAMPLES = 40_000
MOST_FAMILIES = 8


def audit_mechanism(
    mechanism: "Mechanism", question: "Question", samples: int = SAMPLES, clock: "Clock | None" = None
) -> Audit:
    """All checks of one mechanism that answers this question; those of time only with a clock."""
    privacy = mechanism.privacy
    audit = Audit(question.id, mechanism.name, float(privacy.epsilon), float(privacy.delta))
    answers = answers_for(question)
    pairs = pairs_of(mechanism, question, answers)
    audit.checks += [stated_check(mechanism, question)]
    audit.checks += _without_samples(mechanism, question, answers, pairs)
    needed = {name for pair in pairs for name in pair}
    batches = {name: draw(mechanism, answers[name], samples) for name in needed}
    if Pair(mechanism, *[answers[name] for name in pairs[0]]).numeric:
        law = "normal" if privacy.delta.numerator else "laplace"
        audit.checks += noise_checks(batches[pairs[0][0]], law)
    share = FALSE_ALARM / (2 * len(pairs) * MOST_FAMILIES)
    found, supports = [], []
    for one, other in [*pairs, *[names[::-1] for names in pairs]]:
        pair = Pair(mechanism, answers[one], answers[other])
        found += evidence_of(pair, f"{one} against {other}", batches[one], batches[other], share)
        if not pair.numeric:
            supports.append(support_check(pair, batches[one], share))
    if clock is not None:
        pair = Pair(mechanism, *[answers[name] for name in pairs[0]])
        audit.checks += time_checks(pair, answers, FALSE_ALARM, clock)
    audit.bound = max([evidence.epsilon for evidence in found])
    audit.checks += [*_worst([[check] for check in supports]), *bound_checks(found)]
    return audit


def draw(mechanism: "Mechanism", answer: "Any", samples: int) -> Batch:
    """`samples` independent reports of one answer."""
    return Batch([mechanism.perturb(answer) for _ in range(samples)])


def _without_samples(
    mechanism: "Mechanism", question: "Question", answers: "dict[str, Any]", pairs: "list[tuple[str, str]]"
) -> "list[Check]":
    """The exact law, and replays of every pair, of which only the worst is told."""
    checked = [Pair(mechanism, answers[one], answers[other]) for one, other in pairs]
    if checked[0].numeric:
        exact = [distance_check(mechanism, [*answers.values(), *random_answers(question)])]
    else:
        exact = [*_worst([law_checks(pair) for pair in checked]), *threshold_checks(checked[0])]
    return exact + _worst([replay_checks(pair) for pair in checked])


def _worst(runs: "Iterable[Iterable[Check]]") -> "list[Check]":
    """Of each check that was made for several pairs, the first that failed, or else the last."""
    kept: "dict[str, Check]" = {}
    for run in runs:
        for check in run:
            if check.name not in kept or kept[check.name].passed:
                kept[check.name] = check
    return list(kept.values())
