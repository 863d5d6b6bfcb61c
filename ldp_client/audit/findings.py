"""What an audit found, for programs and for people."""

from math import inf, sqrt

from ldp_client.words.text import rounded_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Check:
    """One thing that was tried: its name, whether the mechanism stood it, and what was seen.

    made: False where the mechanism gives nothing to try it on; then it is passed, and said not to be checked.
    """

    def __init__(self, name: str, passed: bool, detail: str, made: bool = True) -> None:
        self.name = name
        self.passed = passed
        self.detail = detail
        self.made = made

    def to_dict(self) -> "dict[str, Any]":
        return {"name": self.name, "passed": self.passed, "made": self.made, "detail": self.detail}


class Audit:
    """All checks of one question. bound: the largest lower bound on ε found, in nats (∞ is possible)."""

    def __init__(self, question: str, mechanism: str, epsilon: float, delta: float) -> None:
        self.question = question
        self.mechanism = mechanism
        self.epsilon, self.delta = epsilon, delta
        self.bound = 0.0
        self.could_refute: "list[str]" = []
        self.could_not: "list[str]" = []
        self.checks: "list[Check]" = []

    @property
    def passed(self) -> bool:
        return all([check.passed for check in self.checks])

    def to_dict(self) -> "dict[str, Any]":
        """For JSON; decimals as strings, as in all documents."""
        return {
            "question": self.question,
            "mechanism": self.mechanism,
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta),
            "lower_bound": "infinite" if self.bound == inf else repr(self.bound),
            "passed": self.passed,
            "could_refute": self.could_refute,
            "could_not_refute": self.could_not,
            "checks": [check.to_dict() for check in self.checks],
        }


# A fault this many standard errors large is found in 99 of 100 audits.
FOUND = 6.5 + 2.4


def power_of(mechanism: "Any", samples: int) -> "tuple[list[str], list[str]]":
    """Which errors so many reports could refute, and which they could not."""
    rest = [
        "anything that is rarer, or that only another machine or other software does",
        "random bytes that somebody can predict",
    ]
    if hasattr(mechanism, "odds") and hasattr(mechanism, "supported"):
        count, p = mechanism.choices, float(mechanism.p)
        each = max(30, 5 * samples // count) * (20 if count > 20 else 4)
        step = FOUND * sqrt(p * (1 - p) / each)
        return [
            f"a choice that tells the truth {step:.2g} more, or less, often than p = {p:.4g}",
            "a coin that is wrong by 2**-32, where one word or one block of digits decides",
        ], [f"extra truth with a probability below {step:.2g} that no single word decides", *rest]
    numbers = len(mechanism.words(bytes(mechanism.payload_size)))
    size = FOUND * 0.9 / sqrt(samples / 2 * min(numbers, 8))
    return [
        f"noise that is {100 * size:.2g} % too small",
        f"an answer without noise, or one payload, with probability {15 / samples:.1g}",
        f"noise of one report again in the next, in {15 / samples:.1g} of them",
    ], ["smaller errors in the middle of the noise's law", *rest]


def table(audits: "list[Audit]") -> "list[str]":
    """One line for each question, then one for each of its checks."""
    rows = [("question", "mechanism", "stated ε", "found ε ≥", "verdict")]
    for audit in audits:
        delta = f", δ {rounded_up(audit.delta)}" if audit.delta else ""
        verdict = "passed" if audit.passed else "FAILED"
        rows.append(
            (
                audit.question,
                audit.mechanism,
                f"{rounded_up(audit.epsilon)}{delta}",
                f"{audit.bound:.4g}",
                verdict,
            )
        )
    widths = [max([len(row[column]) for row in rows]) for column in range(len(rows[0]))]
    lines = []
    for place, row in enumerate(rows):
        lines.append("  ".join([cell.ljust(width) for cell, width in zip(row, widths)]).rstrip())
        if place:
            audit = audits[place - 1]
            lines += [f"    {_mark(check)} {check.name}: {check.detail}" for check in audit.checks]
            lines += [f"    could refute: {error}" for error in audit.could_refute]
            lines += [f"    could not refute: {error}" for error in audit.could_not]
    return lines


def _mark(check: Check) -> str:
    if not check.made:
        return "not checked:"
    return "ok  " if check.passed else "FAIL"
