"""A port of the device's choices as docs/payloads.md describes them, for conformance/run.py."""

import hashlib
import json
import sys
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 200
WORD = 1 << 32
PRIME = (1 << 31) - 1


class RefusedError(Exception):
    """The answer is none of the question's choices."""


class Recorded:
    def __init__(self, text):
        self.bytes, self.taken = bytes.fromhex(text), 0

    def read(self, size):
        self.taken += size
        return self.bytes[self.taken - size : self.taken]

    def word(self):
        return int.from_bytes(self.read(4), "big")

    def below(self, limit):
        while True:
            word = self.word()
            if word < WORD - WORD % limit:
                return word % limit


def exp(epsilon):
    return Fraction(Decimal(epsilon).exp())


def width(limit):
    return max(1, ((limit - 1).bit_length() + 7) // 8)


def truth_or_other(truth, count, threshold, random):
    truthful = random.word() < threshold
    other = random.below(count - 1)
    return truth if truthful else other + (other >= truth)


def truth_threshold(epsilon, count):
    return int(WORD * exp(epsilon) / (exp(epsilon) + count - 1))


def randomized_response(place, count, epsilon, random):
    reported = truth_or_other(place, count, truth_threshold(epsilon, count), random)
    return reported.to_bytes(width(count), "big")


def noisy_bits(threshold, size, random):
    below = 0
    for digit in range(32):
        fresh = int.from_bytes(random.read(size), "little")
        below = below | fresh if threshold >> digit & 1 else below & fresh
    return below


def rare(epsilon):
    return -int(-WORD / (1 + exp(epsilon)) // 1)


def oue(place, count, epsilon, random):
    size = (count + 7) // 8
    bits = noisy_bits(rare(epsilon), size, random) & (1 << count) - 1
    own = int.from_bytes(random.read(size), "little") & 1 << place
    return (bits & ~(1 << place) | own).to_bytes(size, "little")


def sue(place, count, epsilon, random):
    size = (count + 7) // 8
    bits = noisy_bits(rare(Decimal(epsilon) / 2), size, random) & (1 << count) - 1
    return (bits ^ 1 << place).to_bytes(size, "little")


def olh(place, _count, epsilon, random):
    hashes = min(max(2, int(exp(epsilon) + Fraction(1, 2)) + 1), 1 << 16)
    seed = []
    while len(seed) < 3:
        word = random.word() >> 1
        seed += [word] if word < PRIME else []
    a, b, c = seed
    hashed = (a * place * place + b * place + c) % PRIME % hashes
    value = truth_or_other(hashed, hashes, truth_threshold(epsilon, hashes), random)
    return b"".join(word.to_bytes(4, "big") for word in seed) + value.to_bytes(width(hashes), "big")


def subset_selection(place, count, epsilon, random):
    size = max(1, int(count / (1 + exp(epsilon)) + Fraction(1, 2)))
    often = size * exp(epsilon)
    truthful = random.word() < int(WORD * often / (often + count - size))
    words = [int.from_bytes(random.read(4), "little") for _ in range(size)]
    listed = list(range(count - 1))
    for start, word in enumerate(words):
        left = count - 1 - start
        chosen = start + (word % left if word < WORD - WORD % left else random.below(left))
        listed[start], listed[chosen] = listed[chosen], listed[start]
    named = [one + (one >= place) for one in listed[:size]]
    if truthful:
        named[0] = place
    return sum(1 << one for one in named).to_bytes((count + 7) // 8, "little")


def hadamard(place, count, epsilon, random):
    blocks = 1
    while 2 * blocks < exp(epsilon) and blocks < count:
        blocks *= 2
    columns = 2
    while (columns - 1) * blocks < count:
        columns *= 2
    block, row = place // (columns - 1), place % (columns - 1) + 1
    half = truth_or_other(2 * block, 2 * blocks, truth_threshold(epsilon, 2 * blocks), random)
    column = random.word() % columns
    if (bin(column & row).count("1") + half) % 2:
        column ^= row & -row
    return (half // 2 * columns + column).to_bytes(width(blocks * columns), "big")


MECHANISMS = {
    "randomized_response": randomized_response,
    "oue": oue,
    "sue": sue,
    "olh": olh,
    "subset_selection": subset_selection,
    "hadamard": hadamard,
}


def number_of(count, answer):
    if isinstance(answer, str) and len(answer) <= 7 and answer.isascii() and answer.isdigit():
        answer = int(answer)
    if type(answer) is not int or not 0 <= answer < count:
        raise RefusedError
    return answer


def place_of(question, answer):
    if question["ask"] == "yes_no":
        if answer is True or answer is False:
            return int(answer), 2
        choices = ["no", "yes"]
    else:
        choices = question["choices"]
    if isinstance(choices, dict):
        return number_of(choices["count"], answer), choices["count"]
    if not isinstance(answer, str) or answer not in choices:
        raise RefusedError
    return choices.index(answer), len(choices)


def draw(case):
    question, random = case["question"], Recorded(case["random"])
    mechanism = MECHANISMS.get(question["mechanism"]["name"])
    if mechanism is None:
        return {"unsupported": True}
    try:
        place, count = place_of(question, case["answer"])
    except RefusedError:
        return {"refused": question["id"], "bytes": 0}
    payload = mechanism(place, count, question["mechanism"]["epsilon"], random)
    return {"payload": payload.hex(), "bytes": random.taken}


def answer(case):
    if case["kind"] == "draw":
        return draw(case)
    if case["kind"] == "id":
        secret = b"ldpkit.report-id/1\0" + bytes.fromhex(case["secret"])
        return {"id": hashlib.sha256(secret).hexdigest()[:32]}
    canonical = json.dumps(
        json.loads(case["text"]), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return {"digest": hashlib.sha256(canonical.encode()).hexdigest()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))))
