"""What a quantity may be if some reports were false: its identified set, around its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from inference.results.intervals import USUAL, Interval
from ldp_client.documents.errors import UsageError
from summaries.influence import FALSE_SHARE

# From here on false reports could say anything: no set is narrower than what is possible at all.
MOST_FALSE = 0.5
TOO_MANY_HERE = "false reports could be half of those on this question, and say anything"


class Bounds(tuple[float, float]):
    """The least and the largest value that are consistent with the reports, at 90 %."""

    @classmethod
    def of(cls, low: float, high: float) -> Bounds:
        """From the two ends."""
        return cls((float(low), float(high)))


@dataclass(frozen=True)
class IdentifiedSets:
    """What follows where at most this share of the reports came from anything at all.

    share: of false reports. sets: {quantity: its bounds}; what: {quantity: what it is, in words}. open: why
    some quantities have none, in words; nothing where all have one. here: where each device answers one
    question of several, and so may choose it, the share that all of them are of this one's reports.
    """

    share: float
    sets: Mapping[str, Bounds] = field(default_factory=dict)
    what: Mapping[str, str] = field(default_factory=dict)
    open: str = ""
    here: float | None = None

    @property
    def label(self) -> str:
        """What stands over its column and beside its lines."""
        return f"if {100 * self.share:g} % were false"

    @property
    def condition(self) -> str:
        """The assumption, in words."""
        said = f"if at most {100 * self.share:g} % of the reports"
        if self.here is None:
            return f"{said} were false"
        if self.here == self.share:
            return f"{said} on this question were false"
        return f"{said} were false, all of them on this question ({100 * self.here:.3g} % of its reports)"

    def in_words(self, name: str) -> str:
        """A quantity's set, in words that can be quoted."""
        low, high = self.sets[name]
        between = f"{low:.3g} and {high:.3g}".replace("-", "−")
        return f"{self.condition}, {self.what.get(name, name)} lies between {between}"

    def on_page(self) -> str:
        """The first quantity's set, where the others stand, and what has none."""
        found = (
            [f"{self.in_words(next(iter(self.sets)))} (thin lines; the column “{self.label}” has all)"]
            if self.sets
            else []
        )
        if self.open:
            found.append(self.open if self.sets else f"{self.condition}, nothing could be said: {self.open}")
        return "; ".join(found)

    def to_document(self) -> dict[str, Any]:
        """The member `contamination` of a question in posterior.json."""
        sets = {
            name: {"low": low, "high": high, "words": self.in_words(name)}
            for name, (low, high) in self.sets.items()
        }
        here = {} if self.here is None else {"of_this_question": self.here}
        return {"share": self.share, **here, "sets": sets, **({"open": self.open} if self.open else {})}


def all_on_one(
    share: float, part: float | None, sets: Callable[[float], IdentifiedSets | None]
) -> IdentifiedSets | None:
    """The sets where all false reports may answer one question.

    share: of all reports; part: how many of all answer it, None where all do. sets: of a share of these.
    """
    if part is None or not share:
        return sets(share)
    here = share / part
    if here >= MOST_FALSE:
        return IdentifiedSets(share, open=TOO_MANY_HERE, here=here)
    found = sets(here)
    return None if found is None else replace(found, share=share, here=here)


def level_of_sets(interval: Interval) -> str:
    """What stands behind a set, which is of 90 %, beside an interval that is not."""
    return " (90 %)" if interval.prob != USUAL.prob else ""


def set_of(found: IdentifiedSets | None, name: str) -> Bounds | None:
    """A quantity's set, or None where there is none or it was not asked."""
    return None if found is None else found.sets.get(name)


def check_share(share: float) -> float:
    """The share of false reports. Raises InputError unless it is a number from 0 and below one half."""
    known = isinstance(share, int | float) and not isinstance(share, bool)
    if not known or not 0 <= share < MOST_FALSE:
        raise UsageError(
            f"contamination must be a share from 0 to below {MOST_FALSE:g}, such as {FALSE_SHARE:g}",
            code="fit.wrong_contamination",
        )
    return float(share)
