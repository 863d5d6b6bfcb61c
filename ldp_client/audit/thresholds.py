"""The exact probability behind a sampler's coin, found by bisection over the random bytes it is given.

A threshold that is off by one changes a probability by 2**-32: no number of samples shows it, this does.
"""

from fractions import Fraction

from ldp_client.audit.exact import exact
from ldp_client.audit.findings import Check
from ldp_client.audit.streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ldp_client.audit.views import Pair

WORD = 32
WHOLE = 1 << WORD
PROBES = 64


def threshold_checks(pair: "Pair") -> "Iterator[Check]":
    """Compares p, or q of a unary encoding, with the coin; nothing where no single word decides."""
    mechanism: "Any" = pair.mechanism
    own = mechanism.quantise(pair.one)
    if pair.unary:
        other = mechanism.quantise(pair.other)
        found, stated, name = _step(lambda word: _sliced(mechanism, own, other, word)), mechanism.q, "q"
    else:
        found, stated, name = _step(lambda word: _first_word(mechanism, own, word)), mechanism.p, "p"
    if found is not None:
        good = Fraction(found, WHOLE) == exact(stated)
        yield Check(f"the sampler's coin is exactly {name}", good, f"{found} / 2**{WORD}")


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


def _first_word(mechanism: "Any", own: int, word: int) -> bool:
    """Whether the report supports the true choice when the first four random bytes are `word`."""
    head, rest = [word.to_bytes(4, "big")], Stream(2)

    def source(size: int) -> bytes:
        start = head.pop() if head else b""
        return (start + rest(size))[:size]

    return bool(mechanism.supported(mechanism.randomise(own, source), own))


def _sliced(mechanism: "Any", own: int, other: int, word: int) -> bool:
    """Another choice's bit when its digits, lowest first, one in each block of bytes, spell `word`."""
    size = mechanism.payload_size
    digits = b"".join([bytes([255 * (1 - (word >> place & 1))]) * size for place in range(WORD)])
    rest = Stream(2)
    report = mechanism.randomise(own, lambda length: (digits + rest(max(length - len(digits), 0)))[:length])
    return bool(int.from_bytes(report, "little") >> other & 1)
