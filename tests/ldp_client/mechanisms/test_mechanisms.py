"""Each mechanism's law, by enumeration or against its exact probabilities, and its stated privacy."""

import os

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ldp_client import mechanism_for, mechanisms_of
from ldp_client.core.quantise import signed_units, signed_units_of
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.catalogue import MECHANISMS as CATALOGUE
from ldp_client.documents.errors import AnswerError, ReportError, StudyError
from ldp_client.explain import in_words
from ldp_client.mechanisms import MECHANISMS, MOST_STUDIES, _built
from ldp_client.mechanisms.base import pack_signed, unpack_signed
from schemas import Rational, Study
from tests import studies
from tests.kit.errors import raises
from tests.statistics import follows, seeded

SAMPLES = 40_000


def mechanism(question, **changes):
    return mechanism_for(Study(studies.document({**question, **changes})).questions[0])


def rounded_laplace(k, scale):
    """Exact probability that round(scale · Laplace(1)) = k."""
    low, high = (mpmath.mpf(k) - 0.5) / scale, (mpmath.mpf(k) + 0.5) / scale
    if k == 0:
        return 1 - mpmath.exp(-high)
    low, high = (low, high) if k > 0 else (-high, -low)
    return (mpmath.exp(-low) - mpmath.exp(-high)) / 2


@pytest.mark.parametrize("epsilon", ["0.05", "1", "20"])
@mpmath.workprec(900)
def test_laplace_epsilon_is_the_worst_ratio_of_the_exact_law(epsilon):
    m = mechanism(studies.with_epsilon(studies.NUMBER, epsilon))
    points = [-5, -1, 0, 1, m.levels // 2, m.levels - 1, m.levels, m.levels + 1, 3 * m.levels]
    ratios = [
        abs(mpmath.log(rounded_laplace(y - i, m.scale) / rounded_laplace(y - j, m.scale)))
        for y in points
        for i, j in [(0, m.levels), (0, 1), (m.levels // 3, m.levels)]
    ]
    stated = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
    assert max(ratios) <= stated * (1 + mpmath.mpf(10) ** -40)
    assert max(ratios) == pytest.approx(float(stated), rel=1e-12)
    assert stated <= mpmath.mpf(epsilon) < stated + mpmath.mpf(2) ** -20


def test_laplace_reports_follow_their_law_around_the_answer():
    m, source = mechanism(studies.NUMBER), seeded("laplace")
    values = np.asarray([unpack_signed(m.perturb(3.0, source))[0] for _ in range(SAMPLES)])
    centred = (values - m.levels / 4) / m.scale
    edges = np.linspace(-5, 5, 81)
    cdf = np.where(edges < 0, 0.5 * np.exp(edges), 1 - 0.5 * np.exp(-edges))
    counts = np.bincount(np.searchsorted(edges, centred), minlength=82)
    assert follows(counts, np.diff(np.concatenate([[0], cdf, [1]])))


def test_gaussian_reports_follow_their_law_around_the_answer():
    from scipy.special import ndtr

    m, source = mechanism(studies.NORMAL), seeded("gaussian")
    values = np.asarray([unpack_signed(m.perturb(22.5, source))[0] for _ in range(SAMPLES)])
    edges = np.linspace(-4, 4, 41)
    counts = np.bincount(np.searchsorted(edges, (values - m.levels / 4) / m.scale), minlength=42)
    assert follows(counts, np.diff(np.concatenate([[0], ndtr(edges), [1]])))
    assert not follows(counts, np.diff(np.concatenate([[0], ndtr(edges / 0.9), [1]])))


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), ("1", "1e-6"), ("8", "1e-3")])
@mpmath.workprec(200)
def test_gaussian_noise_covers_exactly_the_whole_range(epsilon, delta):
    """The analytic Gaussian mechanism's curve (Balle & Wang 2018), without the calibration's code."""
    stated = {"name": "gaussian", "epsilon": epsilon, "delta": delta}
    m = mechanism({**studies.NORMAL, "mechanism": stated})

    def spent(distance):
        mu, e = mpmath.mpf(distance) / m.scale, mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

    assert spent(m.levels) <= mpmath.mpf(delta) < spent(m.levels + 1)
    assert (m.privacy.epsilon, m.privacy.delta) == (Rational.parse(epsilon), Rational.parse(delta))
    assert m.quantise(1e300) == m.levels


def test_noise_does_not_depend_on_the_answer():
    """One byte stream on two inputs: the same number of bytes, outputs apart by exactly the shift."""
    for question, low, high in [
        (studies.NUMBER, 0, 12),
        (studies.NORMAL, 15, 45),
        (studies.LINEAR, {"age": 17.5, "years": 0, "rate": 1}, {"age": 42, "years": 3, "rate": 5}),
        (
            studies.LOGISTIC,
            {"age": 20, "years": 20, "affair": True},
            {"age": 42, "years": 3, "affair": False},
        ),
    ]:
        m = mechanism(question)
        silent = [unpack_signed(m.randomise(m.quantise(answer), Replay(None))) for answer in (low, high)]
        for seed in range(200):
            streams = [Replay(seed), Replay(seed)]
            noisy = [unpack_signed(m.perturb(a, s)) for a, s in zip((low, high), streams)]
            assert streams[0].used == streams[1].used
            shift = np.subtract(*silent)
            assert np.array_equal(np.subtract(*noisy), shift)


class Replay(NotForRealAnswers):
    """A repeatable byte stream; with seed None it makes noise of 0."""

    def __init__(self, seed):
        super().__init__(self)
        self.random = np.random.default_rng(seed) if seed is not None else None
        self.used = 0

    def __call__(self, size):
        self.used += size
        return self.random.bytes(size) if self.random else bytes(size)


def statistics_of(m, record):
    return np.asarray(unpack_signed(m.randomise(m.quantise(record), Replay(None))))


def record_of(question, flat):
    """A record from numbers in [−1, 1] (features and response)."""
    response = question["response"]
    fields = question["features"] + ([response] if "bounds" in response else [])
    values = {}
    for field, place in zip(fields, flat):
        low, high = (float(bound) for bound in field["bounds"])
        values[field["id"]] = low + (place + 1) / 2 * (high - low)
    if "bounds" not in response:
        values[response["id"]] = bool(flat[-1] > 0)
    return values


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["1", "0.3", "1.4"])
@pytest.mark.parametrize("question", [studies.LINEAR, studies.LOGISTIC], ids=["linear", "logistic"])
def test_any_two_records_are_within_the_noise_radius(question, norm):
    """The search comes within 1 % of the bound, so the noise is not larger than it must be."""
    from ldp_client.core.noise_levels import gaussian_radius

    m = mechanism(question, norm=norm)
    radius = gaussian_radius(Rational(1), Rational.parse("1e-6"), len(m.coordinates))
    random = np.random.default_rng(3)

    def distance(flat):
        first, second = np.clip(flat, -1, 1).reshape(2, -1)
        return np.linalg.norm(
            statistics_of(m, record_of(question, first)) - statistics_of(m, record_of(question, second))
        )

    best = 0.0
    for _ in range(40):
        start = random.choice([-1.0, 1.0], 6) * random.uniform(0.2, 1, 6)
        found = minimize(lambda z: -distance(z), start, method="Nelder-Mead", options={"maxfev": 250})
        best = max(best, distance(start), -found.fun)
    assert best <= radius
    assert best > 0.99 * radius


def test_statistics_are_the_products_of_the_record():
    m = mechanism(studies.LINEAR, norm="2")
    record = {"age": 40, "years": 5, "rate": 2}
    x = [(40 - 29.75) / 12.25, (5 - 11.5) / 11.5]
    v = np.asarray([m.scaled_weight, *x, m.scaled_weight * -0.5])
    expected = [v[i] * v[j] * (1 if i == j else np.sqrt(2)) for i, j in m.coordinates]
    assert statistics_of(m, record) / m.grid == pytest.approx(expected, abs=2 / m.grid + 1e-5)


def test_features_beyond_the_norm_are_clipped_exactly():
    m = mechanism(studies.LINEAR)
    v = m.quantise({"age": 42, "years": 0, "rate": 5})
    assert sum(entry**2 for entry in v[1:-1]) <= m.radius**2
    assert v[1] == pytest.approx(-v[2], abs=1)
    assert v[1] == pytest.approx(m.radius / np.sqrt(2), rel=1e-5)


def test_gaussian_noise_has_its_stated_size():
    m = mechanism(studies.LINEAR)
    record, source = studies.ANSWERS["rating"], seeded("statistics")
    silent = statistics_of(m, record)
    noise = np.asarray([unpack_signed(m.perturb(record, source)) for _ in range(4000)]) - silent
    scaled = noise.ravel() / m.grid / m.noise_sd
    edges = np.linspace(-4, 4, 41)
    from scipy.special import ndtr

    counts = np.bincount(np.searchsorted(edges, scaled), minlength=42)
    assert follows(counts, np.diff(np.concatenate([[0], ndtr(edges), [1]])))
    assert not follows(counts, np.diff(np.concatenate([[0], ndtr(edges / 0.8), [1]])))
    correlation = np.corrcoef(noise.T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.1


def test_the_middle_of_the_bounds_is_the_middle_of_the_grid():
    m = mechanism(studies.NUMBER)
    assert m.quantise(6) == (m.levels + 1) // 2
    record = mechanism(studies.LINEAR).quantise({"age": 29.75, "years": 11.5, "rate": 3})
    assert record[1:] == [0, 0, 0]


@pytest.mark.parametrize(
    ("value", "index"),
    [(-1e300, 0), (-(10**400), 0), (1e300, 1), (10**400, 1), (12, 1)],
)
def test_numbers_beyond_the_bounds_become_the_bound(value, index):
    m = mechanism(studies.NUMBER)
    assert m.quantise(value) == index * m.levels


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (studies.NUMBER, "secret"),
        (studies.NUMBER, True),
        (studies.NUMBER, [1]),
        (studies.CHOICE, "secret"),
        (studies.CHOICE, 1),
        (studies.CHOICE, None),
        (studies.CHOICE, True),
        (studies.YES_NO, "secret"),
        (studies.YES_NO, 1),
        (studies.LINEAR, "secret"),
        (studies.LINEAR, {"age": 1, "rate": 1}),
        (studies.LINEAR, {"age": 1, "years": 1, "rate": "secret"}),
        (studies.LINEAR, {"age": 1, "years": 1, "rate": 1, "more": 1}),
        (studies.LOGISTIC, {"age": 1, "years": 1, "affair": 1}),
        (studies.LOGISTIC, {"age": 1, "years": 1, "affair": "secret"}),
        (studies.RECORD, "secret"),
        (studies.RECORD, {"age": 1, "rate": 1}),
        (studies.RECORD, {"age": "secret", "years": 1, "rate": 1}),
        (studies.YES_NO_RECORD, {"age": 1, "years": 1, "affair": "secret"}),
        (studies.YES_NO_RECORD, {"age": 1, "years": 1, "affair": 1}),
    ],
)
def test_answers_that_do_not_fit_are_refused_before_any_noise_without_their_value(question, answer):
    def no_noise(_size):
        raise AssertionError("noise was drawn")

    with pytest.raises(AnswerError) as caught:
        mechanism(question).perturb(answer, no_noise)
    assert "secret" not in str(caught.value)
    assert caught.value.field.startswith(question["id"])


@pytest.mark.parametrize("answer", [0.0, 1.0, 5.0, -5.0, 1e300, -1e300])
def test_no_float_is_rounded_beyond_the_grid(answer):
    """If twice the size is not a float, the nearest float may be larger: boards have 24-bit floats."""
    size = (1 << 54) + 3
    assert int(1.0 * (2 * size)) - size > size
    assert -size <= signed_units(answer, (0.0, 1.0), size, "field") <= size


@given(
    st.lists(st.one_of(st.floats(), st.integers(), st.just(10**400), st.just("7"), st.none()), min_size=1),
    st.tuples(st.floats(-1e9, 0), st.floats(1, 1e9)),
)
def test_numbers_read_in_one_loop_are_read_as_one_by_one(answers, bounds):
    size, (low, high) = 1 << 20, bounds
    record = dict(enumerate(answers))
    asked = [(name, f"record.{name}", low, high, high - low) for name in record]

    def outcome(read):
        try:
            return read()
        except AnswerError as error:
            return str(error)

    one_by_one = outcome(lambda: [signed_units(record[name], bounds, size, path) for name, path, *_ in asked])
    assert outcome(lambda: signed_units_of(record, asked, size)) == one_by_one


def test_yes_and_no_may_be_words_or_booleans():
    m = mechanism(studies.YES_NO)
    assert [m.quantise(answer) for answer in ("no", False, "yes", True)] == [0, 0, 1, 1]
    r = mechanism(studies.LOGISTIC)
    one, two = ({"age": 20, "years": 2, "affair": answer} for answer in ("yes", True))
    assert r.quantise(one) == r.quantise(two)


IMPOSSIBLE = [
    (studies.NUMBER, b"\x80\x00\x00\x00"),
    (studies.NORMAL, b"\x02\x00\x00\x00"),
    (studies.NORMAL, b"\xfe\xff\xff\xfe"),
    (studies.ONE_OF, b"\x03"),
    (studies.YES_NO, b"\x02"),
    (studies.CHOICE, b"\x08"),
    (studies.LINEAR, b"\x7f\xff\xff\xff" * 9),
]


@pytest.mark.parametrize(("question", "payload"), IMPOSSIBLE)
def test_impossible_payloads_are_refused(question, payload):
    m = mechanism(question)
    for bad in (payload, payload + b"\x00", b""):
        with raises(ReportError, "report.payload_impossible", field=f"payloads.{question['id']}"):
            m.check(bad)


@pytest.mark.parametrize("question", studies.ALL + studies.NEWER, ids=lambda question: question["id"])
def test_every_real_payload_is_possible_and_of_one_size(question):
    m = mechanism(question)
    for _ in range(200):
        payload = m.perturb({**studies.ANSWERS, **studies.NEWER_ANSWERS}[question["id"]])
        assert len(payload) == m.payload_size
        m.check(payload)


def test_extreme_gaussian_noise_is_still_possible():
    """The largest statistic plus the sampler's largest draw passes the check."""
    m = mechanism(studies.LINEAR)
    largest = [(16 << 20) + int(value) for value in statistics_of(m, {"age": 42, "years": 23, "rate": 5})]
    m.check(pack_signed(largest))


@pytest.mark.parametrize("values", [[0, 1, -1], [2**31 - 1, -(2**31) + 1], [2**40, -(2**40)]])
def test_signed_integers_saturate(values):
    limit = 2**31 - 1
    assert unpack_signed(pack_signed(values)) == [min(max(v, -limit), limit) for v in values]


def test_an_epsilon_too_small_to_hold_is_refused():
    with raises(StudyError, "study.epsilon_too_small", field="questions[0].mechanism.epsilon"):
        mechanism(studies.with_epsilon(studies.NUMBER, "1e-7"))
    with raises(StudyError, "study.epsilon_too_small_for_choices"):
        mechanism(studies.with_epsilon({**studies.ONE_OF, "choices": [str(i) for i in range(10000)]}, "1e-8"))
    with raises(StudyError, "study.epsilon_too_small_for_statistics"):
        mechanism(studies.LINEAR, mechanism={**studies.GAUSSIAN, "epsilon": "1e-9", "delta": "1e-30"})


def test_catalogue_and_mechanisms_agree():
    assert set(MECHANISMS) == set(CATALOGUE)
    for question in studies.ALL + studies.NEWER:
        m = mechanism(question)
        assert m.name == question["mechanism"]["name"]
        assert in_words(m)


def test_default_randomness_is_the_operating_systems():
    m = mechanism(studies.NUMBER)
    assert len({m.perturb(1) for _ in range(50)}) == 50
    assert os.urandom(1) is not None


def test_a_studys_mechanisms_are_built_once_and_shared():
    first, again = (Study(studies.document(studies.NUMBER, studies.CHOICE)) for _ in range(2))
    built = mechanisms_of(first)
    assert list(built) == [question.id for question in first.questions]
    assert all(mechanisms_of(again)[name] is built[name] for name in built)
    built.clear()  # the caller's own
    assert len(mechanisms_of(first)) == 2
    other = Study(studies.document(studies.with_epsilon(studies.NUMBER, "0.75"), studies.CHOICE))
    assert float(mechanisms_of(other)[studies.NUMBER["id"]].privacy.epsilon) == pytest.approx(0.75)
    for version in range(2, 2 * MOST_STUDIES):
        mechanisms_of(Study(dict(studies.document(studies.NUMBER), version=version)))
        assert len(_built) <= MOST_STUDIES
