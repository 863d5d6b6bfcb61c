"""What follows from a posterior's draws: a quantity with its interval, and differences and ratios of two."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.results.intervals import USUAL, in_words, interval_of, named_share
from ldp_client.documents.errors import InputError

Draws = NDArray[np.float64]
QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
SAME_PEOPLE = (
    "taken as independent: where the same people answered both, and their answers go together, the "
    "interval is wrong (ask a formula of both, with analyse)"
)


@dataclass(frozen=True)
class Quantity:
    """A number that a posterior knows, as draws.

    Attributes:
        name: a parameter's, or what it is.
        words: what it is, in words.
        draws: of shape (chains, draws).
        contrast: whether it is a difference between two groups, which may be on either side of zero.
        share: whether it is a share of people; None where its name says so.
        origin: the draws that it comes from: quantities of one fit are taken together, draw by draw.
        sources: of a quantity of several fits, all of theirs.
        study: digest of the study.
        people: who answered, as (digest, question), the question "" where a device answers all; empty: the
            study's.
        doubts: why the posteriors that it comes from are not to be trusted as they stand.
        notes: what a reader must know besides.
    """

    name: str
    words: str
    draws: Draws
    contrast: bool = False
    share: bool | None = None
    origin: Any = field(default=None, compare=False)
    sources: tuple[Any, ...] = field(default=(), compare=False)
    study: str = ""
    people: frozenset[tuple[str, str]] = frozenset()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """The mean of its draws."""
        return float(self.draws.mean())

    @property
    def median(self) -> float:
        """The median of its draws."""
        return float(np.median(self.draws))

    @property
    def sd(self) -> float:
        """The standard deviation of its draws."""
        return float(self.draws.std())

    def interval(self, prob: float = USUAL.prob, kind: str = USUAL.kind) -> tuple[float, float]:
        """Give its credible interval.

        Args:
            prob: the probability that it holds.
            kind: "eti", equal tails, or "hdi", highest density.

        Returns:
            The lower and the upper end.

        Raises:
            InputError: prob is no probability, or the kind is another.
        """
        return interval_of(prob, kind).of(self.draws)

    def above(self, value: float = 0.0) -> float:
        """Give the probability that it is above a value.

        Args:
            value: in its own units.

        Returns:
            The share of draws above it.
        """
        return float(np.mean(self.draws > value))

    def difference(self, other: Quantity) -> Quantity:
        """Subtract another quantity; `a - b` does the same.

        Args:
            other: of the same fit, or of another one, whose draws are then independent of these.

        Returns:
            This one minus the other.

        Raises:
            TypeError: the other one is no quantity.
        """
        return self._with(other, "−", "minus", np.subtract, contrast=True)

    def ratio(self, other: Quantity) -> Quantity:
        """Divide by another quantity; `a / b` does the same.

        Args:
            other: as for `difference`.

        Returns:
            This one over the other.

        Raises:
            TypeError: the other one is no quantity.
        """
        return self._with(other, "/", "over", np.divide, contrast=False)

    __sub__ = difference
    __truediv__ = ratio

    def __rsub__(self, other: object) -> Quantity:
        """Say what can be done instead, as of any number."""
        return self._with(other, "−", "minus", np.subtract, contrast=True)

    __rtruediv__ = __rsub__

    def _with(self, other: object, sign: str, word: str, calculate: Any, *, contrast: bool) -> Quantity:
        if not isinstance(other, Quantity):
            raise TypeError(
                f"a quantity is wanted, not a {type(other).__name__}: take one of a posterior by its name, "
                'such as posterior["p"]; with numbers calculate by its draws, as 1 - posterior["p"].draws'
            )
        together = self.origin is not None and self.origin is other.origin
        ours, theirs = (self.draws, other.draws) if together else self._beside(other)
        same_people = not together and self._shares_people(other)
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = np.asarray(calculate(ours, theirs), dtype=np.float64)
        return Quantity(
            name=f"{self._inner(self.name)} {sign} {other._inner(other.name)}",
            words=f"{self._inner(self.words)} {word} {other._inner(other.words)}",
            draws=draws,
            contrast=contrast,
            share=contrast and self.is_share and other.is_share,
            origin=self.origin if together else None,
            sources=(*self._sources, *other._sources),
            study=self.study if self.study == other.study else "",
            people=self._people | other._people,
            doubts=tuple(dict.fromkeys((*self.doubts, *other.doubts))),
            notes=tuple(dict.fromkeys((*self.notes, *other.notes, *([SAME_PEOPLE] if same_people else [])))),
        )

    def _inner(self, words: str) -> str:
        """Its name or words within those of what is calculated from it."""
        return f"({words})" if self.sources else words

    def _beside(self, other: Quantity) -> tuple[Draws, Draws]:
        """Draws of both, which are of different fits. Raises InputError where a part of both is of one."""
        ours, theirs = ({id(one) for one in each._sources} for each in (self, other))
        if ours & theirs:
            raise InputError(
                f"{self.name} and {other.name} come partly from one fit, in orders that no longer agree: "
                "calculate with the draws of its quantities first",
                code="result.draws_do_not_pair",
            )
        return _independent(self.draws, other.draws)

    def _shares_people(self, other: Quantity) -> bool:
        """Whether somebody may have answered for both: of a study that asks each device one question only
        those of one question."""
        return any(
            study == of and (question == asked or "" in (question, asked))
            for study, question in self._people
            for of, asked in other._people
        )

    @property
    def _people(self) -> frozenset[tuple[str, str]]:
        return self.people or frozenset({(self.study, "")} if self.study else ())

    @property
    def _sources(self) -> tuple[Any, ...]:
        return self.sources or ((self.origin,) if self.origin is not None else ())

    @property
    def is_share(self) -> bool:
        """Whether it is read in per cent: a share of people, or a difference of two."""
        return named_share(self.name) if self.share is None else self.share

    def to_document(self) -> dict[str, Any]:
        """Return its entry in posterior.json."""
        quantiles = {label: float(np.quantile(self.draws, level)) for label, level in QUANTILES.items()}
        found: dict[str, Any] = {"words": self.words, "mean": self.mean, "sd": self.sd, **quantiles}
        if self.contrast:
            above = self.above()
            found["direction"] = "above 0" if above >= 0.5 else "below 0"
            found["probability_of_direction"] = max(above, float(np.mean(self.draws < 0)))
        return found

    def __repr__(self) -> str:
        said = in_words(self.draws, self.is_share)
        if self.contrast and self.is_share:
            said = {name: text.replace("%", "points") for name, text in said.items()}
        whole = f"{self.name}: {said['median']} ({USUAL.name} {said['interval']})"
        lines = [*(f"NOT OK: {doubt}" for doubt in self.doubts), *self.notes]
        return "\n  ".join([whole, *lines])


def _independent(ours: Draws, theirs: Draws) -> tuple[Draws, Draws]:
    """As many draws of each, in orders that have nothing to do with each other.

    A fit of the same data under the same seed repeats its draws: in their own order the two go together.
    """
    random = np.random.default_rng(0)
    count = min(ours.size, theirs.size)
    first, second = (random.permutation(np.ravel(draws))[None, :count] for draws in (ours, theirs))
    return first, second
