"""Sampled products of any record, inside its bounds too: the law of the product named and of its sign.

A report is a product's place, drawn whatever the answers are, and a sign that is positive with probability
½(1 + gain · m), m the product of the record's two entries. At the corners this is a choice's law (Signs).
"""

from collections import Counter, defaultdict

from ldp_client.audit.answers import Stream
from ldp_client.audit.findings import Check
from ldp_client.audit.surprise import count_score
from ldp_client.core.quantise import UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# Thousands of scores are compared; a sound mechanism's is above it with probability 1e-12 or so.
LIMIT = 7.5
SEEDS = 200
BANDS = 4


def product_checks(
    mechanism: "Any", records: "Sequence[Sequence[int]]", payloads: "Sequence[bytes]"
) -> "Iterator[Check]":
    """Reports of quantised records, one of each, however they were drawn: against the law, and each other."""
    if max([abs(entry) for record in records for entry in record]) > UNIT:
        yield Check("signs follow their law", False, "a record has an entry beyond its bounds")
        return
    told = [_told(mechanism, record, payload) for record, payload in zip(records, payloads)]
    counts = Counter([place for place, _, _ in told])
    n, total = len(told), mechanism.total
    worst = max([count_score(counts[place], n, w / total) for place, w in enumerate(mechanism.weights)])
    yield _scored("every product comes as often as belongs", worst, f"{n} reports, {len(counts)} products")
    worst = max([_agreement(group) for group in _groups(records, told)])
    yield _scored("signs follow their law", worst, f"{n} reports, by product and by where the record lies")
    again = sum([(weight / total) ** 2 for weight in mechanism.weights])
    worst = max([_together(pairs, again) for pairs in _neighbours(told)])
    yield _scored("reports are independent", worst, f"{n} reports, each and the two behind it")


def _scored(name: str, worst: float, detail: str) -> Check:
    return Check(name, worst < LIMIT, f"{detail}; worst {worst:.1f} standard errors")


def _told(mechanism: "Any", record: "Sequence[int]", payload: bytes) -> "tuple[int, bool, float]":
    """The product's place, whether the sign is the record's own (plus, if that is 0), and how often it is."""
    place, sign = divmod(int.from_bytes(payload, "big"), 2)
    i, j = mechanism.coordinates[place]
    mean = record[i] * record[j] / (UNIT * UNIT)
    return place, sign == (mean >= 0), (1 + float(mechanism.gain) * abs(mean)) / 2


def _groups(records: "Any", told: "Any") -> "Iterator[list[tuple[bool, float]]]":
    """Signs by their product, and by where each entry of the record lies, at its bounds or between."""
    groups: "dict[Any, list[tuple[bool, float]]]" = defaultdict(list)
    same = all([record == records[0] for record in records])
    for record, (place, own, share) in zip(records, told):
        groups[place].append((own, share))
        for index, entry in enumerate([] if same else record):
            groups[index, _band(entry)].append((own, share))
    yield [(own, share) for _, own, share in told]
    yield from groups.values()


def _band(entry: int) -> int:
    """Either bound by itself; what is between in BANDS parts."""
    if abs(entry) == UNIT:
        return BANDS if entry > 0 else -1
    return (entry + UNIT) * BANDS // (2 * UNIT)


def _agreement(group: "list[tuple[bool, float]]") -> float:
    """Of independent signs with probabilities of their own: their number is no wilder than a binomial."""
    mean = sum([share for _, share in group]) / len(group)
    return count_score(sum([own for own, _ in group]), len(group), mean)


def _neighbours(told: "Any") -> "Iterator[list[Any]]":
    """Pairs of reports, one or two apart, no report in two pairs of one list."""
    for lag in (1, 2):
        pairs = list(zip(told, told[lag:]))
        for half in (0, 1):
            yield [pair for place, pair in enumerate(pairs) if place // lag % 2 == half]


def _together(pairs: "list[Any]", again: float) -> float:
    """How often two reports name one product, and are both right, or both wrong, about their signs."""
    same = count_score(sum([one[0] == other[0] for one, other in pairs]), len(pairs), again)
    alike = [(one[1] == other[1], one[2] * other[2] + (1 - one[2]) * (1 - other[2])) for one, other in pairs]
    return max(same, _agreement(alike))


def step_check(mechanism: "Any", records: "Sequence[Any]") -> Check:
    """On the same random bytes: one product for all records, and a sign that steps once as it grows."""
    wrong = 0
    for seed in range(SEEDS):
        told = [_replayed(mechanism, record, seed) for record in records]
        places = {(place, taken) for place, taken, _, _ in told}
        signs = [sign for _, _, _, sign in sorted(told)]
        steps = sum([one != other for one, other in zip(signs, signs[1:])])
        values = dict([(value, sign) for _, _, value, sign in told])
        torn = any([values[value] != sign for _, _, value, sign in told])
        wrong += len(places) > 1 or steps > 1 or torn
    return Check(
        "a record decides nothing but on which side of a step its product is",
        not wrong,
        f"{wrong} of {SEEDS} streams, {len(records)} records each",
    )


def _replayed(mechanism: "Any", record: "Any", seed: int) -> "tuple[int, int, int, int]":
    stream = Stream(seed)
    quantised = mechanism.quantise(record)
    place, sign = divmod(int.from_bytes(mechanism.randomise(quantised, stream), "big"), 2)
    i, j = mechanism.coordinates[place]
    return place, stream.taken, quantised[i] * quantised[j], sign
