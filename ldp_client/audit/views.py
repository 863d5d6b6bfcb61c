"""Views of payloads. A view gives each payload a label. An event is a set of a view's labels.

The audit searches each family of views for its best event (events.py). Some families find faults that show
only in joint distributions: two bits, a whole byte, two bytes.
"""

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import frexp
from typing import Any, Union

from ldp_client.audit.answers import Stream, words_of
from ldp_client.audit.claims import Claim, GaussianClaim
from ldp_client.audit.stages import Repeated, Together, is_unary
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts

AnyView = Union["View", "BitPair"]


_BIT_TABLES = [bytes([48 + (value >> place & 1) for value in range(256)]) for place in range(8)]


# The number of bits that are 1.
ones: Callable[[int], int] = int.bit_count


class Batch:
    """n payloads of one size. `read` returns a payload's integers. Columns are built on demand and cached."""

    def __init__(self, payloads: Sequence[bytes], read: Callable[[bytes], list[int]]) -> None:
        self.payloads = payloads
        self.read = read
        self.n = len(payloads)
        self.size = len(payloads[0])
        self._joined = b"".join(payloads)
        self._bits: dict[int, int] = {}
        self._words: list[list[int]] = []
        self._supports: dict[int, list[bool]] = {}

    def byte(self, place: int) -> bytes:
        """Return byte `place` of every payload."""
        return self._joined[place :: self.size]

    def bit(self, place: int) -> int:
        """Return bit `place` (lowest of byte 0 first) of every payload, as one integer of n bits."""
        if place not in self._bits:
            digits = self.byte(place // 8).translate(_BIT_TABLES[place % 8])
            self._bits[place] = int(digits, 2)
        return self._bits[place]

    def mixed(self, one: int, other: int) -> bytes:
        """Return byte `one` XOR byte `other` of every payload."""
        together = int.from_bytes(self.byte(one), "big") ^ int.from_bytes(self.byte(other), "big")
        return together.to_bytes(self.n, "big")

    def words(self) -> list[list[int]]:
        """Return every payload as integers."""
        if not self._words:
            self._words = [self.read(payload) for payload in self.payloads]
        return self._words

    def supports(self, mechanism: Any, index: int) -> list[bool]:
        """Return whether each payload supports the choice."""
        if index not in self._supports:
            self._supports[index] = [mechanism.supported(payload, index) for payload in self.payloads]
        return self._supports[index]

    @cached_property
    def halves(self) -> "tuple[Batch, Batch]":
        """The first half, to find events, and the second half, to test them."""
        middle = self.n // 2
        return Batch(self.payloads[:middle], self.read), Batch(self.payloads[middle:], self.read)


ALL_PAIRS_UP_TO = 48


FOCUS = 6


CELLS = 200


FEW_CELLS = 16


LOWEST = (1 << 8) - 1


MOST_WORDS = 8


class View:
    """One labelling of payloads. `counts` returns how often each label occurs in a batch.

    ordered: whether greater labels favour the first answer, so that only thresholds are tried.
    """

    def __init__(self, name: str, labels: Callable[[Batch], Sequence[int]], ordered: bool = False) -> None:
        self.name = name
        self.labels = labels
        self.ordered = ordered

    def counts(self, batch: Batch) -> dict[int, int]:
        return Counter(self.labels(batch))


class BitPair:
    """Two bits together, counted without a loop over payloads: label 2 × first + second."""

    ordered = False

    def __init__(self, first: int, second: int) -> None:
        self.name = f"bits {first} and {second}"
        self.first, self.second = first, second

    def counts(self, batch: Batch) -> dict[int, int]:
        one, other = batch.bit(self.first), batch.bit(self.second)
        both, first, second = ones(one & other), ones(one), ones(other)
        return {3: both, 2: first - both, 1: second - both, 0: batch.n - first - second + both}


class Pair:
    """Two answers of one question. They determine the families of views.

    numeric: payloads are integers plus noise. lawful: reports are sets of choices with a stated law.
    unary: these sets are independent bits. products: reports are blocks' places and signs of products.
    composed: payloads combine reports, or parts of a report, that are also audited separately.
    """

    def __init__(self, mechanism: Mechanism, one: Any, other: Any) -> None:
        self.mechanism = mechanism
        self.one, self.other = one, other
        self.lawful = isinstance(mechanism, ChoiceMechanism)
        self.products = isinstance(mechanism, SampledProducts)
        self.composed = isinstance(mechanism, (Repeated, Together))
        other = self.lawful or self.products or self.composed
        self.numeric = not other and len(mechanism.words(bytes(mechanism.payload_size))) > 0
        self.unary = is_unary(mechanism)


class Family:
    """Views of one kind, and the claim that their events test."""

    def __init__(self, name: str, claim: Claim, views: Sequence[AnyView]) -> None:
        self.name = name
        self.claim = claim
        self.views = views


def families(pair: Pair, one: Batch, other: Batch) -> Iterator[Family]:
    """Yield all families for one pair of answers. Families that adapt to data use these batches only."""
    claim = Claim(pair.mechanism.privacy)
    size, focus = one.size, _focus_bits(one, other)
    yield Family("bytes", claim, [_byte(place) for place in range(size)])
    yield Family("pairs of bits", claim, list(_bit_pairs(8 * size, focus)))
    if size > 1:
        views = [_mixed(focus[0] // 8, place) for place in range(size)]
        yield Family("parity of bytes", claim, views)
    if size <= 2:
        yield Family("whole payloads", claim, [View("payload", _as_integers)])
    if isinstance(pair.mechanism, Repeated):
        yield Family("votes of all reports", claim, [_votes(pair, pair.mechanism)])
    if isinstance(pair.mechanism, Together):
        yield Family("features with the response", claim, [_with_response(pair, one, other)])
    if pair.lawful:
        yield Family("supported choices", claim, [support_view(pair)])
    if pair.numeric:
        exact = GaussianClaim(pair.mechanism.privacy) if claim.delta else claim
        yield Family("numbers", exact, [_projection(pair, one, other)])
        yield Family("lowest bits", claim, list(_lowest_bits(pair)))
    if pair.numeric and size % 8 == 0:
        yield Family("floats", claim, [_float_grid(place) for place in range(0, min(size, 64), 8)])


def _as_integers(batch: Batch) -> list[int]:
    return [int.from_bytes(payload, "big") for payload in batch.payloads]


def _byte(place: int) -> View:
    return View(f"byte {place}", lambda batch: batch.byte(place))


def _mixed(one: int, other: int) -> View:
    return View(f"byte {one} xor byte {other}", lambda batch: batch.mixed(one, other))


def _focus_bits(one: Batch, other: Batch) -> list[int]:
    """Return the bits whose own distributions differ most. Joint events are built around them."""
    gaps = [(abs(ones(one.bit(b)) - ones(other.bit(b))), b) for b in range(8 * one.size)]
    return [b for _, b in sorted(gaps, reverse=True)[:FOCUS]]


def _bit_pairs(bits: int, focus: list[int]) -> Iterator[BitPair]:
    for first in range(bits) if bits <= ALL_PAIRS_UP_TO else focus:
        for second in range(first + 1, bits) if bits <= ALL_PAIRS_UP_TO else range(bits):
            yield BitPair(first, second)


def support_view(pair: Pair) -> View:
    """Return a view of which of the two answers are in the report's set of supported choices."""
    mechanism: Any = pair.mechanism
    one, other = mechanism.quantise(pair.one), mechanism.quantise(pair.other)

    def labels(batch: Batch) -> list[int]:
        both = zip(batch.supports(mechanism, one), batch.supports(mechanism, other))
        return [2 * first + second for first, second in both]

    return View("support of the two answers", labels)


def _votes(pair: Pair, mechanism: Repeated) -> View:
    """Return a view of the first answer's lead: how many more of a device's reports support it."""
    one, other = mechanism.quantise(pair.one), mechanism.quantise(pair.other)

    def labels(batch: Batch) -> list[int]:
        return [mechanism.votes(payload, one, other) for payload in batch.payloads]

    return View("lead of the first answer", labels, ordered=True)


def shift_of(pair: Pair) -> list[int]:
    """Return the differences between the two answers' integers, drawn with the same randomness."""
    both = [words_of(pair.mechanism, answer, Stream(0)) for answer in (pair.one, pair.other)]
    return [a - b for a, b in zip(*both)]


def _projection(pair: Pair, one: Batch, other: Batch) -> View:
    return View("threshold", _cells_along(shift_of(pair), CELLS, one, other), ordered=True)


def _with_response(pair: Pair, one: Batch, other: Batch) -> View:
    """Return a view of feature cells along the line that joins two records, each with the response byte."""
    *shift, _ = shift_of(pair)
    cells = _cells_along(shift, FEW_CELLS, one, other)

    def labels(batch: Batch) -> list[int]:
        return [256 * cell + response for cell, response in zip(cells(batch), batch.byte(batch.size - 1))]

    return View("threshold with the response", labels)


def _cells_along(shift: list[int], count: int, one: Batch, other: Batch) -> Callable[[Batch], list[int]]:
    """Project integers on a line, and return cell numbers: `count` cells, equally full over both batches."""

    def along(batch: Batch) -> list[int]:
        return [sum([s * w for s, w in zip(shift, words)]) for words in batch.words()]

    together = sorted(along(one) + along(other))
    edges = [together[len(together) * cell // count] for cell in range(1, count)]
    return lambda batch: [bisect_right(edges, value) for value in along(batch)]


def _lowest_bits(pair: Pair) -> Iterator[View]:
    """Yield views of integers' residues and of the powers of 2 that divide them: they show coarser noise."""
    shift = shift_of(pair)
    most_shifted = sorted(range(len(shift)), key=lambda place: -abs(shift[place]))

    def residues(place: int) -> View:
        return View(f"number {place} mod {LOWEST + 1}", lambda b: [w[place] & LOWEST for w in b.words()])

    def divisors(place: int) -> View:
        return View(f"powers of 2 in number {place}", lambda b: [w[place] & -w[place] for w in b.words()])

    for place in most_shifted[:MOST_WORDS]:
        yield residues(place)
        yield divisors(place)


def _float_grid(place: int) -> View:
    """Return a view of a float's lowest set bit: some bits occur for one answer only (Mironov 2012)."""

    def lowest_bit(payload: bytes) -> int:
        mantissa, exponent = frexp(struct.unpack_from(">d", payload, place)[0])
        whole = int(mantissa * (1 << 53)) if mantissa == mantissa and abs(mantissa) <= 1 else 0
        return exponent * 64 + (whole & -whole).bit_length()

    return View(f"grid of the float at byte {place}", lambda b: [lowest_bit(p) for p in b.payloads])
