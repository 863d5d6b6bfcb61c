"""How often the audit's sampled checks of choices fail sound mechanisms, over many settings, a line for each.

    python -m benchmarks.audit_false_alarms [--batches 10] [--reports 10000] [--epsilon 0.1 …] [--choices 2 …]

Every line must say 0: all checks of a question together may fail once in a million.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product

from ldp_client.audit.views import Batch
from ldp_client.bulk import perturb_many
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Study
from tests.privacy.checks import reports as audit_of_reports
from tests.privacy.checks.noise import choice_checks
from tests.privacy.checks.surprise import pair_score

MECHANISMS = ("randomized_response", "oue", "sue", "olh", "subset_selection", "hadamard")
EPSILONS = ("0.1", "0.5", "1", "2", "3", "4", "5", "6", "8", "10")
CHOICES = (2, 5, 12, 30, 50)
ASKED, ANSWER = "asked", "choice 0"


def sound(name: str, epsilon: str, count: int) -> ChoiceMechanism:
    """The mechanism of a question, as a study has it."""
    question = {
        "id": ASKED,
        "ask": "choice",
        "choices": [f"choice {place}" for place in range(count)],
        "mechanism": {"name": name, "epsilon": epsilon},
        "model": {"name": "multinomial"},
    }
    document = {"format": "ldpkit.study/1", "id": "sound", "version": 1, "title": "Sound"}
    mechanism = mechanisms_of(Study({**document, "questions": [question]}))[ASKED]
    assert isinstance(mechanism, ChoiceMechanism)
    return mechanism


def batch_of(mechanism: ChoiceMechanism, reports: int) -> Batch:
    """So many reports of one answer."""
    rows = perturb_many(mechanism, [ANSWER] * reports)
    return Batch([row.tobytes() for row in rows], mechanism.words)


def failures(mechanism: ChoiceMechanism, batches: int, reports: int) -> tuple[int, float]:
    """How many batches fail, and the worst score of columns of one held against those of the batch before."""
    failed, worst = 0, 0.0
    before = None
    for _ in range(batches):
        batch = batch_of(mechanism, reports)
        failed += any(not check.passed for check in choice_checks(batch, mechanism, 0))
        columns = audit_of_reports._scores(mechanism, ANSWER, batch.payloads)
        worst = max([worst, *[pair_score(a, b, 1) for a in columns for b in before or ()]])
        before = columns[:3]
    return failed + (worst > audit_of_reports.WIDE_LIMIT), worst


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each setting; 1 if any is not 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--reports", type=int, default=10_000, help="of each batch")
    parser.add_argument("--epsilon", nargs="+", default=EPSILONS)
    parser.add_argument("--choices", type=int, nargs="+", default=CHOICES)
    asked = parser.parse_args(argv)
    alarms = 0
    for name, epsilon, count in product(MECHANISMS, asked.epsilon, asked.choices):
        failed, worst = failures(sound(name, epsilon, count), asked.batches, asked.reports)
        alarms += failed
        print(f"{name} ε {epsilon} k {count}: {failed} of {asked.batches} fail, {worst:.1f}", flush=True)
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
