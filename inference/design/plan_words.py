"""Tables of plans in words, for a terminal."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from inference.design.plan import devices_for
from inference.results.intervals import rounded_up
from inference.results.verdict import listed
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.design.calibration import Calibration
    from inference.design.difference import Difference
    from inference.design.formula_plan import FormulaPlan
    from inference.design.plan import Plan


def plan_lines(found: Plan, width: float | None, parameter: str | None) -> list[str]:
    """The table of a plan, and its answer to how many devices give ± width."""
    chosen = parameter or found.parameters[0]
    place = found.parameters.index(chosen)
    lines = [f"{found.question}: expected ± of {chosen} (half of the 90 % interval)"]
    lines.append("  epsilon " + "".join(f"{n:>12,}" for n in found.devices) + "  devices")
    for epsilon, widths in found.half_widths.items():
        lines.append(f"  {epsilon:>7} " + "".join(f"{value:>12.4g}" for value in widths[:, place]))
    notes = [f"  {note}" for note in found.notes]
    if found.drawn:
        notes.append(
            f"  not stated, {visible(listed(found.drawn))}: as the prior draws it; --truth states it"
        )
    if width is None:
        return lines + notes
    for epsilon, widths in found.half_widths.items():
        needed = rounded_up(devices_for(width, found.devices, widths[:, place]))
        how = "at most" if needed <= found.devices[0] else "about"
        lines.append(f"  ± {width:g} at epsilon {epsilon}: {how} {needed:,} devices")
    return lines + notes


def difference_lines(found: Difference, power: float | None) -> list[str]:
    """Return the table of a difference, and how many devices a power takes."""
    one, other = found.values
    lines = [
        f"{found.question}: {visible(found.parameter)} {one:g} in a group with {found.share:.0%} of the "
        f"devices, {other:g} in the other"
    ]
    lines.append("  epsilon " + "".join(f"{n:>18,}" for n in found.devices) + "  devices in both")
    for epsilon, halves in found.half_widths.items():
        pairs = zip(halves, found.power[epsilon], strict=True)
        lines.append(f"  {epsilon:>7} " + "".join(f"{f'± {half:.3g}, {at:.0%}':>18}" for half, at in pairs))
    lines.append(
        "  (± of the difference, half of its 90 % interval; and how often that is on its own side of 0)"
    )
    for epsilon, needed in found.needed.items():
        lines.append(f"  power {power:g} at epsilon {epsilon}: {_devices(needed)}")
    lines += [f"  assumed: {visible(line)}" for line in found.assumed]
    return [*lines, *[f"  {note}" for note in found.notes]]


def _devices(needed: int | None) -> str:
    return (
        "more than a thousand million devices" if needed is None else f"about {rounded_up(needed):,} devices"
    )


def formula_lines(found: FormulaPlan, width: float | None, power: float | None) -> list[str]:
    """Return the table of a plan, its assumptions, and the numbers of people needed."""
    column = max([24, *(len(visible(name)) + 2 for name in found.half_widths)])
    lines = [f"{found.formula}: expected ± (half of the 90 % interval)"]
    heads = "".join(f"{n:>12,}{'*' if found.rough[n] else ' '}" for n in found.people)
    lines.append(f"  {'':{column}}{heads} people")
    for name, widths in found.half_widths.items():
        numbers = "".join(f"{half:>12.3g} " for half in widths)
        lines.append(f"  {visible(name):{column}}{numbers}")
        if name in found.odds:
            factors = "".join(f"{exp(half):>12.4g} " for half in widths)
            lines.append(f"  {'  odds ratio × or ÷':{column}}{factors}")
    for name, chances in found.power.items():
        powers = "".join(f"{chance:>12.0%} " for chance in chances)
        lines.append(f"  {f'power of {visible(name)} = {found.truth[name]:g}':{column}}{powers}")
    for name, needed in found.needed.items():
        lines.append(f"  ± {width:g} of {visible(name)}: {_people(needed, found)}")
    for name, needed in found.needed_for_power.items():
        words = _people(needed, found)
        lines.append(f"  {visible(name)} = {found.truth[name]:g} found with power {power:g}: {words}")
    if any(found.rough.values()):
        lines.append("  * so few that posteriors are not normal: fits will be wider than this, up to twice")
    return [*lines, *(f"  assumed: {visible(line)}" for line in found.assumed)]


def _people(needed: int | None, found: FormulaPlan) -> str:
    if needed is None:
        return "more than a thousand million people"
    if not needed:
        return "the prior alone is as narrow"
    return f"about {rounded_up(needed):,} people{'*' if found.rough[needed] else ''}"


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
            f"{row['covered_90']:.0%} of the studies; ranks: chi-square p = {row['chi_square_p']:.2g}"
        )
    return [*lines, *(f"  {line}" for line in (*found.reasons, *found.notes))]
