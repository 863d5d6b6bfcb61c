"""One stream of random bytes on two answers: what may differ, and what must not."""

from ldp_client.audit.findings import Check
from ldp_client.audit.streams import Stream
from schemas.errors import ReportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_client.audit.views import Pair

SEEDS = 300


def replay_checks(pair: "Pair") -> "Iterator[Check]":
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


def _run(pair: "Pair", answer: object, seed: int) -> "tuple[bytes, int]":
    stream = Stream(seed)
    return pair.mechanism.perturb(answer, stream), stream.taken


def _possible(pair: "Pair", payloads: "list[bytes]") -> Check:
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


def _constant_shift(pair: "Pair", payloads: "list[tuple[bytes, bytes]]") -> Check:
    """Numbers: the noise is the same, so the integers differ by one and the same shift."""
    words = pair.mechanism.words
    shifts = {tuple([a - b for a, b in zip(words(one), words(other))]) for one, other in payloads}
    return Check(
        "outputs differ by exactly the answers' shift", len(shifts) == 1, f"{len(shifts)} different shifts"
    )


def _untouched_bits(pair: "Pair", payloads: "list[tuple[bytes, bytes]]") -> Check:
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
