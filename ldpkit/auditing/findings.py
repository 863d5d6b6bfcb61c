"""The findings of an audit, for programs and for people."""

from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

from ldp_client.words.text import rounded_up


@dataclass
class Check:
    """The result of one check: its name, whether the mechanism passed, and the evidence."""

    name: str
    passed: bool
    detail: str


@dataclass
class Audit:
    """All checks of one question. bound: the largest lower bound on ε found, in nats (∞ is possible)."""

    question: str
    mechanism: str
    epsilon: float
    delta: float
    bound: float = 0.0
    checks: list[Check] = field(default_factory=list)

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
            "checks": [asdict(check) for check in self.checks],
        }


def table(audits: list[Audit]) -> list[str]:
    """Return one line for each question, then one for each of its checks."""
    rows = [("question", "mechanism", "stated ε", "found ε ≥", "verdict")]
    for audit in audits:
        delta = f", δ {rounded_up(audit.delta)}" if audit.delta else ""
        stated = f"{rounded_up(audit.epsilon)}{delta}"
        verdict = "passed" if audit.passed else "FAILED"
        rows.append((audit.question, audit.mechanism, stated, f"{audit.bound:.4g}", verdict))
    widths = [max([len(row[column]) for row in rows]) for column in range(len(rows[0]))]
    lines = ["  ".join([cell.ljust(width) for cell, width in zip(row, widths)]).rstrip() for row in rows]
    shown = lines[:1]
    for line, audit in zip(lines[1:], audits):
        shown.append(line)
        for check in audit.checks:
            shown.append(f"    {'ok  ' if check.passed else 'FAIL'} {check.name}: {check.detail}")
    return shown
