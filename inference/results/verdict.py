"""The verdict on every quantity of a posterior: usable, use with care, or not usable, and why.

A check's finding names the quantities that it concerns. Bad chains or a wrong law concern all of them; a
quantity that was not learnt, or whose own draws are too few, concerns no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

USABLE, CARE, NOT_USABLE = "usable", "use with care", "not usable"
_WORST_FIRST = (NOT_USABLE, CARE, USABLE)
# What a finding speaks about. Without sound draws no other finding is readable, and the width of a wrong
# model's posterior does not matter. A note changes no word.
CONVERGENCE, FIT, INFORMATIVENESS = PARTS = ("convergence", "fit", "informativeness")
# If the posterior sd exceeds this share of the prior's, the reports were hardly informative, provided that
# the posterior is near the prior.
DROWNED = 0.8
NOTE = "note"
# The largest probability that a check speaks against a right model.
FALSE_ALARM = 1e-3
# Longer lists of names, such as ten thousand choices, are cut.
MOST_NAMED = 8


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Attributes:
        part: a name of PARTS, or NOTE.
        text: a sentence for the reader.
        state: what the quantities then are: CARE or NOT_USABLE.
        quantities: the names of the quantities that it concerns; empty for all.
    """

    part: str
    text: str
    state: str = NOT_USABLE
    quantities: frozenset[str] = frozenset()

    def to_document(self) -> dict[str, Any]:
        """Return its entry in posterior.json."""
        return {
            "part": self.part,
            "state": self.state,
            "text": self.text,
            "quantities": sorted(self.quantities),
        }


def findings(
    part: str, texts: Iterable[str], state: str = NOT_USABLE, quantities: Iterable[str] = ()
) -> tuple[Finding, ...]:
    """Return a finding for each text."""
    return tuple(Finding(part, text, state, frozenset(quantities)) for text in texts)


class Judgement(NamedTuple):
    """What a quantity is: a word, and the reasons if it is not usable as it stands."""

    word: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.word}: {self.reasons[0]}" if self.reasons else self.word


@dataclass(frozen=True)
class Verdict:
    """The findings against a posterior's quantities, and which of these answer the question.

    Attributes:
        against: all findings but notes, the gravest first.
        headlines: the quantities that decide on the whole; empty for all.
    """

    against: tuple[Finding, ...] = ()
    headlines: tuple[str, ...] = ()

    @classmethod
    def of_findings(cls, found: Iterable[Finding], headlines: Iterable[str] = ()) -> Verdict:
        """Order the findings of all checks, without notes."""
        against = [finding for finding in found if finding.part != NOTE]
        against.sort(key=lambda one: (_WORST_FIRST.index(one.state), PARTS.index(one.part)))
        return cls(tuple(against), tuple(headlines))

    def of(self, *names: str) -> Judgement:
        """Judge quantities together: the worst word, with every reason. Without names, judge them all."""
        wanted = set(names)
        why = [one for one in self.against if not wanted or not one.quantities or one.quantities & wanted]
        word = min((one.state for one in why), key=_WORST_FIRST.index, default=USABLE)
        return Judgement(word, tuple(dict.fromkeys(one.text for one in why)))

    @property
    def overall(self) -> Judgement:
        """Return the judgement of the quantities that answer the question."""
        return self.of(*self.headlines)

    @property
    def ok(self) -> bool:
        """Return True if every headline is usable as it stands."""
        return self.overall.word == USABLE

    @property
    def bad(self) -> bool:
        """Return True if a headline is not usable."""
        return self.overall.word == NOT_USABLE

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons against any quantity, the gravest first."""
        return self.of().reasons

    def to_document(self) -> Mapping[str, Any]:
        """Return the member `verdict` of a question in posterior.json."""
        return {
            "word": self.overall.word,
            "reasons": list(self.overall.reasons),
            "headlines": list(self.headlines),
            "findings": [finding.to_document() for finding in self.against],
        }


def listed(names: Sequence[str]) -> str:
    """Join names with commas; from a long list, take the first names and count the rest."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1:,} more"
