"""A port of the device core as docs/payloads.md describes it, for conformance/run.py."""

import hashlib
import json
import sys
from fractions import Fraction

from port_noise import RefusedError, exp
from port_numbers import (
    number_payload,
    products_payload,
    record_payload,
    split,
    statistics_payload,
    summed_vector,
)

WORD = 1 << 32
PRIME = (1 << 31) - 1


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

    def truth_or_other(self, truth, count, threshold):
        truthful = self.word() < threshold
        other = self.below(count - 1)
        return truth if truthful else other + (other >= truth)


def width(limit):
    return max(1, ((limit - 1).bit_length() + 7) // 8)


def truth_threshold(epsilon, count):
    return int(WORD * exp(epsilon) / (exp(epsilon) + count - 1))


def randomized_response(place, count, epsilon, random):
    reported = random.truth_or_other(place, count, truth_threshold(epsilon, count))
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


def flipped(own, threshold, count, random):
    size = (count + 7) // 8
    return ((noisy_bits(threshold, size, random) & (1 << count) - 1) ^ own).to_bytes(size, "little")


def sue(place, count, epsilon, random):
    return flipped(1 << place, rare(Fraction(epsilon) / 2), count, random)


def olh(place, _count, epsilon, random):
    hashes = min(max(2, int(exp(epsilon) + Fraction(1, 2)) + 1), 1 << 16)
    seed = []
    while len(seed) < 3:
        word = random.word() >> 1
        seed += [word] if word < PRIME else []
    a, b, c = seed
    hashed = (a * place * place + b * place + c) % PRIME % hashes
    value = random.truth_or_other(hashed, hashes, truth_threshold(epsilon, hashes))
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
    half = random.truth_or_other(2 * block, 2 * blocks, truth_threshold(epsilon, 2 * blocks))
    column = random.word() % columns
    if (bin(column & row).count("1") + half) % 2:
        column ^= row & -row
    return (half // 2 * columns + column).to_bytes(width(blocks * columns), "big")


def memoized(question, place, count, random):
    """Both stages, with no answer kept: for the kit alone."""
    mechanism = question["mechanism"]
    kept = MECHANISMS[mechanism["of"]](place, count, mechanism["epsilon"], random)
    again = Fraction(mechanism["instantaneous_epsilon"])
    if mechanism["of"] == "sue":
        first, both = rare(Fraction(mechanism["epsilon"]) / 2), 1 + exp(again / 2)
        flip = max(0, -int(-(WORD - first * both) * WORD / (both * (WORD - 2 * first)) // 1))
        return flipped(int.from_bytes(kept, "little"), flip, count, random)
    first = truth_threshold(mechanism["epsilon"], count)
    of_first = (exp(again) + count - 1) * (first * count - WORD)
    allowed = (exp(again) - 1) * WORD * (count - 1)
    often = min(WORD, int(WORD * (of_first + (count - 1) * allowed) / (count * of_first)))
    told = random.truth_or_other(int.from_bytes(kept, "big"), count, often)
    return told.to_bytes(width(count), "big")


MECHANISMS = {
    "randomized_response": randomized_response,
    "oue": oue,
    "sue": sue,
    "olh": olh,
    "subset_selection": subset_selection,
    "hadamard": hadamard,
}
OTHERS = {
    "laplace": number_payload,
    "gaussian": number_payload,
    "gaussian_record": record_payload,
    "gaussian_statistics": statistics_payload,
    "sampled_products": products_payload,
}


def number_of(count, answer):
    if isinstance(answer, str) and len(answer) <= 7 and answer.isascii() and answer.isdigit():
        answer = int(answer)
    if type(answer) is not int or not 0 <= answer < count:
        raise RefusedError("")
    return answer


def place_of(question, answer):
    """The answer's place, and how many there are: one more where nobody has to say."""
    more = 1 if question.get("refusal") else 0
    choices = ["no", "yes"] if question["ask"] == "yes_no" else question["choices"]
    count = choices["count"] if isinstance(choices, dict) else len(choices)
    if more and answer is None:
        return count, count + 1
    if question["ask"] == "yes_no" and isinstance(answer, bool):
        return int(answer), count + more
    if isinstance(choices, dict):
        return number_of(count, answer), count + more
    if not isinstance(answer, str) or answer not in choices:
        raise RefusedError(question["id"])
    return choices.index(answer), count + more


def payload_of(case, random):
    question, name = case["question"], case["question"]["mechanism"]["name"]
    if name in OTHERS:
        return OTHERS[name](question, case["answer"], random)
    if name == "summed_gaussian":
        return summed_vector(question, case["answer"], case["protocol"], random, place_of)
    place, count = place_of(question, case["answer"])
    if name == "memoized":
        return memoized(question, place, count, random)
    return MECHANISMS[name](place, count, question["mechanism"]["epsilon"], random)


def draw(case):
    random = Recorded(case["random"])
    try:
        payload = payload_of(case, random)
    except RefusedError as refused:
        return {"refused": str(refused) or case["question"]["id"], "bytes": random.taken}
    return {"payload": payload.hex(), "bytes": random.taken}


def pieces(case):
    random = Recorded(case["random"])
    found = split(bytes.fromhex(case["vector"]), case["nodes"], case["expansion"], random)
    return {"pieces": [piece.hex() for piece in found], "bytes": random.taken}


def answer(case):
    if case["kind"] == "draw":
        return draw(case)
    if case["kind"] == "pieces":
        return pieces(case)
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
