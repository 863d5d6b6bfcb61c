"""What a quantity may be if some reports were false: its identified set, around its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ldp_client.documents.errors import UsageError
from summaries.influence import FALSE_SHARE

# From here on false reports could say anything: no set is narrower than what is possible at all.
MOST_FALSE = 0.5


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
    some quantities have none, in words; nothing where all have one.
    """

    share: float
    sets: Mapping[str, Bounds] = field(default_factory=dict)
    what: Mapping[str, str] = field(default_factory=dict)
    open: str = ""

    @property
    def condition(self) -> str:
        """The assumption, in words."""
        return f"if at most {100 * self.share:g} % of the reports were false"

    def in_words(self, name: str) -> str:
        """A quantity's set, in words that can be quoted."""
        low, high = self.sets[name]
        between = f"{low:.3g} and {high:.3g}".replace("-", "−")
        return f"{self.condition}, {self.what.get(name, name)} lies between {between}"

    def on_page(self) -> str:
        """The first quantity's set, where the others stand, and what has none."""
        found = (
            [f"{self.in_words(next(iter(self.sets)))} (thin lines; the last column has all)"]
            if self.sets
            else []
        )
        if self.open:
            found.append(self.open if self.sets else f"{self.condition}, nothing could be said: {self.open}")
        return "; ".join(found)

    def to_document(self) -> dict[str, Any]:
        """The member `false_reports` of a question in posterior.json."""
        sets = {
            name: {"low": low, "high": high, "words": self.in_words(name)}
            for name, (low, high) in self.sets.items()
        }
        return {"share": self.share, "sets": sets, **({"open": self.open} if self.open else {})}


def set_of(found: IdentifiedSets | None, name: str) -> Bounds | None:
    """A quantity's set, or None where there is none or it was not asked."""
    return None if found is None else found.sets.get(name)


def check_share(share: float) -> float:
    """The share of false reports. Raises InputError unless it is a number from 0 and below one half."""
    known = isinstance(share, int | float) and not isinstance(share, bool)
    if not known or not 0 <= share < MOST_FALSE:
        raise UsageError(
            f"the share of false reports must be a number from 0 to below {MOST_FALSE:g}, such as "
            f"{FALSE_SHARE:g}: 0 leaves out what false reports could do"
        )
    return float(share)
