"""Tables of plans and calibrations in words, for a terminal."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from inference.results.intervals import rounded_up
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.design.calibration import Calibration
    from inference.design.plan import Plan


def plan_lines(planned: Plan, margin: float | None, power: float | None) -> list[str]:
    """Return the table of a plan, how many devices give a margin or a power, and its notes.

    A plan at one epsilon has a row for each parameter, other plans a row of the first for each epsilon.
    """
    alone = len(planned.half_widths) == 1
    shown = planned.parameters if alone else planned.parameters[:1]
    rows = [(epsilon, name) for epsilon in planned.half_widths for name in shown]
    labels = [name if alone else f"ε = {epsilon}" for epsilon, name in rows]
    width = max(20 if planned.odds else 8, *(len(visible(label)) for label in labels))
    of = "" if alone else f" of {visible(shown[0])}"
    subject = planned.model if "~" in planned.model else planned.question
    lines = [f"{subject}: expected ±{of} (half of the 90 % interval)"]
    lines.append(f"  {'people':{width}}" + "".join(f"{n:>12,}" for n in planned.devices))
    for label, (epsilon, name) in zip(labels, rows, strict=True):
        halves = planned.half_widths[epsilon][name]
        lines.append(f"  {visible(label):{width}}" + "".join(f"{half:>12.4g}" for half in halves))
        if name in planned.odds:
            factors = "".join(f"{exp(half):>12.4g}" for half in halves)
            lines.append(f"  {'  odds ratio × or ÷':{width}}{factors}")
        if name in planned.effects:
            chances = "".join(f"{chance:>12.0%}" for chance in planned.power(epsilon, name))
            lines.append(f"  {'  power':{width}}{chances}")
    for label, (epsilon, name) in zip(labels, rows, strict=True):
        if margin is not None:
            needed = planned.devices_for(epsilon, name, margin)
            lines.append(f"  ± {margin:g}, {visible(label)}: {_devices(planned, needed)}")
        if power is not None and name in planned.effects:
            needed = planned.devices_for_power(epsilon, name, power)
            lines.append(f"  power {power:g}, {visible(label)}: {_devices(planned, needed)}")
    return [*lines, *(f"  {visible(note)}" for note in planned.notes)]


def _devices(planned: Plan, needed: float) -> str:
    how = "at most" if needed <= planned.devices[0] else "about"
    return f"{how} {rounded_up(needed):,} people"


def calibration_lines(found: Calibration) -> list[str]:
    """Return the table of a calibration, and the problems that were found."""
    document = found.to_document()
    verdict = "calibrated" if found.ok else "NOT CALIBRATED"
    lines = [
        f"{found.question} ({found.model}, {document['studies']} studies of {found.n} devices): {verdict} "
        f"(a sound one is called wrong once in {1 / document['false_alarm']:.0f} times)"
    ]
    for name, row in document["parameters"].items():
        lines.append(
            f"  {name:28} 50 % intervals contain the truth in {row['covered_50']:.0%}, 90 % in "
            f"{row['covered_90']:.0%} of the studies"
        )
    return [*lines, *(f"  {line}" for line in (*found.reasons, *found.notes))]
