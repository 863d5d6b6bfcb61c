"""The exact probability behind a sampler's coin, found by bisection over the random bytes it is given.

A threshold that is off by one changes a probability by 2**-32: no number of samples shows it, this does.
"""

from fractions import Fraction

from ldp_client.audit.exact import exact
from ldp_client.audit.findings import Check
from ldp_client.audit.repeated import Again
from ldp_client.audit.streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ldp_client.audit.views import Pair

WORD = 32
WORD_BYTES = WORD // 8
WHOLE = 1 << WORD
PROBES = 64
STREAMS = 4


def threshold_check(coin: "Any", pair: "Pair") -> Check:
    """Compares p, or q of a unary encoding, with the coin by which `coin` draws the pair's reports."""
    own, other = pair.mechanism.quantise(pair.one), pair.mechanism.quantise(pair.other)
    if coin.unary if isinstance(coin, Again) else pair.unary:
        found, stated, name = _step(lambda word: _sliced(coin, own, other, word)), coin.q, "q"
    else:
        found, stated, name = _word_that_decides(coin, own), coin.p, "p"
    title = f"the sampler's coin is exactly {name}"
    if found is None:
        return Check(title, True, "no single word of the random bytes decides", made=False)
    return Check(title, Fraction(found, WHOLE) == exact(stated), f"{found} / 2**{WORD}")


def _word_that_decides(mechanism: "Any", own: int) -> "int | None":
    """The threshold of the word, wherever it is read, by which a report supports the true choice or not."""
    for seed in range(STREAMS):
        for place in _words_read(mechanism, own, seed):
            found = _step(lambda word: _supports(mechanism, own, Spliced(seed, place, word)))  # noqa: B023
            if found is not None:
                return found
    return None


def _words_read(mechanism: "Any", own: int, seed: int) -> "list[int]":
    """Where in a stream of random bytes a sampler reads one word by itself."""
    stream, places = Stream(seed), []

    def source(size: int) -> bytes:
        if size == WORD_BYTES:
            places.append(stream.taken)
        return stream(size)

    mechanism.randomise(own, source)
    return places


class Spliced:
    """A repeatable stream of random bytes with one word of it replaced."""

    def __init__(self, seed: int, place: int, word: int) -> None:
        self.stream = Stream(seed)
        self.place, self.word = place, word

    def __call__(self, size: int) -> bytes:
        start = self.stream.taken
        fresh = self.stream(size)
        return self.word.to_bytes(WORD_BYTES, "big") if start == self.place and size == WORD_BYTES else fresh


def _supports(mechanism: "Any", own: int, source: Spliced) -> bool:
    return bool(mechanism.supported(mechanism.randomise(own, source), own))


def _step(outcome: "Callable[[int], bool]") -> "int | None":
    """The threshold t, if outcome(word) is `word < t` wherever it is looked at."""
    if not outcome(0) or outcome(WHOLE - 1):
        return None
    low, high = 0, WHOLE - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if outcome(middle) else (low, middle)
    stream = Stream(1)
    words = [int.from_bytes(stream(4), "big") for _ in range(PROBES)]
    # The last two words are those that a draw below a prime refuses: no coin has them for a threshold.
    one_step = high < WHOLE - 2 and all([outcome(word) == (word < high) for word in words])
    return high if one_step else None


def _sliced(mechanism: "Any", own: int, other: int, word: int) -> bool:
    """Another choice's bit when its digits, lowest first, one in each block of bytes, spell `word`."""
    size = mechanism.payload_size
    digits = b"".join([bytes([255 * (1 - (word >> place & 1))]) * size for place in range(WORD)])
    rest = Stream(2)
    report = mechanism.randomise(own, lambda length: (digits + rest(max(length - len(digits), 0)))[:length])
    return bool(int.from_bytes(report, "little") >> other & 1)
