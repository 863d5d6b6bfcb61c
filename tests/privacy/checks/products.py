"""Sampled products of any record, inside its bounds too: the law of the products named and of their signs.

A report is a block's place, drawn whatever the answers are, and signs of its products. Each sign, and each
product of some of them, is positive with probability ½(1 + gain · m), m the product of the record's entries:
this is the whole law of the signs. At the corners it is a choice's law (Signs).
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ldp_client.audit.answers import Stream, levels_of
from ldp_client.audit.findings import Check
from ldp_client.core.quantise import UNIT
from tests.privacy.checks.surprise import count_score

# Thousands of scores are compared; a sound mechanism's is above it with probability 1e-12 or so.
LIMIT = 7.5
SEEDS = 200
BANDS = 4
COIN_BYTES = 4


def product_checks(
    mechanism: Any, records: Sequence[Sequence[int]], payloads: Sequence[bytes]
) -> Iterator[Check]:
    """Reports of quantised records, one of each, however they were drawn: against the law, and each other."""
    if max([abs(entry) for record in records for entry in record]) > UNIT:
        yield Check("signs follow their law", False, "a record has an entry beyond its bounds")
        return
    numbers = [divmod(int.from_bytes(payload, "big"), mechanism.patterns) for payload in payloads]
    counts = Counter([place for place, _ in numbers])
    n, total = len(numbers), mechanism.total
    worst = max([count_score(counts[place], n, w / total) for place, w in enumerate(mechanism.weights)])
    yield _scored("every product comes as often as belongs", worst, f"{n} reports, {len(counts)} products")
    by_signs = [
        [sign_told(mechanism, record, number, some) for record, number in zip(records, numbers)]
        for some in range(1, mechanism.patterns)
    ]
    worst = max([_agreement(group) for told in by_signs for group in _groups(mechanism, records, told)])
    detail = f"{n} reports, by product, by where the record lies and by level"
    yield _scored("signs follow their law", worst, detail)
    again = sum([(weight / total) ** 2 for weight in mechanism.weights])
    worst = max([_together(pairs, again) for told in by_signs for pairs in _neighbours(told)])
    yield _scored("reports are independent", worst, f"{n} reports, each and the two behind it")


def _scored(name: str, worst: float, detail: str) -> Check:
    return Check(name, worst < LIMIT, f"{detail}; worst {worst:.1f} standard errors")


def sign_told(
    mechanism: Any, record: Sequence[int], number: tuple[int, int], some: int
) -> tuple[int, bool, float]:
    """The block's place, whether some of its signs, multiplied, are the record's own, and how often they are.

    some: which of the signs, as bits. A mean of 0 counts as plus.
    """
    (place, pattern), mean, positive = number, 1.0, True
    for slot, product in enumerate(reversed(mechanism.blocks[place])):
        if some >> slot & 1:
            i, j = mechanism.coordinates[product]
            mean *= record[i] * record[j] / (UNIT * UNIT)
            positive = positive == bool(pattern >> slot & 1)
    return place, positive == (mean >= 0), (1 + float(mechanism.gain) * abs(mean)) / 2


def _groups(mechanism: Any, records: Any, told: Any) -> Iterator[list[tuple[bool, float]]]:
    """Signs by their product, by where each entry of the record lies, at its bounds or between, and by level.

    By level those apart whose product is −1 or 1: no rounding hides what their coin did.
    """
    groups: dict[Any, list[tuple[bool, float]]] = defaultdict(list)
    same = all([record == records[0] for record in records])
    spans, most = [] if same else level_spans(mechanism), (1 + float(mechanism.gain)) / 2
    for record, (place, own, share) in zip(records, told):
        groups[place].append((own, share))
        for index, entry in enumerate([] if same else record):
            groups[index, _band(entry)].append((own, share))
        for start, end in spans:
            groups[start, share == most, tuple(record[start:end])].append((own, share))
    yield [(own, share) for _, own, share in told]
    yield from groups.values()


def level_spans(mechanism: Any) -> list[tuple[int, int]]:
    """Where the entries of each field with levels begin and end in a quantised record."""
    fields = [*mechanism.features, mechanism.response]
    owners = mechanism.owners
    leveled = [place for place, field in enumerate(fields, 1) if levels_of(field) > 1]
    return [(owners.index(place), owners.index(place) + owners.count(place)) for place in leveled]


def _band(entry: int) -> int:
    """Either bound by itself; what is between in BANDS parts."""
    if abs(entry) == UNIT:
        return BANDS if entry > 0 else -1
    return (entry + UNIT) * BANDS // (2 * UNIT)


def _agreement(group: list[tuple[bool, float]]) -> float:
    """Of independent signs with probabilities of their own: their number is no wilder than a binomial."""
    mean = sum([share for _, share in group]) / len(group)
    return count_score(sum([own for own, _ in group]), len(group), mean)


def _neighbours(told: Any) -> Iterator[list[Any]]:
    """Pairs of reports, one or two apart, no report in two pairs of one list."""
    for lag in (1, 2):
        pairs = list(zip(told, told[lag:]))
        for half in (0, 1):
            yield [pair for place, pair in enumerate(pairs) if place // lag % 2 == half]


def _together(pairs: list[Any], again: float) -> float:
    """How often two reports name one product, and are both right, or both wrong, about their signs."""
    same = count_score(sum([one[0] == other[0] for one, other in pairs]), len(pairs), again)
    alike = [(one[1] == other[1], one[2] * other[2] + (1 - one[2]) * (1 - other[2])) for one, other in pairs]
    return max(same, _agreement(alike))


def step_check(mechanism: Any, records: Sequence[Any]) -> Check:
    """On the same random bytes: one product for all records, and a sign that steps once as it grows.

    Of half of the streams the coin is the last that tells the truth, or the first that does not.
    """
    wrong = 0
    for seed in range(SEEDS):
        honest = None if seed % 2 else seed % 4 == 0
        head = b"" if honest is None else coined(mechanism, records[0], seed, honest)
        told = [_replayed(mechanism, record, Stream(seed, head)) for record in records]
        places = {(place, taken) for place, taken, _ in told}
        slots = [sorted([signs[slot] for _, _, signs in told]) for slot in range(mechanism.signs)]
        wrong += len(places) > 1 or any([_torn(signs) for signs in slots]) or _lies(told, honest)
    return Check(
        "a record decides nothing but on which side of a step its product is",
        not wrong,
        f"{wrong} of {SEEDS} streams, {len(records)} records each",
    )


def _torn(signs: list[tuple[int, int]]) -> bool:
    """Whether the sign of one product steps more than once as its value grows, or a value has both."""
    steps = sum([one[1] != other[1] for one, other in itertools.pairwise(signs)])
    return steps > 1 or len(dict(signs)) != len(set(signs))


def _lies(told: Any, honest: bool | None) -> bool:
    """Whether signs that no rounding changes are not all their own, or, by the other coin, all their own."""
    whole = UNIT * UNIT
    sure = [signs for _, _, signs in told if all([abs(value) == whole for value, _ in signs])]
    own = {all([sign == (value > 0) for value, sign in signs]) for signs in sure}
    return honest is not None and (not honest) in own


def _replayed(mechanism: Any, record: Any, stream: Stream) -> tuple[int, int, list[tuple[int, int]]]:
    """The block's place, the bytes taken, and of each of its products the value and the sign that is told."""
    quantised = mechanism.quantise(record)
    payload = mechanism.randomise(quantised, stream)
    place, pattern = divmod(int.from_bytes(payload, "big"), mechanism.patterns)
    pairs = [mechanism.coordinates[product] for product in reversed(mechanism.blocks[place])]
    told = [(quantised[i] * quantised[j], pattern >> slot & 1) for slot, (i, j) in enumerate(pairs)]
    return place, stream.taken, told


def coined(mechanism: Any, record: Any, seed: int, honest: bool) -> bytes:
    """What a report takes of a stream, but with the last coin that tells the truth, or the first other."""
    stream = Stream(seed)
    mechanism.perturb(record, stream)
    coin: int = mechanism.threshold - honest
    taken = Stream(seed)(stream.taken)
    # Of several signs it is drawn behind the coin which others are told.
    end = len(taken) - COIN_BYTES * (mechanism.signs > 1)
    return taken[: end - COIN_BYTES] + coin.to_bytes(COIN_BYTES, "big") + taken[end:]


def rows_check(mechanism: Any, records: Sequence[Any], perturb: Callable[..., list[bytes]]) -> Check:
    """Many at once on the bytes that each takes by itself: all blocks, then roundings, then coins, then lies.

    Of one product there is but one lie.
    """
    # What a report takes where it draws nothing again.
    coin = 4 + 8 * mechanism.signs
    ends = [4, coin, coin + COIN_BYTES, coin + 2 * COIN_BYTES][: 3 + (mechanism.signs > 1)]
    parts = list(zip([0, *ends], ends))
    heads = [coined(mechanism, record, seed, bool(seed % 2)) for seed, record in enumerate(records)]
    kept = [place for place, head in enumerate(heads) if len(head) == ends[-1]]
    expected = [mechanism.perturb(records[place], Stream(0, heads[place])) for place in kept]
    columns = b"".join([heads[place][start:end] for start, end in parts for place in kept])
    found = perturb([records[place] for place in kept], Stream(0, columns))
    wrong = sum([one != other for one, other in zip(expected, found)])
    return Check("same payloads as one by one on the same bytes", not wrong, f"{wrong} of {len(kept)} differ")
