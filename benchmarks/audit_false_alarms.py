"""How often the audit's sampled checks of choices fail sound mechanisms, over many settings, a line for each.

    python benchmarks/audit_false_alarms.py [BATCHES]

Every line must say 0: all checks of a question together may fail once in a million.
"""

import sys

from ldp_client.audit.noise import choice_checks
from ldp_client.audit.reports import scores
from ldp_client.audit.surprise import pair_score
from ldp_client.audit.views import Batch
from ldp_client.mechanisms import mechanisms_of
from schemas import Study

MECHANISMS = ("randomized_response", "oue", "sue", "olh", "subset_selection", "hadamard")
EPSILONS = ("0.1", "0.5", "1", "2", "3", "4", "5", "6", "8", "10")
CHOICES = (2, 5, 12, 30, 50)
REPORTS = 10_000


def sound(name: str, epsilon: str, count: int):
    """The mechanism of a question, as a study has it."""
    question = {
        "id": "asked",
        "ask": "choice",
        "choices": [f"choice {place}" for place in range(count)],
        "mechanism": {"name": name, "epsilon": epsilon},
        "model": {"name": "multinomial"},
    }
    document = {"format": "ldpkit.study/1", "id": "sound", "version": 1, "title": "Sound"}
    return mechanisms_of(Study({**document, "questions": [question]}))["asked"]


def batch_of(mechanism) -> Batch:
    rows = mechanism.perturb_many(["choice 0"] * REPORTS)
    return Batch([row.tobytes() for row in rows], mechanism.words)


def main() -> int:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    alarms = 0
    for name in MECHANISMS:
        for epsilon in EPSILONS:
            for count in CHOICES:
                mechanism, failed, worst = sound(name, epsilon, count), 0, 0.0
                before = None
                for _ in range(batches):
                    batch = batch_of(mechanism)
                    failed += any(not check.passed for check in choice_checks(batch, mechanism, 0))
                    columns = scores(mechanism, "choice 0", batch.payloads)
                    worst = max(
                        [worst, *[pair_score(a, b, 1) for a in columns for b in before or ()]], default=0.0
                    )
                    before = columns[:3]
                failed += worst > 7.5
                alarms += failed
                print(f"{name} ε {epsilon} k {count}: {failed} of {batches} fail, {worst:.1f}", flush=True)
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
