"""One stream of random bytes on several answers, in several orders, on used and on fresh objects.

And all choices of a question, not only those that are compared in detail.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from ldp_client.audit.answers import Stream
from ldp_client.audit.findings import Check
from ldp_client.audit.views import Pair
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import ReportError
from tests.privacy.checks.surprise import count_score

SEEDS = 300


def replay_checks(pair: Pair) -> Iterator[Check]:
    """Same bytes twice, same number of bytes for both answers, and only the answer's own trace differs."""
    runs = [(_run(pair, pair.one, seed), _run(pair, pair.other, seed)) for seed in range(SEEDS)]
    again = [_run(pair, pair.one, seed)[0] for seed in range(SEEDS)]
    same = all([first == one[0] for first, (one, _) in zip(again, runs)])
    yield Check("repeats on the same random bytes", same, f"{SEEDS} streams, each run twice")
    taken = [(one[1], other[1]) for one, other in runs]
    differing = sum([one != other for one, other in taken])
    least, most = min([one for one, _ in taken]), max([one for one, _ in taken])
    yield Check(
        "takes as many random bytes for either answer",
        differing == 0 and least > 0,
        f"{least} to {most} bytes; {differing} of {SEEDS} streams differ",
    )
    yield _possible(pair, [payload for run in runs for payload, _ in run])
    payloads = [(one[0], other[0]) for one, other in runs]
    if pair.numeric:
        yield _constant_shift(pair, payloads)
    elif pair.unary:
        yield _untouched_bits(pair, payloads)


def _run(pair: Pair, answer: object, seed: int) -> tuple[bytes, int]:
    stream = Stream(seed)
    return pair.mechanism.perturb(answer, stream), stream.taken


def _possible(pair: Pair, payloads: list[bytes]) -> Check:
    """The mechanism's own check takes every payload, and all have one size."""
    refused = 0
    for payload in payloads:
        try:
            pair.mechanism.check(payload)
        except ReportError:
            refused += 1
    sizes = sorted({len(payload) for payload in payloads})
    good = refused == 0 and sizes == [pair.mechanism.payload_size]
    return Check("payloads have one size and pass their check", good, f"sizes {sizes}, {refused} refused")


def _constant_shift(pair: Pair, payloads: list[tuple[bytes, bytes]]) -> Check:
    """Numbers: the noise is the same, so the integers differ by one and the same shift."""
    words = pair.mechanism.words
    shifts = {tuple([a - b for a, b in zip(words(one), words(other))]) for one, other in payloads}
    return Check(
        "outputs differ by exactly the answers' shift", len(shifts) == 1, f"{len(shifts)} different shifts"
    )


def _untouched_bits(pair: Pair, payloads: list[tuple[bytes, bytes]]) -> Check:
    """Unary encodings: only the bits of the two answers differ."""
    own = [pair.mechanism.quantise(answer) for answer in (pair.one, pair.other)]
    allowed = 1 << own[0] | 1 << own[1]
    touched = 0
    for one, other in payloads:
        changed = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
        touched += bool(changed & ~allowed)
    return Check(
        "only the two answers' bits differ", touched == 0, f"{touched} of {SEEDS} streams touch others"
    )


ORDER = 400
FRESH = 60
WARM_UP = 2000
QUANTISED = 200


def order_checks(mechanism: Any, answers: list[Any]) -> Iterator[Check]:
    """A report depends on its answer and its random bytes: not on what was answered before, or how often.

    One object gives many reports in turn; fresh ones, and one with another order, must give the same.
    """
    fresh = [deepcopy(mechanism) for _ in range(2)]
    order = list(range(ORDER if mechanism.payload_size < LARGE else FRESH))
    asked = [answers[(7 * place + place // len(answers)) % len(answers)] for place in order]

    def reports(one: Any, places: list[int]) -> dict[int, bytes]:
        return {place: one.perturb(asked[place], Stream(place)) for place in places}

    expected = reports(fresh[0], order)
    backwards = reports(fresh[1], order[::-1])
    alone = {place: deepcopy(mechanism).perturb(asked[place], Stream(place)) for place in order[:FRESH]}
    if mechanism.payload_size < LARGE:
        for place in range(WARM_UP):
            fresh[0].perturb(asked[place % len(asked)])
    later = reports(fresh[0], order)
    usual = [_integers(mechanism, answer) for answer in answers]
    moved = sum([_integers(mechanism, answers[at]) != usual[at] for at in [*range(len(answers))] * QUANTISED])
    differing = [place for place in order if not expected[place] == backwards[place] == later[place]]
    differing += [place for place in alone if alone[place] != expected[place]]
    yield Check(
        "reports do not depend on those before",
        not differing,
        f"{len(order)} reports in two orders, {len(alone)} by fresh objects; {len(differing)} differ",
    )
    yield Check(
        "an answer is quantised to the same integers each time",
        not moved,
        f"{moved} of {QUANTISED * len(answers)} times others",
    )


def _integers(mechanism: Any, answer: Any) -> Any:
    """A quantised answer, a table's by its parts, to be compared with another."""
    quantised = mechanism.quantise(answer)
    return getattr(quantised, "__dict__", quantised)


LARGE = 1000
MOST_CHOICES = 3000
SUSPECTS = 20


def every_choice_checks(
    mechanism: Any, answers: Sequence[Any], reports: int, coin: Callable[[int], int | None]
) -> Iterator[Check]:
    """All choices, or so many at even distances: bytes read, and how often each is supported by its report.

    Of many choices those that look worst are asked once more, with reports of their own; of a few each is
    asked so often at once. coin: the exact coin of a choice, None if it is not found.
    """
    count = len(answers)
    places = list(range(count)) if count <= MOST_CHOICES else list(range(0, count, count // MOST_CHOICES))
    few = places if mechanism.payload_size < LARGE // 4 else places[:: 1 + len(places) // 200]
    taken = {_taken(mechanism, answers[place], seed) for place in few for seed in (1,)}
    yield Check(
        "takes as many random bytes for every choice", len(taken) == 1, f"{len(few)} of {count} choices"
    )
    each = max(30, reports // len(places))
    if mechanism.payload_size > LARGE // 4:
        each, places = 60, few
    if len(places) > SUSPECTS:
        scores = sorted([(-_surprise(mechanism, answers, place, each), place) for place in places])
        suspects, again = [place for _, place in scores[:SUSPECTS]], 20 * each
    else:
        suspects, again, each = places, 4 * each, 4 * each
    worst = max([_surprise(mechanism, answers, place, again) for place in suspects])
    yield Check(
        "every choice has its stated law",
        worst < SURPRISE_LIMIT,
        f"{len(places)} of {count} choices, {each} reports each; worst {worst:.1f} standard errors",
    )
    usual = coin(0)
    wrong = [place for place in few[:: 1 + len(few) // COINS] if coin(place) not in (None, usual)]
    yield Check("every choice has the same coin", not wrong, f"{len(wrong)} of {min(len(few), COINS)} differ")


COINS = 64
SURPRISE_LIMIT = 6.5


def _taken(mechanism: Any, answer: Any, seed: int) -> int:
    stream = Stream(seed)
    mechanism.perturb(answer, stream)
    return stream.taken


def _surprise(mechanism: Any, answers: Sequence[Any], place: int, reports: int) -> float:
    """How far the counts of support of a choice and the next are from p and q, in standard errors.

    The choice is quantised once: whether that gives the same each time shows on one stream of random bytes.
    """
    own, other = mechanism.quantise(answers[place]), mechanism.quantise(answers[(place + 1) % len(answers)])
    payloads = [mechanism.randomise(own, urandom) for _ in range(reports)]
    worst = 0.0
    for index, share in ((index, float(mechanism.support_probability(own, index))) for index in (own, other)):
        seen = sum([mechanism.supported(payload, index) for payload in payloads])
        worst = max(worst, count_score(seen, reports, share))
    return worst
