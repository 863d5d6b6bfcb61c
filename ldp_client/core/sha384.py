"""SHA-384 (FIPS 180-4), also on boards whose hashlib has only SHA-256."""

import hashlib

SIZE = 48
_BLOCK = 128
_MASK = (1 << 64) - 1
_START = (
    0xCBBB9D5DC1059ED8,
    0x629A292A367CD507,
    0x9159015A3070DD17,
    0x152FECD8F70E5939,
    0x67332667FFC00B31,
    0x8EB44A8768581511,
    0xDB0C2E0D64F98FA7,
    0x47B5481DBEFA4FA4,
)


def sha384(content: bytes) -> bytes:
    """Return the digest, 48 bytes."""
    of_platform = getattr(hashlib, "sha384", None)
    return own_sha384(content) if of_platform is None else of_platform(content).digest()


def own_sha384(content: bytes) -> bytes:
    """Return the digest, 48 bytes, computed in plain integers."""
    constants = _constants()
    padding = b"\x80" + bytes(-(len(content) + 17) % _BLOCK) + (8 * len(content)).to_bytes(16, "big")
    padded = content + padding
    state = list(_START)
    for start in range(0, len(padded), _BLOCK):
        mixed = _mixed(state, padded[start : start + _BLOCK], constants)
        state = [(one + other) & _MASK for one, other in zip(state, mixed)]
    return b"".join([word.to_bytes(8, "big") for word in state])[:SIZE]


def _mixed(state: "list[int]", block: bytes, constants: "list[int]") -> "list[int]":
    words = [int.from_bytes(block[at : at + 8], "big") for at in range(0, _BLOCK, 8)]
    for at in range(16, 80):
        early, late = words[at - 15], words[at - 2]
        early = _turned(early, 1) ^ _turned(early, 8) ^ (early >> 7)
        late = _turned(late, 19) ^ _turned(late, 61) ^ (late >> 6)
        words.append((words[at - 16] + early + words[at - 7] + late) & _MASK)
    a, b, c, d, e, f, g, h = state
    for word, constant in zip(words, constants):
        choice = (e & f) ^ (~e & _MASK & g)
        first = h + (_turned(e, 14) ^ _turned(e, 18) ^ _turned(e, 41)) + choice + constant + word
        majority = (a & b) ^ (a & c) ^ (b & c)
        second = (_turned(a, 28) ^ _turned(a, 34) ^ _turned(a, 39)) + majority
        a, b, c, d, e, f, g, h = (first + second) & _MASK, a, b, c, (d + first) & _MASK, e, f, g
    return [a, b, c, d, e, f, g, h]


def _turned(word: int, places: int) -> int:
    return ((word >> places) | (word << (64 - places))) & _MASK


def _constants() -> "list[int]":
    """Return the first 64 fractional bits of the cube roots of the first 80 primes."""
    found: "list[int]" = []
    primes: "list[int]" = []
    number = 2
    while len(primes) < 80:
        if all([number % prime for prime in primes]):
            primes.append(number)
            found.append(_cube_root(number << 192) & _MASK)
        number += 1
    return found


def _cube_root(number: int) -> int:
    """Return the cube root, rounded down, by Newton's steps from above."""
    root = 1 << 68
    while True:
        lower = (2 * root + number // (root * root)) // 3
        if lower >= root:
            return root
        root = lower
