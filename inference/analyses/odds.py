"""What the exp of a coefficient is: an odds ratio, or a ratio of such, of what, and where others are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inference.analyses.columns import AGAINST_FIRST, AGAINST_MEAN, ALONE, NUMBER, OTHER, Part
from inference.analyses.linear import Linear
from inference.analyses.matrices import Middle


@dataclass(frozen=True)
class Ratio:
    """changes: one for an odds ratio, more for a ratio of such. where: other columns are, as "age is 47.2".

    at: what of that a name must say, as numbers are not at 0 there.
    """

    changes: tuple[str, ...]
    where: tuple[str, ...] = ()
    at: str = ""

    def words(self, of: str) -> str:
        """A sentence's beginning. of: the answers whose odds these are."""
        more = len(self.changes) - 1
        ratio = "ratio of " + "ratios of " * (more - 1) + "odds ratios" if more else "odds ratio"
        where = f", where {' and '.join(self.where)}" if self.where else ""
        return f"{ratio} of {of} for {' and '.join(self.changes)}{where}"


def ratios_of(linear: Linear) -> list[Ratio | None]:
    """Of each coefficient, where numbers are counted from their middles; None where it has no plain meaning.

    That is so of the odds of a level alone, of splines, and of a number that another term changes with, such
    as age beside I(age**2).
    """
    made, middles = linear.matrix.made, linear.matrix.middles if linear.change is not None else {}
    named: dict[str, set[str]] = {}
    for part in (part for column in made for part in column):
        for name in part.columns:
            named.setdefault(name, set()).add(part.text)
    tied = {text for texts in named.values() if len(texts) > 1 for text in texts}
    return [_ratio(made[place], made, tied, middles) for place in linear.columns]


def _ratio(
    own: tuple[Part, ...], made: Sequence[tuple[Part, ...]], tied: set[str], middles: Mapping[str, Middle]
) -> Ratio | None:
    changed = [part for part in own if part.kind != ALONE]
    if not changed or any(part.kind == OTHER or part.text in tied for part in changed):
        return None
    texts = {part.text for part in own}
    beside = [column for column in made if texts < {part.text for part in column}]
    others = {part.text: part for column in beside for part in column if part.text not in texts}
    numbers = [part for part in others.values() if part.kind == NUMBER]
    if any(part.kind in (OTHER, ALONE) for part in others.values()) or _at_two_places(numbers, middles):
        return None
    where = [f"{part.text} is {part.level}" for part in own if part.kind == ALONE]
    where += [_where(part, middles) for part in others.values()]
    at = [f", {one.name} = {one.shown()}" for part in numbers if (one := middles.get(part.text))]
    return Ratio(tuple(map(_change, changed)), _once(where), "".join(_once(at)))


def _at_two_places(numbers: Sequence[Part], middles: Mapping[str, Middle]) -> bool:
    """Whether a column would be, as where age and log(age) are each at their mean."""
    seen = {(name, _where(part, middles)) for part in numbers for name in part.columns}
    return len(seen) > len({name for name, _ in seen})


def _change(part: Part) -> str:
    if part.kind == NUMBER:
        return f"one more of {part.text}"
    against = " against the mean of all levels" if part.kind == AGAINST_MEAN else ""
    return f"{part.text} = {part.level}{against}"


def _where(part: Part, middles: Mapping[str, Middle]) -> str:
    if part.kind == AGAINST_FIRST:
        return f"{part.text} is {part.first}"
    if part.kind == AGAINST_MEAN:
        return f"levels of {part.text} are averaged"
    middle = middles.get(part.text)
    return f"{middle.name} is {middle.shown()}" if middle else f"{part.text} is 0"


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
