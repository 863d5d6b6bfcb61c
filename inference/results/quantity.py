"""Quantities from a posterior's draws, with intervals, and differences and ratios of two quantities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.results.intervals import MANY, USUAL, Interval, interval_of, written
from ldp_client.documents.errors import InputError

Draws = NDArray[np.float64]
QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
SAME_PEOPLE = (
    "taken as independent: if the same people answered both, and their answers are correlated, the "
    "interval is wrong (fit a formula of both, with analyse)"
)


@dataclass(frozen=True)
class Quantity:
    """A number with a posterior, as draws.

    Attributes:
        name: the parameter's name, or another short name.
        words: its description.
        draws: of shape (chains, draws).
        contrast: whether it is a difference between two groups, which may be on either side of zero.
        share: whether it is a share of people; None to decide by its name.
        fits: the draws of each fit from which it was calculated. Quantities of one fit are combined draw by
            draw.
        studies: the digests of these fits' studies.
        doubts: reasons not to trust the posteriors from which it was calculated.
        notes: further notes for the reader.
    """

    name: str
    words: str
    draws: Draws
    contrast: bool = False
    share: bool | None = None
    fits: tuple[Any, ...] = field(default=(), compare=False)
    studies: frozenset[str] = frozenset()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """Return the mean of its draws."""
        return float(self.draws.mean())

    @property
    def median(self) -> float:
        """Return the median of its draws."""
        return float(np.median(self.draws))

    @property
    def sd(self) -> float:
        """Return the standard deviation of its draws."""
        return float(self.draws.std())

    def interval(self, level: float = USUAL.level) -> tuple[float, float]:
        """Return its credible interval, with equal tails.

        Args:
            level: the probability that it holds.

        Returns:
            The lower and the upper end.

        Raises:
            InputError: level is no probability.
        """
        return interval_of(level).of(self.draws)

    def above(self, value: float = 0.0) -> float:
        """Return the probability that it is above a value.

        Args:
            value: in its own units.

        Returns:
            The share of draws above it.
        """
        return float(np.mean(self.draws > value))

    def difference(self, other: Quantity) -> Quantity:
        """Subtract another quantity; `a - b` does the same.

        Args:
            other: a quantity of the same fit, or of another fit, whose draws are then treated as independent.

        Returns:
            This quantity minus the other.

        Raises:
            TypeError: the other is no quantity.
        """
        return self._with(other, "−", "minus", np.subtract, contrast=True)

    def ratio(self, other: Quantity) -> Quantity:
        """Divide by another quantity; `a / b` does the same.

        Args:
            other: as for `difference`.

        Returns:
            This quantity over the other.

        Raises:
            TypeError: the other is no quantity.
        """
        return self._with(other, "/", "over", np.divide, contrast=False)

    __sub__ = difference
    __truediv__ = ratio

    def _with(self, other: object, sign: str, word: str, calculate: Any, *, contrast: bool) -> Quantity:
        if not isinstance(other, Quantity):
            raise TypeError(
                f"expected a quantity, not a {type(other).__name__}: take one from a posterior by name, such "
                'as posterior["p"]. To calculate with numbers, use its draws, as in 1 - posterior["p"].draws'
            )
        ours, theirs = ({id(fit) for fit in each.fits} for each in (self, other))
        together = len(ours) == 1 and ours == theirs
        pair = (self.draws, other.draws)
        if not together:
            if ours & theirs:
                raise InputError(
                    f"{self.name} and {other.name} come partly from one fit, but their draws no longer pair "
                    "up: calculate with the draws of that fit's quantities first",
                    code="result.draws_do_not_pair",
                )
            # Different fits draw independently, also under one seed: random numbers follow from the data too.
            count = min(self.draws.size, other.draws.size)
            pair = (np.ravel(self.draws)[None, :count], np.ravel(other.draws)[None, :count])
        same_people = not together and bool(self.studies & other.studies)
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = np.asarray(calculate(*pair), dtype=np.float64)
        return Quantity(
            name=f"{self._inner(self.name)} {sign} {other._inner(other.name)}",
            words=f"{self._inner(self.words)} {word} {other._inner(other.words)}",
            draws=draws,
            contrast=contrast,
            share=contrast and self.is_share and other.is_share,
            fits=self.fits if together else (*self.fits, *other.fits),
            studies=self.studies | other.studies,
            doubts=tuple(dict.fromkeys((*self.doubts, *other.doubts))),
            notes=tuple(dict.fromkeys((*self.notes, *other.notes, *([SAME_PEOPLE] if same_people else [])))),
        )

    def _inner(self, words: str) -> str:
        """Return its name or words, in brackets if calculated, for use in another quantity's."""
        return f"({words})" if " − " in self.name or " / " in self.name else words

    @property
    def is_share(self) -> bool:
        """Return True if it is shown in per cent: a share of people, or a difference of two shares."""
        return self.name.startswith("share") if self.share is None else self.share

    def sentence(self, interval: Interval = USUAL) -> str:
        """Return it as a sentence: a share in per cent, a difference of shares in points.

        Args:
            interval: the kind of interval.

        Returns:
            The words, the median and the interval; for a difference also the side of zero.
        """
        direction = ""
        if self.contrast:
            side, sure = self._direction()
            how = f"{sure:.2f}" if sure < 0.995 else "more than 0.99"
            direction = f"; {side} 0 with probability {how}"
        return f"{self.words[0].upper()}{self.words[1:]}: {self._numbers(interval)}{direction}."

    def _numbers(self, interval: Interval) -> str:
        """Return the median and the interval."""
        low, high = interval.of(self.draws)
        unit = (" points" if self.contrast else " %") if self.is_share else ""
        middle, *ends = (_exact(value, self.is_share, high - low) for value in (self.median, low, high))
        return f"{middle}{unit} ({interval.name} {' to '.join(ends)})"

    def _direction(self) -> tuple[str, float]:
        """Return the more probable side of zero, and its probability."""
        above = self.above()
        return ("above", above) if above >= 0.5 else ("below", float(np.mean(self.draws < 0)))

    def to_document(self) -> dict[str, Any]:
        """Return its entry in posterior.json."""
        quantiles = {label: float(np.quantile(self.draws, level)) for label, level in QUANTILES.items()}
        document: dict[str, Any] = {"words": self.words, "mean": self.mean, "sd": self.sd, **quantiles}
        if self.contrast:
            side, sure = self._direction()
            document |= {"direction": f"{side} 0", "probability_of_direction": sure}
        return document

    def __repr__(self) -> str:
        return "\n  ".join([f"{self.name}: {self._numbers(USUAL)}", *self.doubts, *self.notes])


def _exact(value: float, share: bool, width: float) -> str:
    """Format a number as elsewhere for an interval of that width, but with all digits from a thousand on."""
    if not share and 1000 <= abs(value) < MANY and width >= 1:
        return f"{value:,.0f}".replace("-", "−")
    return written(value, share, width)
