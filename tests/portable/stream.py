"""The deterministic byte streams of the test vectors."""

import hashlib

IN_WORDS = (
    "A stream is the bytes `head` (hexadecimal), then the SHA-256 digests of seed + counter, one after the "
    "other: the seed as UTF-8 text, the counter as 8 bytes, big-endian, from 0. `bytes`: how many were read."
)


class Stream:
    """A source of bytes that are fixed by head and seed; `taken` counts those read."""

    def __init__(self, head: bytes, seed: str) -> None:
        self._rest = head
        self._seed = seed.encode()
        self._counter = 0
        self.taken = 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes."""
        while len(self._rest) < size:
            self._rest += hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        self.taken += size
        return taken
