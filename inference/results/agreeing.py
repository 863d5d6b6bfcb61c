"""Whether two entries of one question in posterior.json agree, but for what random numbers decide.

Each key that an entry has is compared: one that nothing here knows must be the same to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from typing import Any

from ldp_client.words.text import visible

# In standard errors of a difference, of which a sound repetition has one beyond once in 10⁶ comparisons.
FAR = 5.0
# {number: (standard error over sd / √(effective draws), which draws)}: of a mean as it is, of the others what
# it is for an exponential law at most, whose tail is longer than most.
ERRORS = {
    "mean": (1.0, "ess_bulk"),
    "sd": (1.5, "ess_bulk"),
    "q50": (1.6, "ess_bulk"),
    "q05": (4.4, "ess_tail"),
    "q95": (4.4, "ess_tail"),
}
TAIL = ERRORS["q05"][0]
# What measures draws, or compares them with others, is as large in two fits within a factor of this.
FACTOR, MEASURES = 2.0, ("ess_bulk", "ess_tail", "sd_over_prior_sd")
# R-hat beyond 1 too, but for this.
LITTLE = 0.05
# Of a peak's sd, and of other numbers that no random number decides: what platforms make of them.
ROUNDED = 1e-2
# Of a normal law's sd, the width from its 5 % to its 95 % quantile.
WIDTH = 3.29
_NUMBER = re.compile(r"[−-]?\d[\d,.]*(e[+-]?\d+)?")
# Of an entry, what is compared as sentences.
SENTENCES = ("reasons", "notes")
Entry = Mapping[str, Any]


def differences(before: Any, again: Entry) -> list[str]:
    """What cannot be chance between two entries of one question."""
    if not isinstance(before, dict) or not isinstance(before.get("parameters"), dict):
        return ["its entry cannot be read"]
    lines = []
    for key in _keys(before, again):
        if key in SENTENCES:
            continue
        compare = _COMPARED.get(key)
        if (key in before) != (key in again) or compare is None:
            lines += _exactly(key, before.get(key), again.get(key))
        else:
            lines += compare(before[key], again[key], again)
    return lines


def other_sentences(before: Any, again: Entry) -> list[str]:
    """Sentences that only one of two entries has, whatever numbers they have."""
    was = before if isinstance(before, dict) else {}
    return [line for told in zip(_told(was), _told(again), strict=True) for line in _other_words(*told)]


def _told(entry: Entry) -> list[list[str]]:
    """Its reasons, its notes, those of the verdict's parts, and what quantities and sets are in words."""
    members = [_strings(entry.get(key)) for key in SENTENCES]
    parts = _members(entry.get("verdict")).values()
    members.append([line for part in parts for line in _strings(_members(part).get("reasons"))])
    sets = _members(entry.get("contamination"))
    worded = [*_members(entry.get("quantities")).values(), *_members(sets.get("sets")).values()]
    members.append([str(_members(one).get("words")) for one in worded])
    return [*members, [str(sets.get("open", ""))]]


def _members(value: Any) -> Entry:
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _other_words(before: list[str], again: list[str]) -> list[str]:
    was, now = ({_NUMBER.sub("#", line): line for line in one} for one in (before, again))
    gone = [f"it said, and says no longer: {visible(was[one])}" for one in was if one not in now]
    return [*gone, *[f"it did not say: {visible(now[one])}" for one in now if one not in was]]


def _keys(before: Entry, again: Entry) -> list[str]:
    return list(dict.fromkeys([*again, *before]))


def _exactly(key: str, before: Any, again: Any) -> list[str]:
    same = before == again
    return [] if same else [f"{visible(key)} was {_short(before)} and is {_short(again)}"]


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))[:80]


def _states(entry: Any) -> str:
    parts = _members(entry).items()
    return ", ".join(
        f"{name} {part.get('state') if isinstance(part, dict) else part}" for name, part in parts
    )


def _verdict(before: Any, again: Any, _entry: Entry) -> list[str]:
    was, now = _states(before), _states(again)
    return [] if was == now else [f"the verdict was {was} and is {now}"]


def _named(
    what: str, before: Any, again: Entry, compare: Callable[[str, Entry, Entry], Iterator[str]]
) -> list[str]:
    """What differs between members of the same names."""
    if not isinstance(before, dict) or set(before) != set(again):
        return [f"it has other {what}"]
    lines = []
    for name, now in again.items():
        if not isinstance(before[name], dict):
            return [f"its {what} cannot be read"]
        far = list(compare(name, before[name], now))
        lines += [f"{visible(name)}: {', '.join(far)}"] if far else []
    return lines


def _said(key: str, before: Entry, again: Entry) -> str:
    return f"{visible(key)} was {_short(before.get(key))} and is {_short(again.get(key))}"


def _parameters(before: Any, again: Entry, _entry: Entry) -> list[str]:
    def compare(_name: str, was: Entry, now: Entry) -> Iterator[str]:
        far = far_keys(was, now)
        for key in _keys(was, now):
            if key in far or (key not in ERRORS and not _alike(key, was.get(key), now.get(key))):
                yield _said(key, was, now)

    return _named("parameters", before, again, compare)


def _alike(key: str, was: Any, now: Any) -> bool:
    """Whether what measures draws is alike; other keys are the same."""
    if not (_is_number(was) and _is_number(now)):
        return bool(was == now)
    if key == "r_hat":
        return bool(max(was, now) - 1 <= FACTOR * max(min(was, now) - 1, 0.0) + LITTLE)
    if key in MEASURES:
        return bool(0 <= max(was, now) <= FACTOR * min(was, now))
    return bool(was == now)


def _draws(before: Any, again: Any, entry: Entry) -> list[str]:
    """NUTS keeps as many as it was told to, a Gaussian approximation those that chance leaves it."""
    chance = entry.get("method") != "nuts" and _is_number(before)
    near = chance and 0 < max(before, again) <= FACTOR * min(before, again)
    return [] if near else _exactly("draws", before, again)


def _quantities(before: Any, again: Entry, entry: Entry) -> list[str]:
    """By the fewest effective draws that a parameter has: quantities follow from all of them."""
    sizes = {size: _fewest(entry, size) for size in ("ess_bulk", "ess_tail")}

    def compare(_name: str, was: Entry, now: Entry) -> Iterator[str]:
        far = far_keys(was, {**now, **sizes})
        for key in _keys(was, now):
            if key in ("words", "direction", "probability_of_direction"):
                continue
            if key in far or (key not in ERRORS and was.get(key) != now.get(key)):
                yield _said(key, was, now)
        if not _above_alike(was, now, sizes["ess_bulk"]):
            yield _said("direction", was, now)
            yield _said("probability_of_direction", was, now)

    return _named("quantities", before, again, compare)


def _fewest(entry: Entry, size: str) -> float:
    """The fewest effective draws of any parameter that moves."""
    known = [_members(row).get(size) for row in _members(entry.get("parameters")).values()]
    return min((float(one) for one in known if one is not None and _is_number(one)), default=0.0)


def _above_alike(was: Entry, now: Entry, size: float) -> bool:
    """Whether the share of draws above zero is the same but for chance, where it is told."""
    one, other = _above(was), _above(now)
    if one is None or other is None:
        return one is other and "direction" not in was
    return _near(one, other, sqrt(2 * max(other * (1 - other), 1 / max(size, 1)) / max(size, 1)))


def _above(entry: Entry) -> float | None:
    """The probability that a difference is above zero."""
    sure, direction = entry.get("probability_of_direction"), entry.get("direction")
    if sure is None or not _is_number(sure) or direction not in ("above 0", "below 0"):
        return None
    return float(sure) if direction == "above 0" else 1 - float(sure)


def _contamination(before: Any, again: Entry, entry: Entry) -> list[str]:
    """Ends of sets as the quantiles of what they are about; the sentence about each has its numbers."""
    rows = {**_members(entry.get("quantities")), **_members(entry.get("parameters"))}
    size = _fewest(entry, "ess_tail")

    def compare(name: str, was: Entry, now: Entry) -> Iterator[str]:
        sd = max(
            float(_members(rows.get(name)).get("sd") or 0.0), (float(now["high"]) - float(now["low"])) / WIDTH
        )
        error = sqrt(2) * TAIL * sd / sqrt(size) if size else 0.0
        for key in ("low", "high"):
            number = was.get(key)
            quoted = _is_number(number) and f"{number:.3g}".replace("-", "−") in str(was.get("words"))
            if not quoted or not _near(number, now[key], error):
                yield _said(key, was, now)
        yield from (_said(key, was, now) for key in set(was) ^ set(now))

    lines = _named("sets of false reports", _members(before).get("sets"), again["sets"], compare)
    others = [key for key in _keys(_members(before), again) if key not in ("sets", "open")]
    return [*lines, *[line for key in others for line in _exactly(key, before.get(key), again.get(key))]]


def _peak(before: Any, again: Entry, _entry: Entry) -> list[str]:
    """A peak is found without random numbers."""

    def compare(_name: str, was: Entry, now: Entry) -> Iterator[str]:
        sd = now.get("sd")
        error = ROUNDED * abs(sd) / FAR if sd is not None and _is_number(sd) else 0.0
        for key in _keys(was, now):
            if not _near(was.get(key), now.get(key), error):
                yield _said(key, was, now)

    lines = _named("parameters at a peak", _members(before).get("parameters"), again["parameters"], compare)
    for key in _keys(_members(before), again):
        if key != "parameters" and not _near(_members(before).get(key), again.get(key), ROUNDED / FAR):
            lines.append(f"a peak's {_said(key, _members(before), again)}")
    return lines


def _law(before: Any, again: Entry, entry: Entry) -> list[str]:
    """Quantiles of a density, at each place, and of the shares at the bounds."""
    size = _fewest(entry, "ess_tail")
    lines = [] if _members(before).get("edges") == again["edges"] else ["its law has other edges"]
    for key in _keys(_members(before), again):
        if key != "edges" and not _bands_alike(_members(before).get(key), again.get(key), size):
            lines.append(f"its law has another {visible(key)}")
    return lines


def _bands_alike(was: Any, now: Any, size: float) -> bool:
    """Whether {quantile: numbers} are the same but for chance."""
    if not isinstance(was, dict) or not isinstance(now, dict) or set(was) != set(now) or len(now) < 2:
        return bool(was == now)
    if any(not isinstance(was[one], list) or len(was[one]) != len(now[one]) for one in now):
        return False
    places = list(zip(*now.values(), strict=True))
    errors = [sqrt(2 / max(size, 1)) * TAIL * (max(place) - min(place)) / WIDTH for place in places]
    return all(
        _near(one, other, error)
        for name in now
        for one, other, error in zip(was[name], now[name], errors, strict=True)
    )


_COMPARED: Mapping[str, Callable[[Any, Any, Entry], list[str]]] = {
    "verdict": _verdict,
    "draws": _draws,
    "parameters": _parameters,
    "quantities": _quantities,
    "contamination": _contamination,
    "mode": _peak,
    "maximum_likelihood": _peak,
    "law": _law,
}


def far_keys(was: Entry, row: Entry) -> list[str]:
    """The numbers of a parameter that two fits with their own random numbers would not give so far apart.

    By the errors of what was drawn here: what a file says of its own may be anything.
    """
    return [key for key in ERRORS if not _near(was.get(key), row[key], sqrt(2) * _error(row, key))]


def _error(row: Entry, key: str) -> float:
    """The Monte Carlo standard error of a parameter's mean, sd or quantile; 0 where none can be told."""
    factor, size = ERRORS[key]
    sd, effective = row.get("sd"), row.get(size)
    if not isinstance(sd, int | float) or not isinstance(effective, int | float) or effective <= 0:
        return 0.0
    return float(factor * sd / sqrt(effective))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _near(one: Any, other: Any, error: float) -> bool:
    if not _is_number(one) or not _is_number(other):
        return bool(one == other)
    return bool(one == other or abs(one - other) <= FAR * error)
