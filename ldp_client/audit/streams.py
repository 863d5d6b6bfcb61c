"""Repeatable random bytes, to run one mechanism twice on the same randomness."""

import hashlib

from ldp_client.core.randomness import NotForRealAnswers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.mechanisms import Mechanism


class Stream(NotForRealAnswers):
    """A source of bytes fixed by its seed (SHAKE-256 in blocks); `taken` counts the bytes read."""

    BLOCK = 512

    def __init__(self, seed: int) -> None:
        super().__init__(self)
        self.seed = seed
        self.taken = 0
        self._rest = b""
        self._blocks = 0

    def __call__(self, size: int) -> bytes:
        while len(self._rest) < size:
            name = f"{self.seed}/{self._blocks}".encode()
            self._rest += hashlib.shake_256(name).digest(self.BLOCK)
            self._blocks += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        self.taken += size
        return taken


def words_of(mechanism: "Mechanism", answer: "Any", source: Stream) -> "list[int]":
    """The integers of one payload."""
    return mechanism.words(mechanism.perturb(answer, source))
