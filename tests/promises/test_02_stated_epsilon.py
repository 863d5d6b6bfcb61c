"""The stated ε is never below the true one, in choices, numbers, records and consent texts.

The true ε comes from what the code sends: exact odds of enumerated payloads, and the greatest distance of
payloads without noise. test_study.py adds up a study's ε, and test_policy.py charges the larger of the two.
"""

import re
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import combinations, product

import mpmath
import pytest

from ldp_client import describe
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.words import text
from ldpkit.dossier import dossier_of
from schemas import Study
from tests import studies
from tests.kit.collectors import Harness
from tests.ldp_client.exact_laws import (
    CHOICES,
    RECORDS,
    coin,
    law_of,
    laws_of,
    products_law,
    uniform,
    worst_ratio,
)

pytestmark = pytest.mark.usefixtures("few_hashes")
UNIT = 1 << 20
KINDS = {
    **{name: {**studies.CHOICE, "choices": {"count": 3}, "mechanism": {"name": name}} for name in CHOICES},
    "yes or no": studies.YES_NO,
    "memoized response": studies.MEMOIZED,
    "memoized bits": studies.MEMOIZED_BITS,
    "laplace": studies.NUMBER,
    "gaussian": studies.NORMAL,
    "number that may be refused": {**studies.NUMBER, "refusal": {"share": "0.3"}},
    "statistics": studies.LINEAR,
    "statistics of a yes or no": studies.LOGISTIC,
    "record": studies.RECORD,
    "record with a yes or no": studies.YES_NO_RECORD,
    "products": studies.PRODUCTS,
}
# Records shrunk into a ball of another norm, or whose response has another share.
for norm, share in (("0.01", "0.25"), ("0.3", "0.9"), ("1.4", "0.01")):
    KINDS[f"statistics, norm {norm}"] = {**studies.LINEAR, "norm": norm}
    KINDS[f"statistics of a yes or no, norm {norm}"] = {**studies.LOGISTIC, "norm": norm}
    stated = {**studies.NOISY_RECORD, "response_share": share}
    KINDS[f"record, norm {norm}"] = {**studies.RECORD, "norm": norm, "mechanism": stated}


def log_of(ratio):
    return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


def gaussian_epsilon(distance, delta):
    """The ε of normal noise of sd 1 and that distance at δ (Balle and Wang 2018, theorem 8), by bisection."""
    low, high = mpmath.mpf(0), mpmath.mpf(40)
    for _ in range(80):
        middle = (low + high) / 2
        unlikely = mpmath.ncdf(-distance / 2 - middle / distance)
        exact = mpmath.ncdf(distance / 2 - middle / distance) - mpmath.exp(middle) * unlikely
        low, high = (middle, high) if exact > mpmath.mpf(delta) else (low, middle)
    return low


def extreme_answers(asked):
    """The answers that lie furthest from one another: at, beyond and between bounds, in all combinations."""
    if asked["ask"] == "number":
        return [-1e300, 1e300, *map(float, asked["bounds"]), *([None] if "refusal" in asked else [])]
    fields = [*asked["features"], asked["response"]]
    bounds = [tuple(map(float, field["bounds"])) if "bounds" in field else () for field in fields]
    values = [
        (low_high[0], low_high[1], sum(low_high) / 2) if low_high else ("no", "yes") for low_high in bounds
    ]
    return [dict(zip([field["id"] for field in fields], each)) for each in product(*values)]


def distance_of(m, answers):
    """The greatest distance of two payloads without noise, in the noise's scale. Zeros give no noise."""
    words = [m.words(m.perturb(answer, NotForRealAnswers(bytes))) for answer in answers]
    squares = [sum((a - b) ** 2 for a, b in zip(one, other)) for one, other in combinations(words, 2)]
    return mpmath.sqrt(max(squares)) / UNIT


def coin_of(m, first, second):
    """The log odds of the byte behind the noise, whatever stands before it."""
    reads = [[(bytes(12 * (m.payload_size // 4)), Fraction(1))], coin(m.threshold), uniform(1)]
    laws = []
    for answer in (first, second):
        drawn = law_of(m, m.quantise(answer), reads)
        laws.append({payload[-1:]: chance for payload, chance in drawn.items()})
    return log_of(worst_ratio(laws))


def true_epsilon(asked, m):
    """What the payloads of a mechanism really tell."""
    if m.name == "memoized":
        return log_of(worst_ratio(laws_of(m.first)))
    if m.name == "sampled_products":
        return log_of(worst_ratio([products_law(m, m.quantise(record)) for record in RECORDS]))
    if asked["ask"] in ("choice", "yes_no"):
        return log_of(worst_ratio(laws_of(m)))
    answers, delta = extreme_answers(asked), asked["mechanism"].get("delta")
    if "refusal" in asked:
        low, high = map(float, asked["bounds"])
        half = max(distance_of(m, [None, bound]) for bound in (low, high))
        return max(distance_of(m, [low, high]), half + coin_of(m, None, (low + high) / 2))
    if delta is None:
        return distance_of(m, answers)
    epsilon = gaussian_epsilon(distance_of(m, answers), delta)
    if m.name == "gaussian_record" and asked["response"].get("ask") == "yes_no":
        yes = next(answer for answer in answers if answer["affair"] == "yes")
        epsilon += coin_of(m, yes, {**yes, "affair": "no"})
    return epsilon


def at(name, epsilon):
    asked = studies.with_epsilon(dict(KINDS[name]), epsilon)
    if name.startswith("memoized"):
        asked["mechanism"]["instantaneous_epsilon"] = "0.05"
    return asked


def check_epsilon(name, epsilon):
    """Neither the mechanism nor the document that asks for it states less than the payloads tell."""
    asked = at(name, epsilon)
    m = studies.mechanism_of(asked)
    with mpmath.workprec(200):
        stated = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
        assert true_epsilon(asked, m) <= min(stated, mpmath.mpf(epsilon))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("name", KINDS)
def test_the_stated_epsilon_of_a_mechanism_holds(name, epsilon):
    check_epsilon(name, epsilon)


@pytest.mark.parametrize(("name", "module"), [("gaussian", "number"), ("record", "gaussian_record")])
def test_a_planted_grid_for_more_than_its_epsilon_is_found(name, module, monkeypatch):
    home = import_module(f"ldp_client.mechanisms.{module}")
    radius = home.gaussian_radius
    monkeypatch.setattr(home, "gaussian_radius", lambda *given: radius(*given) * 1000 // 999)
    with pytest.raises(AssertionError):
        check_epsilon(name, "1")


ASKED = [at(name, "1.2345678") for name in ("yes or no", "laplace", "record", "products")]
STUDY = Study(studies.document(*ASKED))


@cache
def truths():
    """The true ε of each question of the study, from mechanisms that no test has touched."""
    with mpmath.workprec(200):
        return [true_epsilon(asked, studies.mechanism_of(asked)) for asked in ASKED]


def check_texts(folder):
    """No number of the consent text, the ethics board's dossier and the web page is below the true one."""
    said = "\n".join(describe(STUDY))
    rows = [row.split(" | ") for row in dossier_of(STUDY).partition("| ε |")[2].splitlines()[2:6]]
    harness = Harness(f"sqlite:///{folder / 'collector.sqlite3'}")
    assert harness.publish(STUDY).status_code == 201
    page = harness.client.get("/s/survey").text
    epsilons = [re.findall(r"true epsilon ([\d.]+)", said), [row[1] for row in rows]]
    odds = [re.findall(r"at most ([\d.]+) times", words)[-4:] for words in (said, page)]
    odds.append([row[3] for row in rows])
    for stated in epsilons:
        assert all(mpmath.mpf(number) >= true for number, true in zip(stated, truths(), strict=True))
    for stated in odds:
        assert all(
            mpmath.mpf(number) >= mpmath.exp(true) for number, true in zip(stated, truths(), strict=True)
        )


def test_the_epsilon_of_texts_holds(tmp_path):
    check_texts(tmp_path)


@pytest.mark.parametrize("home", ["ldp_client.explain", "ldpkit.dossier"])
def test_a_planted_text_that_states_0999_of_epsilon_is_found(home, tmp_path, monkeypatch):
    rounded_up = text.rounded_up
    monkeypatch.setattr(f"{home}.rounded_up", lambda value, *digits: rounded_up(0.999 * value, *digits))
    with pytest.raises(AssertionError):
        check_texts(tmp_path)
