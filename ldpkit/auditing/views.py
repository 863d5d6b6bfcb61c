"""Views of payloads. A view gives each payload a label. An event is a set of a view's labels.

The audit searches each family of views for its best event (events.py). Some families find faults that show
only in joint distributions: two bits, a whole byte, a number with the response.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ldp_client.core.randomness import urandom
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldpkit.auditing.answers import words_of
from ldpkit.auditing.claims import Claim, GaussianClaim

# With more bits than this, pairs are built around the bits that differ most between two answers.
ALL_PAIRS_UP_TO = 48
FOCUS = 6
# Cells of numbers along the line between two answers: alone, and with each response.
CELLS, CELLS_WITH_RESPONSE = 200, 16
LOWEST_BITS = (1 << 8) - 1
MOST_WORDS = 8
_BIT_TABLES = [bytes([48 + (value >> place & 1) for value in range(256)]) for place in range(8)]


def is_numeric(mechanism: Mechanism) -> bool:
    """Return True if payloads are integers with added noise."""
    coded = isinstance(mechanism, (ChoiceMechanism, SampledProducts))
    return not coded and len(mechanism.words(bytes(mechanism.payload_size))) > 0


class Batch:
    """Noisy payloads of one mechanism. Columns of bits and integers are built on demand and cached."""

    def __init__(self, mechanism: Mechanism, payloads: Sequence[bytes]) -> None:
        self.mechanism = mechanism
        self.payloads = payloads
        self.count = len(payloads)
        self.size = mechanism.payload_size
        self._joined = b"".join(payloads)
        self._bits: dict[int, int] = {}

    @classmethod
    def draw(cls, mechanism: Mechanism, answer: Any, count: int) -> "Batch":
        """Draw independent reports of one answer."""
        quantised = mechanism.quantise(answer)
        return cls(mechanism, [mechanism.randomise(quantised, urandom) for _ in range(count)])

    def byte(self, place: int) -> bytes:
        """Return byte `place` of every payload."""
        return self._joined[place :: self.size]

    def bit(self, place: int) -> int:
        """Return bit `place` (lowest of byte 0 first) of every payload, as one integer."""
        if place not in self._bits:
            self._bits[place] = int(self.byte(place // 8).translate(_BIT_TABLES[place % 8]), 2)
        return self._bits[place]

    @cached_property
    def words(self) -> list[list[int]]:
        """Every payload as integers."""
        return [self.mechanism.words(payload) for payload in self.payloads]

    @cached_property
    def halves(self) -> "tuple[Batch, Batch]":
        """The first half, to find events, and the second half, to test them."""
        middle = self.count // 2
        return Batch(self.mechanism, self.payloads[:middle]), Batch(self.mechanism, self.payloads[middle:])


@dataclass(frozen=True)
class View:
    """One labelling of payloads. `counts` returns how often each label occurs in a batch.

    ordered: whether greater labels favour the first answer, so that only thresholds are tried.
    """

    name: str
    counts: Callable[[Batch], Mapping[int, int]]
    ordered: bool = False


@dataclass(frozen=True)
class Family:
    """Views of one kind, and the claim that their events test."""

    name: str
    claim: Claim
    views: Sequence[View]


def families(answers: tuple[Any, Any], one: Batch, other: Batch) -> Iterator[Family]:
    """Yield all families for two answers. Families that adapt to data use these batches only."""
    mechanism = one.mechanism
    claim = Claim(mechanism.privacy)
    yield Family("bytes", claim, [_byte(place) for place in range(one.size)])
    yield Family("pairs of bits", claim, list(_bit_pairs(one, other)))
    if one.size <= 2:
        whole = View("payload", lambda b: Counter([int.from_bytes(payload, "big") for payload in b.payloads]))
        yield Family("whole payloads", claim, [whole])
    if isinstance(mechanism, ChoiceMechanism):
        yield Family("supported choices", claim, [support_view(mechanism, answers)])
    if is_numeric(mechanism):
        shift = [a - b for a, b in zip(*[words_of(mechanism, answer) for answer in answers])]
        if one.size % 4:
            yield Family("numbers with the last byte", claim, [_with_last_byte(shift, one, other)])
        else:
            exact = GaussianClaim(mechanism.privacy) if claim.delta else claim
            cells = _cells_along(shift, CELLS, one, other)
            yield Family("numbers", exact, [View("threshold", lambda b: Counter(cells(b)), ordered=True)])
        yield Family("lowest bits", claim, list(_lowest_bits(shift)))


def _byte(place: int) -> View:
    return View(f"byte {place}", lambda batch: Counter(batch.byte(place)))


def _bit_pairs(one: Batch, other: Batch) -> Iterator[View]:
    """Yield views of two bits, label 2 × first + second, counted without a loop over payloads."""
    bits = range(8 * one.size)
    firsts: Sequence[int] = bits
    if len(bits) > ALL_PAIRS_UP_TO:
        gaps = sorted([(abs(one.bit(b).bit_count() - other.bit(b).bit_count()), b) for b in bits])
        firsts = [b for _, b in gaps[-FOCUS:]]

    def view(first: int, second: int) -> View:
        def counts(batch: Batch) -> dict[int, int]:
            left, right = batch.bit(first), batch.bit(second)
            both, ones, others = (left & right).bit_count(), left.bit_count(), right.bit_count()
            return {3: both, 2: ones - both, 1: others - both, 0: batch.count - ones - others + both}

        return View(f"bits {first} and {second}", counts)

    return (view(first, second) for first in firsts for second in bits if first != second)


def support_view(mechanism: Any, answers: tuple[Any, Any]) -> View:
    """Return a view of which of the two answers are in the report's set of supported choices."""
    one, other = [mechanism.quantise(answer) for answer in answers]
    supported = mechanism.supported

    def counts(batch: Batch) -> Mapping[int, int]:
        return Counter(
            [2 * supported(payload, one) + supported(payload, other) for payload in batch.payloads]
        )

    return View("support of the two answers", counts)


def _with_last_byte(shift: list[int], one: Batch, other: Batch) -> View:
    """Return a view of cells along the line that joins two answers, each with the response or the refusal."""
    cells = _cells_along(shift, CELLS_WITH_RESPONSE, one, other)
    return View(
        "threshold with the last byte",
        lambda b: Counter([256 * cell + last for cell, last in zip(cells(b), b.byte(b.size - 1))]),
    )


def _cells_along(shift: list[int], count: int, one: Batch, other: Batch) -> Callable[[Batch], list[int]]:
    """Project integers on a line, and return cell numbers: `count` cells, equally full over both batches."""

    def along(batch: Batch) -> list[int]:
        return [sum([s * w for s, w in zip(shift, words)]) for words in batch.words]

    together = sorted(along(one) + along(other))
    edges = [together[len(together) * cell // count] for cell in range(1, count)]
    return lambda batch: [bisect_right(edges, value) for value in along(batch)]


def _lowest_bits(shift: list[int]) -> Iterator[View]:
    """Yield views of integers' residues and of the powers of 2 that divide them: they show coarser noise."""
    for place in sorted(range(len(shift)), key=lambda place: -abs(shift[place]))[:MOST_WORDS]:
        yield View(f"number {place} mod {LOWEST_BITS + 1}", _word_counts(place, lambda w: w & LOWEST_BITS))
        yield View(f"powers of 2 in number {place}", _word_counts(place, lambda w: w & -w))


def _word_counts(place: int, label: Callable[[int], int]) -> Callable[[Batch], Mapping[int, int]]:
    return lambda batch: Counter([label(words[place]) for words in batch.words])
