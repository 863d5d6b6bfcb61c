"""How often the audit fails sound mechanisms of choices, over many settings, a line for each.

    python -m benchmarks.audit_false_alarms [--batches 10] [--reports 10000] [--epsilon 0.1 …] [--choices 2 …]

Every line must say 0: all checks of a question together may fail once in a million.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product

from ldp_client.mechanisms import mechanism_for
from ldpkit.auditing.auditing import audit_mechanism
from schemas import Question, Study

MECHANISMS = ("randomized_response", "oue", "sue", "olh", "subset_selection", "hadamard")
EPSILONS = ("0.1", "0.5", "1", "2", "3", "4", "5", "6", "8", "10")
CHOICES = (2, 5, 12, 30, 50)


def asked_of(name: str, epsilon: str, count: int) -> Question:
    """A question that states this mechanism."""
    question = {
        "id": "asked",
        "ask": "choice",
        "choices": [f"choice {place}" for place in range(count)],
        "mechanism": {"name": name, "epsilon": epsilon},
        "model": {"name": "multinomial"},
    }
    document = {"format": "ldpkit.study/1", "id": "sound", "version": 1, "title": "Sound"}
    return Study({**document, "questions": [question]}).questions[0]


def failures(question: Question, batches: int, reports: int) -> int:
    """How many audits fail of the sound mechanism, of so many reports of each answer."""
    mechanism = mechanism_for(question)
    return sum(not audit_mechanism(mechanism, question, reports).passed for _ in range(batches))


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each setting; 1 if any is not 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--reports", type=int, default=10_000, help="of each answer")
    parser.add_argument("--epsilon", nargs="+", default=EPSILONS)
    parser.add_argument("--choices", type=int, nargs="+", default=CHOICES)
    asked = parser.parse_args(argv)
    alarms = 0
    for name, epsilon, count in product(MECHANISMS, asked.epsilon, asked.choices):
        failed = failures(asked_of(name, epsilon, count), asked.batches, asked.reports)
        alarms += failed
        print(f"{name} ε {epsilon} k {count}: {failed} of {asked.batches} fail", flush=True)
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
