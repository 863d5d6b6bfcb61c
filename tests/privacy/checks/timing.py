"""Whether the time of a report tells its answer or its noise. Process CPU time, so other load hardly counts.

All answers are measured in turns, in random order. Two groups of times differ when a rank test (Mann &
Whitney 1947) finds one to be more than TOLERANCE slower than the other, at the given false-alarm rate, in
each of ATTEMPTS rounds. What is tolerated covers CPython itself: 1 % between a 0 and a 1, 5 % for None.
"""

from collections.abc import Callable, Iterator
from math import sqrt
from random import shuffle
from statistics import NormalDist, median
from time import process_time_ns
from typing import Any

from ldp_client.audit.findings import Check
from ldp_client.audit.views import Pair
from ldp_client.mechanisms import Mechanism

Clock = Callable[[], int]
Timed = list[tuple[int, bytes]]


TOLERANCE = 0.1
ATTEMPTS = 3
RUNS = 1500


def time_checks(
    pair: Pair,
    answers: dict[str, Any],
    false_alarm: float,
    clock: Clock = process_time_ns,
    runs: int = RUNS,
) -> Iterator[Check]:
    """Time against the answer, and against the noise of one answer."""
    rate = false_alarm / (2 * len(answers))
    yield _retried(
        "time does not depend on the answer", lambda: _against_answer(pair, answers, rate, clock, runs)
    )
    yield _retried("time does not depend on the noise", lambda: _against_noise(pair, rate, clock, runs))


def _retried(name: str, attempt: Callable[[], tuple[bool, str]]) -> Check:
    for _ in range(ATTEMPTS):
        differs, detail = attempt()
        if not differs:
            break
    return Check(name, not differs, detail or "all reports of the answer were alike", made=bool(detail))


def _against_answer(
    pair: Pair, answers: dict[str, Any], rate: float, clock: Clock, runs: int
) -> tuple[bool, str]:
    timed = measure(pair.mechanism, answers, clock, runs)
    times = {name: [taken for taken, _ in timed[name]] for name in timed}
    slowest = max(times, key=lambda name: median(times[name]))
    fastest = min(times, key=lambda name: median(times[name]))
    differs = any([slower(times[slowest], times[name], rate) for name in times])
    return differs, f"{_compared(times[slowest], times[fastest])} ({slowest}, {fastest})"


def _against_noise(pair: Pair, rate: float, clock: Clock, runs: int) -> tuple[bool, str]:
    """Reports with the most noise against those with the least; of choices, truthful against others."""
    timed = measure(pair.mechanism, {"one": pair.one}, clock, 4 * runs)["one"]
    least, most = _by_noise(pair, timed)
    if not least or not most:
        return False, ""
    differs = slower(least, most, rate) or slower(most, least, rate)
    return differs, _compared(most, least)


def _by_noise(pair: Pair, timed: Timed) -> tuple[list[int], list[int]]:
    """Times of the reports with little noise, and with much."""
    if not pair.numeric:
        own = pair.mechanism.quantise(pair.one)
        mechanism: Any = pair.mechanism
        truthful = [mechanism.supported(payload, own) for _, payload in timed]
        return (
            [taken for (taken, _), true in zip(timed, truthful) if true],
            [taken for (taken, _), true in zip(timed, truthful) if not true],
        )
    words = [pair.mechanism.words(payload) for _, payload in timed]
    middles = [median(column) for column in zip(*words)]
    sizes = [sum([abs(word - middle) for word, middle in zip(row, middles)]) for row in words]
    ranked = [timed[place][0] for place in sorted(range(len(timed)), key=sizes.__getitem__)]
    quarter = len(ranked) // 4
    return ranked[:quarter], ranked[-quarter:]


def measure(mechanism: Mechanism, answers: dict[str, Any], clock: Clock, runs: int) -> dict[str, Timed]:
    """`runs` times and payloads of each answer."""
    timed: dict[str, Timed] = {name: [] for name in answers}
    order = list(answers)
    for _ in range(runs):
        shuffle(order)
        for name in order:
            answer = answers[name]
            start = clock()
            payload = mechanism.perturb(answer)
            timed[name].append((clock() - start, payload))
    return timed


def slower(times: list[int], others: list[int], false_alarm: float, tolerance: float = TOLERANCE) -> bool:
    """Whether `times` are more than `tolerance` above `others`: one-sided rank test with average ranks."""
    values = [(float(taken), 1) for taken in times] + [(taken * (1 + tolerance), 0) for taken in others]
    n, m = len(times), len(others)
    excess = _rank_sum(sorted(values)) - n * (n + m + 1) / 2
    limit = NormalDist().inv_cdf(1 - false_alarm)
    return excess > limit * sqrt(n * m * (n + m + 1) / 12)


def _rank_sum(ordered: list[tuple[float, int]]) -> float:
    """The ranks of the values marked 1; equal values share their mean rank."""
    total, start = 0.0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        total += (start + end + 1) / 2 * sum([mark for _, mark in ordered[start:end]])
        start = end
    return total


def _compared(one: list[int], other: list[int]) -> str:
    return f"median {median(one):,.0f} and {median(other):,.0f} ns"
