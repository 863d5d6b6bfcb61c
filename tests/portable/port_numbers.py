"""Numbers, records and sums as docs/payloads.md describes them: for port_from_page.py."""

import hashlib
import struct
from fractions import Fraction
from math import isqrt

from port_noise import UNIT, RefusedError, clipped, exp, hidden_radius, noise, number, place, signed

WORD = 1 << 32
PARTS = 2520


def signs_threshold(epsilon, count):
    return int(WORD * exp(epsilon) / (exp(epsilon) + count - 1))


def stated(question):
    mechanism = question["mechanism"]
    return Fraction(mechanism["epsilon"]), Fraction(mechanism.get("delta", "0"))


def levels(name, epsilon, delta):
    return int(epsilon * UNIT) if name == "laplace" else hidden_radius(epsilon, delta, 1)


def number_payload(question, answer, random):
    """`laplace` and `gaussian`, also of who prefers not to say."""
    name, (epsilon, delta) = question["mechanism"]["name"], stated(question)
    law, most, refusal = {"laplace": "laplace", "gaussian": "normal"}[name], 0, question.get("refusal")
    most = levels(name, epsilon, delta)
    if not refusal:
        spot = place(answer, question["bounds"], most, question["id"])
        return signed([spot + noise(law, 1, random)[0]])
    share = Fraction(refusal["share"])
    most = min(most, 2 * levels(name, epsilon - epsilon * share, delta))
    spot = most // 2 if answer is None else place(answer, question["bounds"], most, question["id"])
    noisy = signed([spot + noise(law, 1, random)[0]])
    told = random.truth_or_other(int(answer is None), 2, signs_threshold(epsilon * share, 2))
    return noisy + bytes([told])


def fields_of(question):
    return [*question["features"], question["response"]]


def bounded(field):
    return "bounds" in field and not field.get("cuts")


def entry(field, value, unit, path):
    """One field in −unit…unit; of levels the place."""
    if bounded(field):
        return place(value, field["bounds"], 2 * unit, path) - unit
    if field.get("cuts"):
        return sum(number(value, path) >= float(cut) for cut in field["cuts"])
    if field.get("choices"):
        if value not in field["choices"]:
            raise RefusedError(path)
        return field["choices"].index(value)
    if not isinstance(value, (str, bool)) or value not in ("no", "yes", False, True):
        raise RefusedError(path)
    return unit if value in ("yes", True) else -unit


def read_record(question, answer, unit, weight):
    """The features' entries, and the response's."""
    name, fields = question["id"], fields_of(question)
    if not isinstance(answer, dict):
        raise RefusedError(name)
    for field in fields:
        if field["id"] not in answer:
            raise RefusedError(f"{name}.{field['id']}")
    if len(answer) != len(fields):
        raise RefusedError(name)
    units = [unit] * (len(fields) - 1) + [weight]
    found = [entry(f, answer[f["id"]], one, f"{name}.{f['id']}") for f, one in zip(fields, units)]
    return found[:-1], found[-1]


def record_payload(question, answer, random):
    """`gaussian_record`."""
    (epsilon, delta), norm = stated(question), Fraction(question["norm"])
    share, count = Fraction(question["mechanism"]["response_share"]), len(question["features"])
    if "bounds" in question["response"]:
        square = hidden_radius(epsilon, delta, count + 1) ** 2
        of_response = int(square * share)
        radius, weight = isqrt(square - of_response) // 2, isqrt(of_response) // 2
        features, response = read_record(question, answer, int(radius / norm), weight)
        vector = [*clipped(features, radius), response]
        return signed([one + more for one, more in zip(vector, noise("normal", count + 1, random))])
    radius = hidden_radius(epsilon - epsilon * share, delta, count) // 2
    features, response = read_record(question, answer, int(radius / norm), 1)
    noisy = [a + b for a, b in zip(clipped(features, radius), noise("normal", count, random))]
    told = random.truth_or_other(int(response > 0), 2, signs_threshold(epsilon * share, 2))
    return signed(noisy) + bytes([told])


def moments(question, answer, random, hidden):
    """The noisy products of `gaussian_statistics`; `hidden` says which distance the noise hides."""
    radius = int(Fraction(question["norm"]) * UNIT)
    weight = isqrt(radius * radius // 2)
    last = len(question["features"]) + 1
    pairs = [(i, j) for i in range(last + 1) for j in range(i, last + 1) if j]
    if "bounds" not in question["response"]:
        pairs.remove((last, last))
    room = hidden(len(pairs)) - isqrt(len(pairs) - 1) - 1
    square = radius * radius + 2 * weight * weight
    diagonal = (room << 60) // (isqrt(2 * square * square) + 1)
    off = isqrt(2 * diagonal * diagonal)
    features, response = read_record(question, answer, UNIT, weight)
    v = [weight, *clipped(features, radius), response]
    exact = [(v[i] * v[j] * (diagonal if i == j else off) + 2**59) >> 60 for i, j in pairs]
    return [one + more for one, more in zip(exact, noise("normal", len(pairs), random))]


def statistics_payload(question, answer, random):
    """`gaussian_statistics`."""
    return signed(moments(question, answer, random, lambda size: hidden_radius(*stated(question), size)))


def codes(field):
    """The entries of each level."""
    if field.get("cuts"):
        cuts = len(field["cuts"])
        return [[1 if cut < level else -1 for cut in range(cuts)] for level in range(cuts + 1)]
    count = 2
    while count < len(field["choices"]):
        count *= 2
    parity = [[bin(level & c).count("1") % 2 for c in range(1, count)] for level in range(count)]
    return [[1 - 2 * odd for odd in row] for row in parity]


def owners_of(question):
    """Each entry's field."""
    features, owners = question["features"], [0]
    for spot, field in enumerate(features, 1):
        leveled = field.get("cuts") or field.get("choices")
        owners += [spot] * (len(codes(field)[0]) if leveled else 1)
    return [*owners, len(features) + 1]


def products_of(question):
    """(the blocks of products that are sent together, how often each is drawn)."""
    owners = owners_of(question)
    plain = [False, *(not bounded(f) for f in question["features"]), not bounded(question["response"])]
    plain[0] = True
    pairs = []
    for i in range(len(owners)):
        for j in range(i, len(owners)):
            if owners[i] != owners[j] or (i == j and not plain[owners[i]]):
                pairs.append((i, j))
    weights = [weight_of(pair, owners, question) for pair in pairs]
    signs = question["mechanism"].get("products", 1)
    order = sorted(range(len(pairs)), key=lambda at: (weights[at], at)) if signs > 1 else range(len(pairs))
    places = [
        [order[(at + slot) % len(pairs)] for slot in range(signs)] for at in range(0, len(pairs), signs)
    ]
    return [[pairs[at] for at in block] for block in places], [sum(weights[a] for a in b) for b in places]


def weight_of(pair, owners, question):
    i, j = pair
    size = [owners.count(owner) for owner in range(max(owners) + 1)]
    share = (PARTS if max(size) > 1 else 1) // (size[owners[i]] * size[owners[j]])
    last = len(owners) - 1
    kind = "squares" if i == j else "means" if i == 0 else "response" if j == last else "features"
    return question["mechanism"].get("weights", {}).get(kind, 1) * share


def products_payload(question, answer, random):
    """`sampled_products`."""
    features, response = read_record(question, answer, UNIT, UNIT)
    u = [UNIT]
    for field, value in zip(question["features"], features):
        leveled = field.get("cuts") or field.get("choices")
        u += [UNIT * sign for sign in codes(field)[value]] if leveled else [value]
    u.append(response)
    blocks, weights = products_of(question)
    signs, total = len(blocks[0]), sum(weights)
    threshold = signs_threshold(stated(question)[0], 2**signs)
    word, *roundings, coin = struct.unpack(f">I{signs}QI", random.read(8 + 8 * signs))
    while word >= WORD - WORD % total:
        word, coin = coin, random.word()
    flips = 1 if signs == 1 else 1 + random.below(2**signs - 1)
    drawn, block = word % total, 0
    while drawn >= weights[block]:
        drawn, block = drawn - weights[block], block + 1
    told = block
    for (i, j), rounding in zip(blocks[block], roundings):
        told = 2 * told + (rounding >> 23 < UNIT * UNIT + u[i] * u[j])
    told ^= flips if coin >= threshold else 0
    size = max(1, ((len(blocks) << signs) - 1).bit_length() + 7 >> 3)
    return told.to_bytes(size, "big")


def nearest(top, bottom):
    return (2 * top + bottom) // (2 * bottom)


def one_hot(size, spot, grid):
    return [grid if at == spot else 0 for at in range(size)]


def shared(question, protocol, size):
    """The distance that the noise of all devices but the tolerated ones and one hides."""
    one = hidden_radius(*stated(question), size * protocol["devices"])
    return isqrt(one * one * (protocol["devices"] - protocol["max_faulty"] - 1))


def summed_vector(question, answer, protocol, random, place_of):
    """`summed_gaussian`: what is split, never sent."""
    if question["mechanism"].get("statistic"):
        exact = marginals(question, answer, protocol)
    elif question["ask"] == "record":
        return words(moments(question, answer, random, lambda size: shared(question, protocol, size)))
    elif question["ask"] == "number":
        exact = summed_number(question, answer, protocol)
    else:
        spot, count = place_of(question, answer)
        first = 1 if question["ask"] == "yes_no" else 0
        distance = shared(question, protocol, count - first)
        exact = one_hot(count - first, spot - first, distance if first else isqrt(distance**2 // 2))
    return words([one + more for one, more in zip(exact, noise("normal", len(exact), random))])


def summed_number(question, answer, protocol):
    cells = question["mechanism"].get("cells")
    if cells:
        spot = place(answer, question["bounds"], cells * UNIT, question["id"]) // UNIT
        return one_hot(cells, min(spot, cells - 1), isqrt(shared(question, protocol, cells) ** 2 // 2))
    grid = (shared(question, protocol, 2) - 2) // 2
    return both_moments(place(answer, question["bounds"], 2 * UNIT, question["id"]) - UNIT, grid)


def both_moments(units, grid):
    return [nearest(units * grid, UNIT), nearest(3 * units * units * grid, 2 * UNIT * UNIT)]


def marginals(question, answer, protocol):
    features, response = read_record(question, answer, UNIT, UNIT)
    size = 2 * len(features) + 2
    room = shared(question, protocol, size) - isqrt(size - 1) - 1
    grid = isqrt(room * room // (2 * size))
    return [moment for units in [*features, response] for moment in both_moments(units, grid)]


def words(values):
    return b"".join((value % 2**64).to_bytes(8, "little") for value in values)


def key_stream(expansion, seed, size):
    if expansion == "shake_256":
        return hashlib.shake_256(seed).digest(size)
    return b"".join(chacha20(seed, counter) for counter in range(-(-size // 64)))[:size]


def chacha20(key, counter):
    """A block of RFC 8439 with a nonce of zeros."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key), counter, 0, 0, 0]
    state = list(start)
    quarters = [(i, i + 4, i + 8, i + 12) for i in range(4)]
    quarters += [(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12) for i in range(4)]
    for _ in range(10):
        for a, b, c, d in quarters:
            for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[x] = (state[x] + state[y]) % WORD
                mixed = state[z] ^ state[x]
                state[z] = (mixed << turn | mixed >> 32 - turn) % WORD
    return struct.pack("<16I", *((one + two) % WORD for one, two in zip(state, start)))


def split(vector, nodes, expansion, random):
    """The pieces for the nodes: words first, then seeds."""
    left = list(struct.unpack(f"<{len(vector) // 8}Q", vector))
    seeds = [random.read(32) for _ in range(nodes - 1)]
    for seed in seeds:
        mask = struct.unpack(f"<{len(left)}Q", key_stream(expansion, seed, len(vector)))
        left = [(word - part) % 2**64 for word, part in zip(left, mask)]
    return [words(left), *seeds]
