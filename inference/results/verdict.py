"""The verdict on a posterior: three answers that are never merged into one word.

convergence: do the draws represent the posterior? fit: do the reports fit it? informativeness: is the
posterior narrower than the prior? Sound chains do not make a wrong model right, and a model that fits may
have learnt nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GOOD, PARTIAL, BAD = "good", "partial", "bad"
NOT_CHECKED = "not checked"
_WORST_FIRST = (BAD, NOT_CHECKED, PARTIAL, GOOD)
# If two parts are equally bad, the first decides. Without sound draws no other part is readable, and the
# width of a wrong model's posterior does not matter.
CONVERGENCE, FIT, INFORMATIVENESS = PARTS = ("convergence", "fit", "informativeness")
# Other findings: reasons from steps before the fit, and notes, which change no part.
EARLIER, NOTE = "earlier", "note"
_HEADLINES = {
    ("convergence", BAD): "the draws do not represent the posterior",
    ("fit", BAD): "the reports do not fit the model",
    ("fit", NOT_CHECKED): "nothing could be checked of the model",
    ("informativeness", BAD): "nothing was learnt: this is the prior",
    ("informativeness", PARTIAL): "some parameters rest on more than the reports",
}
MEANINGS = {
    ("convergence", GOOD): "the draws represent the posterior",
    ("fit", GOOD): "nothing in the reports speaks against the model",
    ("informativeness", GOOD): "the posterior is narrower than the prior",
} | _HEADLINES
ALL_GOOD = "no check speaks against these numbers"
BEFORE = "what was done before speaks against these numbers"


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    part: the part of the verdict that it changes, EARLIER or NOTE. text: a sentence for the reader. state: of
    that part.
    """

    part: str
    text: str
    state: str = BAD


def findings(part: str, texts: Iterable[str], state: str = BAD) -> tuple[Finding, ...]:
    """Return a finding on one part of the verdict for each text."""
    return tuple(Finding(part, text, state) for text in texts)


@dataclass(frozen=True)
class Part:
    """A part of the verdict. reasons: why it has its state.

    state: "good", "bad", "partial" (informative on some parameters only) or "not checked" (fit).
    """

    state: str = GOOD
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The three parts. before: reasons against the numbers from steps before the fit."""

    convergence: Part = Part()
    fit: Part = Part()
    informativeness: Part = Part()
    before: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Finding]) -> Verdict:
        """Collect findings: the worst state of each part, with the reasons in order."""
        found = tuple(found)
        parts = []
        for name in PARTS:
            own = [finding for finding in found if finding.part == name]
            state = min((finding.state for finding in own), key=_WORST_FIRST.index, default=GOOD)
            parts.append(Part(state, tuple(finding.text for finding in own)))
        convergence, fit, informativeness = parts
        earlier = tuple(finding.text for finding in found if finding.part == EARLIER)
        return cls(convergence, fit, informativeness, earlier)

    @property
    def parts(self) -> dict[str, Part]:
        """Return {name: part}."""
        return {"convergence": self.convergence, "fit": self.fit, "informativeness": self.informativeness}

    @property
    def ok(self) -> bool:
        """Return True if all three parts are good, and no earlier step contradicts the result."""
        return not self.before and all(part.state == GOOD for part in self.parts.values())

    @property
    def bad(self) -> bool:
        """Return True if the numbers are unusable, rather than usable with care."""
        return bool(self.before) or self.parts[self.worst].state == BAD

    @property
    def worst(self) -> str:
        """Return the name of the worst part, which leads the verdict."""
        return min(PARTS, key=lambda name: _WORST_FIRST.index(self.parts[name].state))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the parts' reasons, the worst part's first, then the reasons from earlier steps."""
        ordered = sorted(self.parts.values(), key=lambda part: _WORST_FIRST.index(part.state))
        return (*(reason for part in ordered for reason in part.reasons), *self.before)

    def headline(self) -> str:
        """Return the leading finding in a few words."""
        state = self.parts[self.worst].state
        if self.before and state != BAD:
            return BEFORE
        return _HEADLINES.get((self.worst, state), ALL_GOOD)

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the name, state and meaning of each part."""
        return [(name, part.state, MEANINGS[name, part.state]) for name, part in self.parts.items()]

    def to_document(self) -> Mapping[str, Any]:
        """Return the member `verdict` of posterior.json."""
        return {
            name: {"state": part.state, "reasons": list(part.reasons)} for name, part in self.parts.items()
        }
