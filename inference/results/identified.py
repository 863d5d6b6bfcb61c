"""The possible values of a quantity if some reports were false: its identified set, around its interval."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inference.results.intervals import between
from ldp_client.documents.errors import UsageError

# A share of false reports that is often assumed.
FALSE_SHARE = 0.01
# From this share on, false reports could produce any result: every set would cover all possible values.
MOST_FALSE = 0.5


class Bounds(NamedTuple):
    """The least and the largest value consistent with the reports, at 90 %."""

    low: float
    high: float


@dataclass(frozen=True)
class IdentifiedSets:
    """Identified sets if at most a share of the reports is false, with any content.

    share: of false reports. sets: {quantity: its bounds}; what: {quantity: its description}. open: why some
    quantities have no set, in words, or "". here: set if each device answers one question of several and may
    therefore choose it: the false reports' share of this question's reports, if all answer it.
    """

    share: float
    sets: Mapping[str, Bounds] = field(default_factory=dict)
    what: Mapping[str, str] = field(default_factory=dict)
    open: str = ""
    here: float | None = None

    @property
    def label(self) -> str:
        """Return the label of its column and lines."""
        return f"if {100 * self.share:g} % were false"

    @property
    def condition(self) -> str:
        """Return the assumption in words."""
        said = f"if at most {100 * self.share:g} % of the reports"
        if self.here is None:
            return f"{said} were false"
        if self.here == self.share:
            return f"{said} on this question were false"
        return f"{said} were false, all of them on this question ({100 * self.here:.3g} % of its reports)"

    def in_words(self, name: str) -> str:
        """Return a quantity's set in words that can be quoted."""
        what = self.what.get(name, name)
        ends = between(*self.sets[name], share=what.startswith("the share"))
        return f"{self.condition}, {what} lies between {ends.replace(' to ', ' and ')}"

    def on_page(self) -> str:
        """Return the first quantity's set, and why some have none."""
        if not self.sets:
            return f"{self.condition}, nothing could be said: {self.open}"
        return "; ".join([self.in_words(next(iter(self.sets))), *([self.open] if self.open else [])])

    def to_document(self) -> dict[str, Any]:
        """Return the member `contamination` of a question in posterior.json."""
        sets = {
            name: {"low": low, "high": high, "words": self.in_words(name)}
            for name, (low, high) in self.sets.items()
        }
        here = {} if self.here is None else {"of_this_question": self.here}
        return {"share": self.share, **here, "sets": sets, **({"open": self.open} if self.open else {})}


def set_of(found: IdentifiedSets | None, name: str) -> Bounds | None:
    """Return a quantity's set, or None if it has none or no sets were requested."""
    return None if found is None else found.sets.get(name)


def check_share(share: float) -> float:
    """Return the share of false reports. Raises UsageError unless it is a number from 0 to below one half."""
    known = isinstance(share, int | float) and not isinstance(share, bool)
    if not known or not 0 <= share < MOST_FALSE:
        raise UsageError(
            f"contamination must be a share from 0 to below {MOST_FALSE:g}, such as {FALSE_SHARE:g}",
            code="fit.wrong_contamination",
        )
    return float(share)
