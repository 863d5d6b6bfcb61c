"""Many payloads of one answer, seen in columns: bytes, bits, integers."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BIT_TABLES = [bytes([48 + (value >> place & 1) for value in range(256)]) for place in range(8)]


def ones(value: int) -> int:
    """The number of bits that are 1 (Python 3.9 has no int.bit_count)."""
    return bin(value).count("1")


class Batch:
    """n payloads of one size; `read` gives a payload's integers. Columns are built on demand and kept."""

    def __init__(self, payloads: "Sequence[bytes]", read: "Callable[[bytes], list[int]]") -> None:
        self.payloads = payloads
        self.read = read
        self.n = len(payloads)
        self.size = len(payloads[0])
        self._joined = b"".join(payloads)
        self._bits: "dict[int, int]" = {}
        self._words: "list[list[int]]" = []

    def byte(self, place: int) -> bytes:
        """Byte `place` of every payload."""
        return self._joined[place :: self.size]

    def bit(self, place: int) -> int:
        """Bit `place` (lowest of byte 0 first) of every payload, as one integer of n bits."""
        if place not in self._bits:
            digits = self.byte(place // 8).translate(_BIT_TABLES[place % 8])
            self._bits[place] = int(digits, 2)
        return self._bits[place]

    def mixed(self, one: int, other: int) -> bytes:
        """Byte `one` XOR byte `other` of every payload."""
        together = int.from_bytes(self.byte(one), "big") ^ int.from_bytes(self.byte(other), "big")
        return together.to_bytes(self.n, "big")

    def words(self) -> "list[list[int]]":
        """Every payload as integers."""
        if not self._words:
            self._words = [self.read(payload) for payload in self.payloads]
        return self._words

    def halves(self) -> "tuple[Batch, Batch]":
        """The first half, to find events on, and the second, to test them on."""
        middle = self.n // 2
        return Batch(self.payloads[:middle], self.read), Batch(self.payloads[middle:], self.read)
