"""What all mechanisms share: stated privacy, quantised answers, noise that knows no answer, refusals."""

import os
from collections import defaultdict
from fractions import Fraction
from importlib import import_module
from itertools import product

import mpmath
import numpy as np
import pytest

from ldp_client.core.noise_levels import gaussian_radius
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.catalogue import MECHANISMS as CATALOGUE
from ldp_client.documents.errors import AnswerError, ReportError, StudyError
from ldp_client.explain import in_words
from ldp_client.mechanisms import HOMES, MECHANISMS, olh
from ldp_client.mechanisms.base import pack_signed, unpack_signed
from ldpkit.auditing.answers import answers_for
from schemas import Rational
from tests import studies
from tests.kit.errors import raises
from tests.kit.work import instructions
from tests.ldp_client.exact_laws import CHOICES
from tests.statistics import Stream, no_noise
from tests.studies import choice_of as choice
from tests.studies import mechanism_of as mechanism


@pytest.mark.parametrize("question", [studies.NUMBER, studies.NORMAL], ids=["laplace", "gaussian"])
def test_number_beyond_its_bounds_becomes_the_bound(question):
    """The promises about noise and epsilon hold the levels between to the stated law."""
    m = mechanism(question)
    assert [m.quantise(value) for value in (-1e300, -(10**400), 1e300, 10**400)] == [0, 0, m.levels, m.levels]


def record(age, years, response, question=studies.RECORD):
    """A record from features in [−1, 1]."""
    places = {"age": 29.75 + age * 12.25, "years": 11.5 + years * 11.5}
    return {**places, question["response"]["id"]: response}


SILENT = NotForRealAnswers(bytes)
REGRESSIONS = [studies.LINEAR, studies.LOGISTIC, studies.RECORD, studies.YES_NO_RECORD]
NOISY = [studies.NUMBER, studies.NORMAL, *REGRESSIONS, *studies.TABLES]


@pytest.mark.parametrize("question", NOISY, ids=lambda question: question["id"])
def test_noise_does_not_depend_on_the_answer(question):
    """One byte stream on many inputs: the same number of bytes, outputs apart by exactly the shift."""
    share = {"count_share": "0.5"} if question["ask"] == "table" else {}
    m = mechanism(question, mechanism={**question["mechanism"], **share})
    answers = answers_for(studies.question_of(question)).values()
    silent = [m.words(m.perturb(answer, SILENT)) for answer in answers]
    for seed in range(5):
        streams = [Stream(seed) for _ in answers]
        noisy = [m.words(m.perturb(answer, stream)) for answer, stream in zip(answers, streams)]
        noise = np.subtract(noisy, silent)
        assert noise.any()
        assert (noise == noise[0]).all()
        assert len({stream.taken for stream in streams}) == 1


def statistics_of(m, record):
    return np.asarray(unpack_signed(m.randomise(m.quantise(record), SILENT)))


def test_statistics_are_the_products_of_the_record():
    m = mechanism(studies.LINEAR, norm="2")
    record = {"age": 40, "years": 5, "rate": 2}
    x = [(40 - 29.75) / 12.25, (5 - 11.5) / 11.5]
    v = np.asarray([m.scaled_weight, *x, m.scaled_weight * -0.5])
    expected = [v[i] * v[j] * (1 if i == j else np.sqrt(2)) for i, j in m.coordinates]
    assert statistics_of(m, record) / m.grid == pytest.approx(expected, abs=2 / m.grid + 1e-5)


@pytest.mark.parametrize("share", ["0.1", "0.75"])
def test_a_yes_no_response_has_its_share_of_epsilon(share):
    stated = {**studies.NOISY_RECORD, "response_share": share, "epsilon": "2"}
    m = mechanism(studies.YES_NO_RECORD, mechanism=stated)
    of_features = Rational(2) - Rational(2) * Rational.parse(share)
    assert m.distance == gaussian_radius(of_features, Rational.parse("1e-6"), 2)
    pairs = ((1, 0), (-1, 0), (1, 1), (-1, -1))
    corners = [m.quantise(record(*pair, True, studies.YES_NO_RECORD)) for pair in pairs]
    square = max(sum((a - b) ** 2 for a, b in zip(v[:2], w[:2])) for v in corners for w in corners)
    assert m.distance**2 * 0.999 < square <= m.distance**2
    with mpmath.workprec(300):
        odds = mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1])
        features = mpmath.mpf(of_features.numerator) / of_features.denominator
        total = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
        assert 0 <= total - (features + odds) < 1e-29
        assert odds <= 2 * mpmath.mpf(share)
    assert m.privacy.epsilon <= Rational(2)
    assert m.p / m.q == Fraction(*m.odds)
    assert m.privacy.delta == Rational.parse("1e-6")


def test_entries_of_a_perturbed_record_are_in_scaled_units():
    m = mechanism(studies.RECORD, norm="3")
    entries = m.quantise(record(0.5, -0.25, 4))
    assert np.asarray(entries[:2]) / m.grid == pytest.approx([0.5, -0.25], abs=1 / m.grid)
    assert entries[2] / m.response_grid == pytest.approx(0.5, abs=1 / m.response_grid)


@pytest.mark.parametrize("question", [studies.LINEAR, studies.RECORD], ids=["statistics", "record"])
def test_features_beyond_the_norm_are_clipped_exactly(question):
    m = mechanism(question, norm="0.3")
    x, y, _ = m.quantise(record(1.4, -1.4, 1))[-3:]
    assert x * x + y * y <= m.radius**2
    assert (x, y) == pytest.approx([m.radius / np.sqrt(2), -m.radius / np.sqrt(2)], rel=1e-5)
    assert m.quantise(record(0, 0, 3))[-3:] == [0, 0, 0]


AGES = {"age": 20.125, "years": 1}
MARRIED = {"age": 20.125, "married": True}
UNFIT = [
    (studies.NUMBER, "core.number", ["secret", True, [1], np.bool_(True)]),
    (studies.NUMBER, "core.missing", [None, float("nan"), np.float64("nan")]),
    (studies.NUMBER, "core.infinite", [float("-inf")]),
    (studies.NUMBER, "core.times", [np.timedelta64(4, "h"), np.datetime64(4, "Y"), np.timedelta64("NaT")]),
    (studies.CHOICE, "core.one_of_choices", ["secret", 1, None, True]),
    (studies.CHOICE, "core.one_of_choices", ["", "label", "\ud800", "x" * 5000, 3, b"worker"]),
    (studies.NEWER[1], "core.whole_number", [-1, 40, "40", "-1", "03.0", "", "x", None]),
    (studies.NEWER[1], "core.whole_number", [True, 1.0, [1], "0" * 8 + "1"]),
    (studies.YES_NO, "core.one_of_choices", ["secret", 1]),
    (studies.LINEAR, "core.record", ["secret", None]),
    (studies.LINEAR, "core.missing", [{**AGES}, {**AGES, "misspelt": 3}, defaultdict(float, AGES)]),
    (studies.LINEAR, "core.number", [{**AGES, "rate": "secret"}, {**AGES, "rate": np.bool_(False)}]),
    (studies.LINEAR, "core.unasked_field", [{**AGES, "rate": 1, "more": 1}]),
    (studies.LOGISTIC, "core.yes_or_no", [{**AGES, "affair": 1}, {**AGES, "affair": "secret"}]),
    (studies.RECORD, "core.missing", [{"age": 20.125, "rate": 1}, {"age": 20.125, "rate": 1, "misspelt": 1}]),
    (studies.YES_NO_RECORD, "core.yes_or_no", [{**AGES, "affair": "secret"}]),
    (
        studies.PRODUCTS,
        "core.missing",
        [MARRIED, {"age": 20.125, "rate": 1, "x": 1}, {**MARRIED, "rate": None}],
    ),
    (studies.PRODUCTS, "core.number", [{**MARRIED, "age": "30", "rate": 1}]),
    (studies.PRODUCTS, "core.yes_or_no", [{**MARRIED, "married": 1, "rate": 1}]),
]


@pytest.mark.parametrize(("question", "code", "answers"), UNFIT)
def test_answers_that_do_not_fit_are_refused_before_any_noise_without_their_value(question, code, answers):
    for answer in answers:
        with raises(AnswerError, code) as caught:
            mechanism(question).perturb(answer, no_noise)
        assert "secret" not in str(caught.value)
        assert "20.125" not in str(caught.value)
        assert caught.value.field.startswith(question["id"])


FAR = b"\x02\x00\x00\x00"
IMPOSSIBLE = [
    (studies.NUMBER, b"\x80\x00\x00\x00"),
    (studies.NORMAL, FAR),
    (studies.NORMAL, b"\xfe\xff\xff\xfe"),
    (studies.ONE_OF, b"\x03"),
    (studies.YES_NO, b"\x02"),
    (studies.CHOICE, b"\x08"),
    (choice("randomized_response"), b"\x05"),
    (choice("sue"), b"\x20"),
    (choice("subset_selection"), b"\x00"),
    (choice("subset_selection"), b"\x07"),
    (choice("subset_selection"), b"\x20"),
    (choice("olh"), b"\x7f\xff\xff\xff" + bytes(9)),
    (choice("olh"), bytes(8) + b"\xff\xff\xff\xff" + b"\x00"),
    (choice("olh"), bytes(12) + b"\x04"),
    (choice("hadamard"), b"\x10"),
    (studies.LINEAR, b"\x7f\xff\xff\xff" * 9),
    (studies.RECORD, FAR + bytes(8)),
    (studies.RECORD, bytes(8) + FAR),
    (studies.YES_NO_RECORD, FAR + bytes(5)),
    (studies.YES_NO_RECORD, bytes(8) + b"\x02"),
    (studies.PRODUCTS, bytes([2 * 8])),
]


@pytest.mark.parametrize(("question", "payload"), IMPOSSIBLE)
def test_impossible_payloads_are_refused(question, payload):
    m = mechanism(question)
    for bad in (payload, payload + b"\x00", payload[:-1]):
        with raises(ReportError, "report.payload_impossible", field=f"payloads.{question['id']}"):
            m.check(bad)


def test_extreme_payloads_are_still_possible():
    """The largest entry plus the sampler's largest draw passes the check, and so does the last product."""
    m = mechanism(studies.LINEAR)
    largest = [(16 << 20) + int(value) for value in statistics_of(m, {"age": 42, "years": 23, "rate": 5})]
    m.check(pack_signed(largest))
    m = mechanism(studies.RECORD)
    m.check(pack_signed([m.radius + (16 << 20), 0, -m.response_grid - (16 << 20)]))
    mechanism(studies.PRODUCTS).check(bytes([2 * 8 - 1]))


FOUR_PRODUCTS = {**studies.PRODUCTS, "mechanism": {**studies.PRODUCTS["mechanism"], "products": 4}}


def steps(m, answer, seed):
    with instructions() as clock:
        m.perturb(answer, Stream(seed))
    return clock.count


@pytest.mark.parametrize(
    "question", [*studies.ALL, *studies.NEWER, FOUR_PRODUCTS], ids=lambda question: question["id"]
)
def test_a_report_takes_as_many_bytes_and_steps_for_every_answer(question):
    """Its time would tell. Clipping may take a step more."""
    m = mechanism(question)
    answers = list(answers_for(studies.question_of(question)).values())
    for seed in range(10):
        streams = [Stream(seed) for _ in answers]
        sizes = {len(m.perturb(answer, stream)) for answer, stream in zip(answers, streams)}
        assert sizes == {m.payload_size}
        assert len({stream.taken for stream in streams}) == 1
    counts = [steps(m, answer, 1) for answer in answers]
    assert max(counts) <= 1.03 * min(counts)


@pytest.mark.parametrize("question", [studies.NUMBER, studies.NORMAL])
def test_a_number_takes_as_many_steps_for_little_noise_as_for_much(question):
    """Only rare draws are rejected: many discrete samplers count up to their noise."""
    m = mechanism(question)
    counts = sorted(steps(m, 20, seed) for seed in range(40))
    assert counts[36] <= 1.05 * counts[2]


ODDS = [choice(name, *at) for name in CHOICES for at in [(2, "0.01"), (1000, "1"), (1000, "17")]]
ODDS += [studies.with_epsilon(studies.PRODUCTS, epsilon) for epsilon in ("0.001", "14")]


@pytest.mark.parametrize("question", ODDS)
@mpmath.workprec(300)
def test_stated_epsilon_is_the_odds_rounded_up_within_the_studys(question):
    m, epsilon = mechanism(question), question["mechanism"]["epsilon"]
    exact = mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1])
    stated = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
    assert 0 <= stated - exact < mpmath.mpf(2) ** -99
    assert exact <= mpmath.mpf(epsilon)
    assert float(exact) == pytest.approx(float(epsilon), rel=1e-4, abs=1e-6)
    assert m.privacy.delta == Rational(0)


def of_record(question, share, epsilon="1"):
    stated = {"response_share": share, "epsilon": epsilon, "delta": "1e-30"}
    return {**question, "mechanism": {**question["mechanism"], **stated}}


TINY_STATISTICS = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "epsilon": "1e-9", "delta": "1e-30"}}
TOO_SMALL = [
    *[
        ({**question, "mechanism": {**question["mechanism"], **options}}, code, field)
        for question in studies.TABLES
        for options, code, field in (
            ({"epsilon": "1e-6"}, "epsilon_too_small_for_table", ""),
            ({"count_share": "1e-9"}, "count_share_too_large", "count_share"),
        )
    ],
    *[(choice(name, 60_000, "1e-12"), "epsilon_too_small_for_choices", "epsilon") for name in CHOICES],
    (studies.with_epsilon(studies.NUMBER, "1e-7"), "epsilon_too_small", "epsilon"),
    (studies.with_epsilon(studies.PRODUCTS, "1e-12"), "epsilon_too_small_for_sign", "epsilon"),
    (TINY_STATISTICS, "epsilon_too_small_for_statistics", ""),
    (of_record(studies.RECORD, "0.5", "1e-9"), "epsilon_too_small_for_record", ""),
    (of_record(studies.RECORD, "1e-13"), "response_share_too_small", "response_share"),
    (of_record(studies.YES_NO_RECORD, "1e-12"), "response_share_too_large", "response_share"),
]


@pytest.mark.parametrize(("question", "code", "field"), TOO_SMALL)
def test_an_epsilon_too_small_to_hold_is_refused(question, code, field):
    path = f"questions[0].mechanism.{field}".rstrip(".")
    with raises(StudyError, f"study.{code}", field=path):
        mechanism(question)


def test_catalogue_and_mechanisms_agree():
    for question in studies.ALL + studies.NEWER:
        m = mechanism(question)
        assert m.name == question["mechanism"]["name"]
        assert in_words(m)
    for name in CATALOGUE:
        import_module(f"ldp_client.mechanisms.{HOMES.get(name, name)}")
    assert set(MECHANISMS) == set(CATALOGUE)


def sylvester(width):
    matrix = np.ones((1, 1), dtype=int)
    while len(matrix) < width:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@pytest.mark.parametrize(("epsilon", "blocks", "width"), [("0.5", 1, 32), ("2.5", 8, 4)])
def test_hadamard_columns_match_sylvesters_matrix(epsilon, blocks, width):
    """Blocks as Acharya, Sun & Zhang 2019: B the largest power of two below min(e^ε, 2k), b ≥ k/B + 1."""
    m = mechanism(choice("hadamard", 20, epsilon))
    assert (m.blocks, m.width) == (blocks, width)
    matrix = sylvester(width)
    for index, column in product(range(20), range(blocks * width)):
        block, row = index // (width - 1), index % (width - 1) + 1
        expected = column // width == block and matrix[row, column % width] == 1
        assert m.supported(column.to_bytes(m.payload_size, "big"), index) == expected


def test_hash_coefficients_are_drawn_below_the_prime():
    """The one word that is not below it is drawn again."""
    m = mechanism(choice("olh", 100))
    drawn = [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03", b"\x00\x00\x00\x04", b"\x00\x00\x00\x06"]
    stream = iter([*drawn, bytes(4), bytes(4)])
    payload = m.perturb(9, NotForRealAnswers(lambda _size: next(stream)))
    assert payload == bytes([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, (81 + 2 * 9 + 3) % m.hashes])


def test_the_hashes_of_any_three_choices_are_independent(monkeypatch):
    """This includes arithmetic progressions, whose third value follows from a line through two."""
    monkeypatch.setattr(olh, "PRIME", 13)
    m = mechanism(choice("olh", 13))
    m.hashes = 13
    values = [tuple(m.hash(seed, index) for index in (1, 4, 7)) for seed in product(range(13), repeat=3)]
    assert len(set(values)) == 13**3


def test_a_bit_for_each_of_very_many_choices_is_refused_with_advice():
    with raises(StudyError, "study.too_many_choices", "'olh'", field="questions[0].mechanism.name"):
        mechanism(choice("sue", 65_537))


def test_every_label_is_found_in_the_same_number_of_steps():
    """An observer of the time of a report would learn where among many labels the answer stands."""

    def steps(m, answer):
        with instructions() as clock:
            m.quantise(answer)
        return clock.count

    labels = ["a", "a" * 200, "a" * 199 + "b", "𝄞" * 200, *[f"label {number:05}" for number in range(5000)]]
    m = mechanism(choice("randomized_response"), choices=labels)
    places = [0, 1, 2, 3, 4, 2047, 2048, 4095, 4096, 5002, 5003]
    assert [m.quantise(labels[place]) for place in places] == places
    assert len({steps(m, labels[place]) for place in places}) == 1
    numbered = mechanism(choice("olh", 1_000_000))
    for answer in (0, "0", 999_999, "999999", "007"):
        assert numbered.quantise(answer) == int(answer)
    assert numbered.payload_size <= 16
    assert len({steps(numbered, text) for text in ("7", "42", "999999", "0000000")}) == 1


@pytest.mark.parametrize("name", ["oue", "sue", "subset_selection"])
def test_no_integer_is_shifted_by_the_place_of_the_answer(name):
    """Python takes longer to calculate with integers shifted by a large number of bits."""
    shifts = [0]

    class Place(int):
        def __rlshift__(self, value):
            shifts.append(int(self))
            return value << int(self)

    mechanism(choice(name, 10_000)).randomise(Place(9999), os.urandom)
    assert max(shifts) < 8
