"""Unbiased uniform integers from a source of random bytes, and health tests that a source must pass.

A source is a function n -> n random bytes: the operating system's, or a function that is passed in. Only
`read` calls a source. It rejects results of another length or type, which would make the noise too small.
It applies the health tests of NIST SP 800-90B, 4.4, to sources that are passed in, with bytes as samples of
8 bits of entropy each. Cutoffs are for false alarms below 2**-64: the repetition count test rejects 9 equal
bytes in a row, the adaptive proportion test the 27th occurrence of the first byte of 512. Both tests run on
all bytes that are read. Before first use they also run on 1024 bytes that are discarded, which may not repeat
with a period of up to 512, and in which no byte at all may occur 27 times (false alarms below 2**-56).

Reads of the operating system are compared with its recent ones: a stuck or periodic generator repeats them.

The tests find a broken or stuck source, not a predictable source: no test of its bytes could.
"""

import os
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from ldp_client.documents.errors import RandomnessError
from ldp_client.words.text import say

# A function n -> n random bytes.
Source = Callable[[int], bytes]
REPETITION_CUTOFF = 9
PROPORTION_CUTOFF = 27
WINDOW = 512
# Reads of the system that are compared with each other: false alarms below 2**-56.
RECENT_READS = 256
LEAST_COMPARED = 8


class NotForRealAnswers:
    """Exempts a source from the health tests: recorded bytes in tests, seeded bytes in simulations.

    An attacker who knows the bytes can remove the noise. Lengths are still checked.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def __call__(self, size: int) -> bytes:
        return self.source(size)


def urandom(size: int) -> bytes:
    """Return random bytes of the operating system."""
    return os.urandom(size)


def read(random: Source, size: int) -> bytes:
    """Read `size` bytes of a source. Raises RandomnessError if it is broken or not a source of secrets."""
    if isinstance(random, NotForRealAnswers):
        return _exactly(random, size)
    if random is urandom or random is os.urandom:
        return _new(_exactly(random, size))
    return _health_of(random).read(size)


def _new(fresh: bytes) -> bytes:
    """Return the system's bytes. Raises RandomnessError if a recent read had the same bytes.

    Short reads may repeat by chance. Only digests are kept: the bytes themselves are secrets.
    """
    if len(fresh) < LEAST_COMPARED:
        return fresh
    if _recent[0] is not os.urandom:
        _recent[:] = [os.urandom, []]
    digest = sha256(fresh).digest()[:LEAST_COMPARED]
    if digest in _recent[1]:
        raise RandomnessError.say("core.random_broken", problem=say("core.random_same"))
    _recent[1].append(digest)
    if len(_recent[1]) > RECENT_READS:
        _recent[1].pop(0)
    return fresh


def _exactly(random: Source, size: int) -> bytes:
    fresh = random(size)
    if not isinstance(fresh, (bytes, bytearray)) or len(fresh) != size:
        raise RandomnessError.say("core.random_size", size=size)
    return fresh


class Health:
    """The health tests of one source. A source that failed stays rejected."""

    def __init__(self, source: Source) -> None:
        _refuse_simulators(source)
        self.source = source
        self.problem = ""
        self._last = b""
        self._window = b""
        self._is_started = False

    def read(self, size: int) -> bytes:
        """Read `size` bytes that pass the tests."""
        if self.problem:
            self._fail(self.problem)
        if not self._is_started:
            self._start()
        return self._tested(size)

    def _start(self) -> None:
        first, second = self._tested(WINDOW), self._tested(WINDOW)
        whole = first + second
        if any(whole[shift : shift + WINDOW] == first for shift in range(1, WINDOW + 1)):
            self._fail(say("core.random_same"))
        for window in (first, second):
            if max(window.count(bytes([value])) for value in range(256)) >= PROPORTION_CUTOFF:
                self._fail(say("core.random_one_byte", count=PROPORTION_CUTOFF, size=WINDOW))
        self._is_started = True

    def _tested(self, size: int) -> bytes:
        fresh = _exactly(self.source, size)
        self._count_repetitions(fresh)
        self._count_first(fresh)
        return fresh

    def _fail(self, problem: str) -> None:
        self.problem = problem
        # Another thread may have replaced this source in the list.
        if self not in _known:
            _known.append(self)
        raise RandomnessError.say("core.random_broken", problem=problem)

    def _count_repetitions(self, fresh: bytes) -> None:
        """Run the repetition test. A long run has equal bytes at i and i + 4 for some i divisible by 4."""
        together = self._last + fresh
        for place in range(0, len(together) - 4, 4):
            if together[place] == together[place + 4]:
                run = together[place : place + 1] * REPETITION_CUTOFF
                around = together[max(0, place - REPETITION_CUTOFF) : place + 2 * REPETITION_CUTOFF]
                if around.find(run) >= 0:
                    self._fail(say("core.random_repeats", count=REPETITION_CUTOFF))
        self._last = together[-(REPETITION_CUTOFF - 1) :]

    def _count_first(self, fresh: bytes) -> None:
        """Count, in each window (also if it is not full yet), the bytes that equal its first byte."""
        together = self._window + fresh
        window = b""
        for start in range(0, len(together), WINDOW):
            window = together[start : start + WINDOW]
            if window.count(window[:1]) >= PROPORTION_CUTOFF:
                self._fail(say("core.random_one_byte", count=PROPORTION_CUTOFF, size=WINDOW))
        self._window = window if len(window) < WINDOW else b""


def _refuse_simulators(source: Any) -> None:
    """Raise RandomnessError for the generators of `random` and `numpy.random`, except SystemRandom.

    Some of their output determines all the rest, including earlier output.
    """
    owner = getattr(getattr(source, "func", source), "__self__", None)
    names = [f"{kind.__module__}.{kind.__name__}" for kind in type(owner).__mro__]
    simulated = any(name.startswith("numpy.random.") or name == "random.Random" for name in names)
    if simulated and "random.SystemRandom" not in names:
        raise RandomnessError.say("core.random_simulator")


_known: list[Health] = []
# The system's generator, and digests of its recent reads.
_recent: list[Any] = [None, []]


def _health_of(source: Source) -> Health:
    """Return a source's tests. Failed sources and the last source used are remembered: it starts up once."""
    for known in _known:
        if known.source == source:
            return known
    fresh = Health(source)
    _known[:] = [known for known in _known if known.problem] + [fresh]
    return fresh


def random_bits(bits: int, random: Source) -> int:
    """Draw a uniform integer below 2**bits, for bits a multiple of 8."""
    return int.from_bytes(read(random, bits // 8), "big")


def truth_or_other(truth: int, count: int, threshold: int, random: Source) -> int:
    """Return `truth` with probability threshold / 2**32, else another of 0..count−1, uniformly.

    Always draws both the coin and the other value, even if it does not need them.
    """
    truthful = random_bits(32, random) < threshold
    other = uniform_below(count - 1, random)
    other += other >= truth
    return truth if truthful else other


def uniform_below(limit: int, random: Source) -> int:
    """Draw a uniform integer in 0..limit−1, limit ≤ 2**32, by rejection."""
    ceiling = (1 << 32) - (1 << 32) % limit
    while True:
        draw = random_bits(32, random)
        if draw < ceiling:
            return draw % limit
