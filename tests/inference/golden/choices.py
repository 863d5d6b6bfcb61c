"""Golden fits of choices: a report is a set of choices, likelier for each choice within."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from tests import studies
from tests.inference.golden.case import Case, Collected, Question, approximated, collected, fitted, stated
from tests.inference.golden.reference import Points, Target, Values

PEOPLE, MANY = 2_000, 40_000
# Mechanisms whose reports the sampler fits.
SAMPLED = ("randomized_response", "oue")
LABELS = studies.CHOICE["choices"]
SHARES = (0.15, 0.6, 0.25)
CONCENTRATION = np.array([1.0, 2.0, 3.0])
BETA = stated("beta", a=2, b=3)
DIRICHLET = stated("dirichlet", concentration=["1", "2", "3"])


def _word(payload: bytes) -> int:
    return int.from_bytes(payload, "big")


def _of_hash(payload: bytes, choices: int, epsilon: float) -> Values:
    """a, b and c of a hash, 4 bytes each, and the hash with noise."""
    a, b, c, told = (_word(part) for part in (payload[:4], payload[4:8], payload[8:12], payload[12:]))
    hashes = int(np.exp(epsilon) + 0.5) + 1
    return np.array([((a * x * x + b * x + c) % (2**31 - 1)) % hashes == told for x in range(choices)])


def _of_hadamard(payload: bytes, choices: int, epsilon: float) -> Values:
    """A block and a column: of choices in that block those whose row has even parity with the column."""
    blocks = max(1, 2 ** int(np.ceil(epsilon / np.log(2)) - 1))
    width = next(2**power for power in range(1, 30) if (2**power - 1) * blocks >= choices)
    block, column = divmod(_word(payload), width)
    rows = [divmod(x, width - 1) for x in range(choices)]
    return np.array([own == block and (row + 1 & column).bit_count() % 2 == 0 for own, row in rows])


def _bits(payload: bytes, choices: int, epsilon: float) -> Values:
    del epsilon
    return np.array([int.from_bytes(payload, "little") >> x & 1 == 1 for x in range(choices)])


def _single(payload: bytes, choices: int, epsilon: float) -> Values:
    del epsilon
    return np.asarray(np.arange(choices) == _word(payload), np.float64)


# What each mechanism's payload supports, as docs/payloads.md has it.
SETS: Mapping[str, Callable[[bytes, int, float], Values]] = {
    "randomized_response": _single,
    "oue": _bits,
    "sue": _bits,
    "subset_selection": _bits,
    "olh": _of_hash,
    "hadamard": _of_hadamard,
}


def chances_of(payloads: list[bytes], mechanism: Question, choices: int, scale: float) -> Values:
    """(distinct sets, choices + 1): P(set | answer) but for a factor, and how many reports."""
    name = mechanism.get("of", mechanism["name"])
    epsilon = float(mechanism.get("instantaneous_epsilon", mechanism["epsilon"]))
    sets = Counter(tuple(SETS[name](one, choices, epsilon)) for one in payloads)
    inside, odds = np.array(list(sets), float), np.exp(epsilon / scale)
    # But for a factor that depends on the odds alone, these are all mechanisms' chances.
    weights = 1 + (odds - 1) * inside
    if name in ("oue", "sue"):
        one = 1 / (1 + odds) if name == "oue" else 1 / (1 + np.sqrt(odds))
        size = inside.sum(1, keepdims=True)
        own = np.where(inside == 1, 0.5 / one, 0.5 / (1 - one)) if name == "oue" else (1 - one) / one
        own = own if name == "oue" else np.where(inside == 1, own, 1 / own)
        weights = one**size * (1 - one) ** (choices - size) * own
    return np.column_stack([weights, list(sets.values())])


def log_likelihood(table: Values, shares: Values) -> Values:
    """Of shares (points, choices)."""
    return np.asarray(table[:, -1] @ np.log(table[:, :-1] @ shares.T))


def _target_of_shares(question: Question) -> Callable[[Collected, float], Target]:
    def target(data: Collected, scale: float) -> Target:
        table = chances_of(data.payloads(question["id"]), question["mechanism"], 3, scale)

        def log_density(points: Points) -> Values:
            prior = np.log(points["p"]) @ (CONCENTRATION - 1)
            return np.asarray(log_likelihood(table, points["p"]) + prior)

        return Target({"p": "simplex 3"}, log_density, _named)

    return target


def _named(points: Points) -> Points:
    return {f"p[{label}]": points["p"][:, place] for place, label in enumerate(LABELS)}


def _target_of_share(question: Question) -> Callable[[Collected, float], Target]:
    def target(data: Collected, scale: float) -> Target:
        table = chances_of(data.payloads(question["id"]), question["mechanism"], 2, scale)

        def log_density(points: Points) -> Values:
            shares = np.column_stack([1 - points["p"], points["p"]])
            return np.asarray(log_likelihood(table, shares) + stats.beta(2, 3).logpdf(points["p"]))

        return Target({"p": "share"}, log_density)

    return target


def _target_with_refusals(data: Collected, scale: float) -> Target:
    """One more choice, that of refusing; p is of those who answer."""
    table = chances_of(data.payloads("ever"), REFUSABLE["mechanism"], 3, scale)

    def log_density(points: Points) -> Values:
        p, refused = points["p"], points["refused"]
        shares = np.column_stack([(1 - refused) * (1 - p), (1 - refused) * p, refused])
        prior = stats.beta(2, 3).logpdf(p) + stats.beta(1, 4).logpdf(refused)
        return np.asarray(log_likelihood(table, shares) + prior)

    return Target({"p": "share", "refused": "share"}, log_density)


def _target_of_scale(data: Collected, scale: float) -> Target:
    table = chances_of(data.payloads("tired"), SCALE["mechanism"], 3, scale)

    def log_density(points: Points) -> Values:
        return np.asarray(log_likelihood(table, points["p"]) + np.log(points["p"]) @ (CONCENTRATION - 1))

    def quantities(points: Points) -> Points:
        p, levels = points["p"], SCALE["choices"]
        below = np.cumsum(p, axis=1)
        found = {f"p[{level}]": p[:, place] for place, level in enumerate(levels)}
        found |= {f"at_most[{level}]": below[:, place] for place, level in enumerate(levels[:-1])}
        return {**found, "mean_place": p @ np.array([1.0, 2.0, 3.0])}

    return Target({"p": "simplex 3"}, log_density, quantities)


def _target_of_concentration(data: Collected, scale: float) -> Target:
    """The Dirichlet's concentration has a law of its own."""
    table = chances_of(data.payloads("occupation"), LEARNT["mechanism"], 3, scale)

    def log_density(points: Points) -> Values:
        logs, own = np.log(points["p"]), points["concentration"]
        prior = stats.lognorm(0.5, scale=1.0).logpdf(own)
        prior += special.gammaln(3 * own) - 3 * special.gammaln(own) + (own - 1) * logs.sum(axis=1)
        return np.asarray(log_likelihood(table, points["p"]) + prior)

    def quantities(points: Points) -> Points:
        return {**_named(points), "concentration": points["concentration"]}

    return Target({"p": "simplex 3", "concentration": "positive"}, log_density, quantities)


def _multinomial(mechanism: Question) -> dict[str, Any]:
    model = {"name": "multinomial", "prior": {"p": DIRICHLET}}
    return {**studies.CHOICE, "mechanism": dict(mechanism), "model": model}


BERNOULLI = {**studies.YES_NO, "model": {"name": "bernoulli", "prior": {"p": BETA}}}
KEPT_BIT = {**BERNOULLI, "mechanism": studies.KEPT}
REFUSABLE = {
    **BERNOULLI,
    "refusal": True,
    "model": {"name": "bernoulli", "prior": {"p": BETA, "refused": stated("beta", a=1, b=4)}},
}
SCALE = {
    **_multinomial({"name": "randomized_response", "epsilon": "1"}),
    "id": "tired",
    "ordered": True,
    "choices": ["never", "seldom", "often"],
}
LEARNT = {
    **_multinomial({"name": "randomized_response", "epsilon": "1"}),
    "model": {
        "name": "multinomial",
        "prior": {"p": stated("dirichlet", concentration=stated("log_normal", loc=0, scale=0.5))},
    },
}


def _yes(people: int) -> list[bool]:
    return [bool(one) for one in np.random.default_rng(1).random(people) < 0.3]


def _labels(labels: list[str], people: int) -> list[str]:
    return [str(one) for one in np.random.default_rng(2).choice(labels, people, p=SHARES)]


def _case(question: Question, people: int, target: Callable[[Collected, float], Target]) -> Case:
    def data() -> Collected:
        answers: list[Any] = _yes(people)
        if question["ask"] == "choice":
            answers = _labels(question["choices"], people)
        if question.get("refusal"):
            refuses = np.random.default_rng(3).random(people) < 0.2
            answers = [None if away else one for one, away in zip(answers, refuses, strict=True)]
        name = f"{question['mechanism']['name']} of {question['id']}"
        return collected(name, question, answers)

    is_sampled = people == PEOPLE and question["mechanism"]["name"] in SAMPLED
    return Case(data, fitted if is_sampled else approximated, target, decisive=people == MANY)


OF_ONE = ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard")
MULTINOMIALS = {f"multinomial, {name}": _multinomial({"name": name, "epsilon": "1"}) for name in OF_ONE} | {
    "multinomial, memoized": _multinomial({**studies.KEPT, "of": "sue"})
}

CASES: dict[str, Case] = {
    "bernoulli, randomized_response": _case(BERNOULLI, PEOPLE, _target_of_share(BERNOULLI)),
    "bernoulli, memoized": _case(KEPT_BIT, PEOPLE, _target_of_share(KEPT_BIT)),
    "bernoulli with refusals": _case(REFUSABLE, PEOPLE, _target_with_refusals),
    **{name: _case(one, PEOPLE, _target_of_shares(one)) for name, one in MULTINOMIALS.items()},
    "scale, randomized_response": _case(SCALE, PEOPLE, _target_of_scale),
    "multinomial of unknown concentration": _case(LEARNT, PEOPLE, _target_of_concentration),
    "many, bernoulli with refusals": _case(REFUSABLE, MANY, _target_with_refusals),
    "many, multinomial, hadamard": _case(
        MULTINOMIALS["multinomial, hadamard"],
        MANY,
        _target_of_shares(MULTINOMIALS["multinomial, hadamard"]),
    ),
}
