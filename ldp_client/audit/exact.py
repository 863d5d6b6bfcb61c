"""Checks without samples: the stated privacy against the mechanism's exact law, and the sampler's coin.

Bisection over the random bytes finds the coin's threshold. A threshold that is off by one changes a
probability by 2**-32, which no number of samples would show.
"""

from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from ldp_client.audit.answers import Stream, words_of
from ldp_client.audit.claims import largest_distance
from ldp_client.audit.findings import Check
from ldp_client.audit.stages import Again, Stage, is_unary
from ldp_client.audit.views import Pair
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.question import Question
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms import Mechanism
from ldp_client.words.text import rounded_up

# Decimal's exp and ln are correctly rounded, and independent of core/integers.py.
PRECISE = Context(prec=60)


ARITHMETIC = Decimal("1e-57")


RELATIVE = 1e-9


NEGLIGIBLE = Fraction(1, 1 << 24)


def exact(value: Rational) -> Fraction:
    """Return the number as a standard fraction."""
    return Fraction(value.numerator, value.denominator)


def stated_check(stage: Stage, question: Question) -> Check:
    """Check that the mechanism's ε and δ are within the study's."""
    given = stage.mechanism.privacy
    good = exact(given.epsilon) <= exact(stage.epsilon)
    good = good and exact(given.delta) <= exact(question.mechanism.delta)
    return Check(
        "within the study's epsilon and delta",
        good,
        f"{rounded_up(float(given.epsilon), 12)} of {rounded_up(float(stage.epsilon), 12)}",
    )


def law_checks(pair: Pair) -> Iterator[Check]:
    """Check for choices that ε is the log of the odds and that the odds match p and q, in exact numbers."""
    mechanism: Any = pair.mechanism
    often, seldom = mechanism.odds
    ratio = PRECISE.divide(Decimal(often), Decimal(seldom))
    given = mechanism.privacy.epsilon
    stated = PRECISE.divide(Decimal(given.numerator), Decimal(given.denominator))
    good = stated >= PRECISE.subtract(PRECISE.ln(ratio), ARITHMETIC)
    yield Check("epsilon is not below the logarithm of the odds", good, f"odds {float(ratio):.12g}")
    p, q, both = support_law(pair)
    lawful = 0 <= both <= min(p, q) and q < p
    lawful = lawful and (both == p * q if is_unary(mechanism) else both == 0 or both > NEGLIGIBLE)
    detail = f"p {float(p):.9g}, q {float(q):.9g}, both {float(both):.3g}"
    yield Check("odds, p and q are one law", lawful, detail)


def support_law(pair: Pair) -> tuple[Fraction, Fraction, Fraction]:
    """Return P(x ∈ S), P(x′ ∈ S) and P(both ∈ S) if x is answered. S is the random set of supported choices.

    P(x′ ∈ S, x ∉ S | x) e^ε = P(x ∈ S, x′ ∉ S | x), so the last follows from p, q and the odds. It is exactly
    pq if bits are independent, and 0 if S has one choice only, so even a small error in the odds shows.
    """
    mechanism: Any = pair.mechanism
    one, other = mechanism.quantise(pair.one), mechanism.quantise(pair.other)
    p, q = (exact(mechanism.support_probability(one, index)) for index in (one, other))
    often, seldom = mechanism.odds
    return p, q, (often * q - seldom * p) / (often - seldom)


def distance_check(mechanism: Mechanism, answers: list[Any]) -> Check:
    """Check for numbers that no two answers' integers are further apart than the noise hides.

    The distance is L1 for Laplace noise of scale 2**NOISE_BITS, and L2 for normal noise of that sd.
    """
    exact_words = [words_of(mechanism, answer, Stream(0)) for answer in answers]
    epsilon, delta = mechanism.privacy.epsilon, mechanism.privacy.delta
    pairs = [(one, other) for place, one in enumerate(exact_words) for other in exact_words[:place]]
    if delta.numerator:
        square = max([sum([(a - b) ** 2 for a, b in zip(*pair)]) for pair in pairs])
        allowed = largest_distance(float(epsilon), float(delta)) * (1 << NOISE_BITS)
        found, good = square**0.5, square**0.5 <= allowed * (1 + RELATIVE)
    else:
        largest = max([sum([abs(a - b) for a, b in zip(*pair)]) for pair in pairs])
        allowed = float(epsilon) * (1 << NOISE_BITS)
        found, good = float(largest), largest <= exact(epsilon) * (1 << NOISE_BITS)
    detail = f"{found:.9g} of {allowed:.9g} grid units, {len(answers)} answers"
    return Check("no two answers are further apart than the noise hides", good, detail)


WORD = 32


WORD_BYTES = WORD // 8


WHOLE = 1 << WORD


PROBES = 64


STREAMS = 4
# A read of up to this many words is still probed word by word.
MOST_WORDS = 4
# Values for the other words of a read. A draw below a prime accepts both; the second rounds a float up.
OTHERS = (bytes(WORD_BYTES), b"\xff\xff\xff\0")


def threshold_check(coin: Any, own: int) -> Check:
    """Compare p, or q of a unary encoding, with the coin by which `coin` draws reports of choice `own`."""
    found = coin_of(coin, own)
    stated, name = (coin.q, "q") if _is_sliced(coin) else (coin.p, "p")
    title = f"the sampler's coin is exactly {name}"
    if found is None:
        return Check(title, True, "no single word of the random bytes decides", made=False)
    detail = f"{found} / 2**{WORD}"
    if Fraction(found, WHOLE) != exact(stated) and _is_stated(coin, found):
        detail += f", or else any of {coin.choices} choices"
    return Check(title, _is_stated(coin, found), detail)


def _is_sliced(coin: Any) -> bool:
    return coin.unary if isinstance(coin, Again) else is_unary(coin)


def coin_of(coin: Any, own: int) -> int | None:
    """Return the coin's probability × 2**32, for reports of choice `own`; unary: for all other bits.

    If the other bits have different probabilities, this returns a wrong one.
    """
    if not _is_sliced(coin):
        return _word_that_decides(coin, own)
    others = ((1 << coin.choices) - 1) ^ (1 << own)
    every = _step(lambda word: _sliced(coin, own, word) & others == others)
    some = _step(lambda word: _sliced(coin, own, word) & others != 0)
    if every is None or some is None or (every == some and every in (0, WHOLE)):
        return None
    return some if _is_stated(coin, every) else every


def _word_that_decides(mechanism: Any, own: int) -> int | None:
    """Return the threshold of the random word that decides if a report supports the true choice.

    The word may be anywhere in the stream. If several words decide, a wrong threshold is returned first.
    """
    all_found: set[int] = set()
    for seed in range(STREAMS):
        for place in _words_read(mechanism, own, seed):
            found = _step(lambda word: _supports(mechanism, own, Spliced(seed, place, word)))  # noqa: B023
            if found not in (None, 0, WHOLE) and _decides_alone(mechanism, own, seed, place, found):
                all_found.add(found)
    right = {found for found in all_found if _is_stated(mechanism, found)}
    # With "or else any choice", the draw of that choice decides too: it can hit the true choice.
    of_any = [found for found in right if Fraction(found, WHOLE) != exact(mechanism.p)]
    return min(of_any or all_found - right or all_found, default=None)


def _is_stated(mechanism: Any, found: int) -> bool:
    """Return True if a coin of this threshold has the stated p (unary encoding: q), in either form.

    The forms are "the truth, or another choice" and "the truth, or any choice", which may be the truth again.
    """
    share, stated = Fraction(found, WHOLE), exact(mechanism.q if _is_sliced(mechanism) else mechanism.p)
    if _is_sliced(mechanism) or share == stated:
        return share == stated
    choices = getattr(mechanism, "choices", 0)
    return bool(choices) and share + (1 - share) / choices == stated


def _decides_alone(mechanism: Any, own: int, seed: int, place: int, found: int) -> bool:
    """Return False if the rest of the read matters next to the threshold, as a float's lower half does."""
    return all(
        [
            _supports(mechanism, own, Spliced(seed, place, word, others)) == (word < found)
            for word in (found - 1, found)
            for others in OTHERS
        ]
    )


def _words_read(mechanism: Any, own: int, seed: int) -> list[int]:
    """Return the places in a stream of random bytes where a sampler reads one word, or a few at once."""
    stream = Stream(seed)
    places: list[int] = []

    def source(size: int) -> bytes:
        if size % WORD_BYTES == 0 and size <= MOST_WORDS * WORD_BYTES:
            places.extend(range(stream.taken, stream.taken + size, WORD_BYTES))
        return stream(size)

    mechanism.randomise(own, NotForRealAnswers(source))
    return places


class Spliced(NotForRealAnswers):
    """A repeatable stream of random bytes with one word replaced, and the rest of its read by `others`."""

    def __init__(self, seed: int, place: int, word: int, others: bytes = b"") -> None:
        super().__init__(self)
        self.stream = Stream(seed)
        self.place, self.word, self.others = place, word, others

    def __call__(self, size: int) -> bytes:
        start = self.place - self.stream.taken
        fresh = self.stream(size)
        if not 0 <= start <= size - WORD_BYTES:
            return fresh
        if self.others:
            fresh = self.others * (size // WORD_BYTES)
        return fresh[:start] + self.word.to_bytes(WORD_BYTES, "big") + fresh[start + WORD_BYTES :]


def _supports(mechanism: Any, own: int, source: Spliced) -> bool:
    return bool(mechanism.supported(mechanism.randomise(own, source), own))


def _step(outcome: Callable[[int], bool]) -> int | None:
    """Return the threshold t if outcome(word) is `word < t` at every probe, else None.

    0 or WHOLE: the outcome is the same for the lowest and the highest word.
    """
    first = outcome(0)
    if first == outcome(WHOLE - 1):
        return WHOLE * first
    low, high = 0, WHOLE - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if outcome(middle) else (low, middle)
    stream = Stream(1)
    words = [int.from_bytes(stream(4), "big") for _ in range(PROBES)]
    # A draw below a prime rejects the last two words: no coin has them as a threshold.
    one_step = first and high < WHOLE - 2 and all([outcome(word) == (word < high) for word in words])
    return high if one_step else None


def _sliced(mechanism: Any, own: int, word: int) -> int:
    """Return a report's bits if the digits of each bit (one a block of bytes, lowest first) spell `word`."""
    size = mechanism.payload_size
    digits = b"".join([bytes([255 * (1 - (word >> place & 1))]) * size for place in range(WORD)])
    rest = Stream(2)
    source = NotForRealAnswers(lambda length: (digits + rest(max(length - len(digits), 0)))[:length])
    return int.from_bytes(mechanism.randomise(own, source), "little")
