"""What may be believed of a posterior: three answers that never merge into one word.

chains: do the draws represent the posterior? model: do the reports fit it? knowledge: is the posterior
narrower than the prior? Sound chains say nothing of a model that is wrong, and a model that fits may have
learnt nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GOOD, PARTIAL, BAD = "good", "partial", "bad"
NOT_CHECKED = "not checked"
_WORST_FIRST = (BAD, NOT_CHECKED, PARTIAL, GOOD)
# Of two that are equally bad the first decides: without draws of the posterior nothing else can be read, and
# of a model that is wrong nobody asks how narrow it is.
PARTS = ("chains", "model", "knowledge")
_HEADLINES = {
    ("chains", BAD): "the draws do not represent the posterior",
    ("model", BAD): "the reports do not fit the model",
    ("model", NOT_CHECKED): "nothing could be checked of the model",
    ("knowledge", BAD): "nothing was learnt: this is the prior",
    ("knowledge", PARTIAL): "some parameters rest on more than the reports",
}
MEANINGS = {
    ("chains", GOOD): "the draws represent the posterior",
    ("model", GOOD): "nothing in the reports speaks against the model",
    ("knowledge", GOOD): "the posterior is narrower than the prior",
} | _HEADLINES
ALL_GOOD = "no check speaks against these numbers"
BEFORE = "what was done before speaks against these numbers"


@dataclass(frozen=True)
class Part:
    """state: "good", "bad", of knowledge "partial" where it is of some parameters alone, or of the model "not
    checked"; reasons: why."""

    state: str = GOOD
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, reasons: tuple[str, ...]) -> Part:
        """Bad for these reasons, or good where there are none."""
        return cls(BAD if reasons else GOOD, reasons)

    def with_reasons(self, reasons: tuple[str, ...]) -> Part:
        """The same part, and bad for these reasons too, where there are any."""
        return Part(BAD, (*self.reasons, *reasons)) if reasons else self


UNTOUCHED = Part()


@dataclass(frozen=True)
class Verdict:
    """The three parts. before: what was done before the fit, and speaks against these numbers."""

    chains: Part = UNTOUCHED
    model: Part = UNTOUCHED
    knowledge: Part = UNTOUCHED
    before: tuple[str, ...] = ()

    @property
    def parts(self) -> dict[str, Part]:
        """{name: part}."""
        return {"chains": self.chains, "model": self.model, "knowledge": self.knowledge}

    @property
    def ok(self) -> bool:
        """Whether all three are good, and nothing that was done before speaks against it."""
        return not self.before and all(part.state == GOOD for part in self.parts.values())

    @property
    def bad(self) -> bool:
        """Whether the numbers are not to be believed, rather than with care."""
        return bool(self.before) or self.parts[self.worst].state == BAD

    @property
    def worst(self) -> str:
        """The name of the part that leads: the worst one."""
        return min(PARTS, key=lambda name: _WORST_FIRST.index(self.parts[name].state))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why parts are not good, the worst part's first, and what was done before."""
        ordered = sorted(self.parts.values(), key=lambda part: _WORST_FIRST.index(part.state))
        return (*(reason for part in ordered for reason in part.reasons), *self.before)

    def headline(self) -> str:
        """What leads, in a few words."""
        state = self.parts[self.worst].state
        if self.before and state != BAD:
            return BEFORE
        return _HEADLINES.get((self.worst, state), ALL_GOOD)

    def lines(self) -> list[tuple[str, str, str]]:
        """Of each part its name, its state, and what that means."""
        return [(name, part.state, MEANINGS[name, part.state]) for name, part in self.parts.items()]

    def to_document(self) -> Mapping[str, Any]:
        """The member `verdict` of posterior.json."""
        return {
            name: {"state": part.state, "reasons": list(part.reasons)} for name, part in self.parts.items()
        }
