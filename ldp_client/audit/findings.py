"""The findings of an audit, for programs and for people."""

from math import inf
from typing import Any

from ldp_client.words.text import rounded_up


class Check:
    """The result of one check: its name, whether the mechanism passed, and the evidence.

    made: False if the check does not apply to the mechanism. It then counts as passed, but "not checked".
    """

    def __init__(self, name: str, passed: bool, detail: str, made: bool = True) -> None:
        self.name = name
        self.passed = passed
        self.detail = detail
        self.made = made

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "passed": self.passed, "made": self.made, "detail": self.detail}


class Audit:
    """All checks of one question. bound: the largest lower bound on ε found, in nats (∞ is possible)."""

    def __init__(self, question: str, mechanism: str, epsilon: float, delta: float) -> None:
        self.question = question
        self.mechanism = mechanism
        self.epsilon, self.delta = epsilon, delta
        self.bound = 0.0
        self.checks: list[Check] = []

    @property
    def passed(self) -> bool:
        return all([check.passed for check in self.checks])

    def to_dict(self) -> dict[str, Any]:
        """Return the audit for JSON, with decimals as strings, as in all documents."""
        return {
            "question": self.question,
            "mechanism": self.mechanism,
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta),
            "lower_bound": "infinite" if self.bound == inf else repr(self.bound),
            "passed": self.passed,
            "checks": [check.to_dict() for check in self.checks],
        }


def table(audits: list[Audit]) -> list[str]:
    """Return one line for each question, then one for each of its checks."""
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
    return lines


def _mark(check: Check) -> str:
    if not check.made:
        return "not checked:"
    return "ok  " if check.passed else "FAIL"
