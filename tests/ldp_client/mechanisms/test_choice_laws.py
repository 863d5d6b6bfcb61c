"""Each choice mechanism is the law that it states: P(report | x) = c·e^ε where S has x, else c."""

from collections import Counter
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.catalogue import MECHANISMS as CATALOGUE
from ldp_client.documents.errors import AnswerError, ReportError, StudyError
from ldp_client.mechanisms import hadamard, olh
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.mechanisms.unary import Sue
from schemas import Rational, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import READS, faults, fraction, law_of, worst_ratio
from tests.statistics import follows, seeded, share_is

PRIME = 13
SAMPLES = 15_000
# Memoized answers and noise that is shared among devices have their own tests.
OTHERS = {"memoized", "summed_gaussian"}
NAMES = sorted(name for name, entry in CATALOGUE.items() if "choice" in entry.asks and name not in OTHERS)


def question(name, choices, epsilon):
    mechanism = {"name": name, "epsilon": epsilon}
    return {**studies.CHOICE, "choices": choices, "mechanism": mechanism}


def mechanism(name, choices, epsilon):
    return mechanism_for(Study(studies.document(question(name, choices, epsilon))).questions[0])


def laws_of(m):
    """The exact law for each choice. Local hashing's 2**62 hash functions are tried as 13² instead."""
    reads = READS[m.name](m, PRIME) if m.name == "olh" else READS[m.name](m)
    return [law_of(m, index, reads) for index in range(m.choices)]


@pytest.fixture
def small_prime(monkeypatch):
    monkeypatch.setattr(olh, "PRIME", PRIME)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5"])
@pytest.mark.parametrize("choices", [2, 5])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("small_prime")
def test_the_exact_law_is_the_stated_one(name, choices, epsilon):
    m = mechanism(name, {"count": choices}, epsilon)
    laws = laws_of(m)
    assert not faults(m, laws)
    for payload in laws[0]:
        m.check(payload)
    assert worst_ratio(laws) == Fraction(*m.odds)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "6", "17"])
@pytest.mark.parametrize("choices", [2, 3, 1000])
@pytest.mark.parametrize("name", NAMES)
def test_stated_epsilon_is_the_odds_rounded_up_within_the_studys(name, choices, epsilon):
    m = mechanism(name, {"count": choices}, epsilon)
    with mpmath.workprec(300):
        exact = mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1])
        stated = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
        assert 0 <= stated - exact < mpmath.mpf(2) ** -99
        assert exact <= mpmath.mpf(epsilon)
    assert float(exact) == pytest.approx(float(epsilon), rel=1e-4, abs=1e-6)
    assert m.privacy.delta == Rational(0)


class ForgetfulSubset(SubsetSelection):
    """Adds the truth without taking another one out, so that its size gives it away."""

    def randomise(self, quantised, random):
        return self.pack(int.from_bytes(super().randomise(quantised, random), "little") | 1 << quantised)


class LopsidedHadamard(Hadamard):
    """Takes the other half of a block by flipping the lowest bit, whatever the row."""

    def randomise(self, quantised, random):
        payload = super().randomise(quantised, random)
        return bytes([payload[0] ^ (quantised & 1)])


class SharedBitSue(Sue):
    """Uses one random bit for two choices."""

    def randomise(self, quantised, random):
        bits = super().randomise(quantised, random)[0]
        return bytes([bits & ~2 | bits << 1 & 2])


class LazyResponse(RandomizedResponse):
    """The other choice may be the true one."""

    def randomise(self, quantised, random):
        truthful = int.from_bytes(random(4), "big") < self.threshold
        other = int.from_bytes(random(4), "big")
        return bytes([quantised if truthful else other])


@pytest.mark.parametrize("fault", [ForgetfulSubset, LopsidedHadamard, SharedBitSue, LazyResponse])
def test_planted_fault_is_detected(fault):
    m = fault(Study(studies.document(question(fault.name, {"count": 5}, "1"))).questions[0])
    assert faults(m, laws_of(m))


@pytest.mark.slow
@pytest.mark.usefixtures("small_prime")
def test_too_large_threshold_is_detected():
    for name in NAMES:
        m = mechanism(name, {"count": 5}, "1")
        m.threshold += -1000 if name in ("oue", "sue") else 1000
        laws = laws_of(m)
        assert "odds" in faults(m, laws)
        assert worst_ratio(laws) > Fraction(*m.odds)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"olh"}))
def test_reports_follow_the_exact_joint_law(name):
    m = mechanism(name, studies.CHOICE["choices"], "1")
    laws, source = laws_of(m), seeded(name)
    for index in range(3):
        seen = Counter(m.perturb(m.labels[index], source) for _ in range(SAMPLES))
        assert set(seen) <= set(laws[index])
        counts = [seen[payload] for payload in laws[index]]
        assert follows(counts, [float(chance) for chance in laws[index].values()])
        wrong = laws[(index + 1) % 3]
        assert not follows(counts, [float(wrong[payload]) for payload in laws[index]])


@pytest.mark.parametrize("name", ["subset_selection", "olh", "hadamard"])
def test_support_rates_of_many_choices_match_the_stated_rates(name):
    m = mechanism(name, {"count": 500}, "2")
    true, others = 77, (0, 78, 499)
    source = seeded(name)
    payloads = [m.perturb(true, source) for _ in range(SAMPLES)]
    for index in (true, *others):
        supporting = sum(m.supported(payload, index) for payload in payloads)
        assert share_is(supporting, SAMPLES, float(fraction(m.support_probability(true, index))))
        assert not share_is(supporting, SAMPLES, 0.8 * float(m.p if index == true else m.q))


@pytest.mark.parametrize("name", ["olh", "hadamard"])
def test_a_million_choices_fit_in_sixteen_bytes(name):
    m = mechanism(name, {"count": 1_000_000}, "4")
    for answer in (0, 999_999, "500000"):
        payload = m.perturb(answer)
        m.check(payload)
        assert len(payload) == m.payload_size <= 16


@pytest.mark.parametrize("name", NAMES)
def test_time_and_bytes_do_not_depend_on_the_answer(name):
    """One stream on every answer: as many bytes are read."""
    m = mechanism(name, {"count": 40}, "1")
    for seed in range(30):
        taken = set()
        for index in range(m.choices):
            random = np.random.default_rng(seed)
            sizes = []
            noted = lambda size: (sizes.append(size), random.bytes(size))[1]  # noqa: B023, E731
            m.randomise(index, NotForRealAnswers(noted))
            taken.add(tuple(sizes))
        assert len(taken) == 1


def sylvester(width):
    matrix = np.ones((1, 1), dtype=int)
    while len(matrix) < width:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@pytest.mark.parametrize(("choices", "epsilon", "blocks", "width"), [(20, "0.5", 1, 32), (20, "2.5", 8, 4)])
def test_hadamard_columns_match_sylvesters_matrix(choices, epsilon, blocks, width):
    """Blocks as Acharya, Sun & Zhang 2019: B the largest power of two below min(e^ε, 2k), b ≥ k/B + 1."""
    m = mechanism("hadamard", {"count": choices}, epsilon)
    assert (m.blocks, m.width) == (blocks, width)
    matrix = sylvester(width)
    for index in range(choices):
        block, row = index // (width - 1), index % (width - 1) + 1
        for column in range(blocks * width):
            payload = column.to_bytes(m.payload_size, "big")
            expected = column // width == block and matrix[row, column % width] == 1
            assert m.supported(payload, index) == expected


@pytest.mark.parametrize("word", [0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x12345678])
def test_parity(word):
    assert hadamard.parity(word) == bin(word).count("1") % 2


def test_hash_coefficients_are_drawn_below_the_prime():
    """The one word that is not below it is drawn again."""
    m = mechanism("olh", {"count": 100}, "1")
    drawn = [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03", b"\x00\x00\x00\x04", b"\x00\x00\x00\x06"]
    stream = iter([*drawn, bytes(4), bytes(4)])
    payload = m.perturb(9, NotForRealAnswers(lambda _size: next(stream)))
    assert payload == bytes([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, (81 + 2 * 9 + 3) % m.hashes])


@pytest.mark.parametrize("three", [(0, 1, 2), (1, 4, 7), (0, 5, 12)])
@pytest.mark.usefixtures("small_prime")
def test_the_hashes_of_any_three_choices_are_independent(three):
    """This includes arithmetic progressions, whose third value follows from a line through two."""
    m = mechanism("olh", {"count": 13}, "1")
    m.hashes = PRIME
    values = [tuple(m.hash(seed, index) for index in three) for seed in product(range(PRIME), repeat=3)]
    assert len(set(values)) == PRIME**3


@pytest.mark.parametrize(
    ("epsilon", "choices", "size"),
    [("0.5", 100, 38), ("1", 5, 1), ("1", 6, 2), ("5", 100, 1), ("1e-5", 3, 1)],
)
def test_subsets_have_the_best_size(epsilon, choices, size):
    assert mechanism("subset_selection", {"count": choices}, epsilon).size == size


@pytest.mark.parametrize(("epsilon", "hashes"), [("0.01", 2), ("1", 4), ("2.5", 13), ("30", 1 << 16)])
def test_hashes_have_the_best_range(epsilon, hashes):
    assert mechanism("olh", {"count": 100}, epsilon).hashes == hashes


def test_randomized_response_flips_exactly_at_its_threshold():
    m = mechanism("randomized_response", studies.CHOICE["choices"], "1")

    def report(draw):
        stream = iter([draw.to_bytes(4, "big"), bytes(4)])
        return m.perturb("teacher", NotForRealAnswers(lambda _size: next(stream)))

    assert report(m.threshold - 1) == b"\x02"
    assert report(m.threshold) == b"\x00"


@pytest.mark.parametrize("name", ["oue", "sue"])
def test_unary_bits_compare_exactly_with_their_threshold(name):
    """Bytes that spell the threshold's complement, and one less, for the bit of a wrong choice."""
    m = mechanism(name, studies.CHOICE["choices"], "1")

    def bit_of_first_choice(fraction_value):
        digits = bytes([1 - (fraction_value >> place & 1) for place in range(32)])
        return m.perturb("teacher", NotForRealAnswers(lambda size: digits + bytes(size - 32)))[0] & 1

    assert bit_of_first_choice(m.threshold - 1) == 1
    assert bit_of_first_choice(m.threshold) == 0
    assert bit_of_first_choice(0) == 1
    assert bit_of_first_choice(2**32 - 1) == 0


@pytest.mark.parametrize("name", ["oue", "sue"])
def test_wide_unary_reports_have_the_right_size_and_rates(name):
    m = mechanism(name, [str(number) for number in range(1001)], "1")
    bits, source = np.zeros(1001), seeded(name)
    for _ in range(3000):
        payload = m.perturb("500", source)
        m.check(payload)
        bits += np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")[:1001]
    assert follows([bits[500], 3000 - bits[500]], [float(m.p), 1 - float(m.p)])
    others = bits.sum() - bits[500]
    assert follows([others, 3_000_000 - others], [float(m.q), 1 - float(m.q)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answer", [-1, 9, "9", "-1", "03.0", "", "x", None, True, 1.0, [1], "00000001"])
def test_numbered_answers_outside_the_count_are_refused_before_any_noise(name, answer):
    def no_noise(_size):
        raise AssertionError("noise was drawn")

    with raises(AnswerError, "core.whole_number", "8"):
        mechanism(name, {"count": 9}, "1").perturb(answer, no_noise)


def test_numbered_answers_may_be_text():
    m = mechanism("olh", {"count": 1000}, "1")
    assert [m.quantise(answer) for answer in (0, "0", 999, "999", "007")] == [0, 0, 999, 999, 7]


IMPOSSIBLE = [
    ("sue", b"\x20"),
    ("subset_selection", b"\x00"),
    ("subset_selection", b"\x07"),
    ("subset_selection", b"\x20"),
    ("olh", b"\x7f\xff\xff\xff" + bytes(9)),
    ("olh", bytes(8) + b"\xff\xff\xff\xff" + b"\x00"),
    ("olh", bytes(12) + b"\x04"),
    ("hadamard", b"\x10"),
    ("randomized_response", b"\x05"),
]


@pytest.mark.parametrize(("name", "payload"), IMPOSSIBLE)
def test_impossible_payloads_are_refused(name, payload):
    m = mechanism(name, {"count": 5}, "1")
    for bad in (payload, payload + b"\x00", b""):
        with raises(ReportError, "report.payload_impossible", field="payloads.occupation"):
            m.check(bad)


@pytest.mark.parametrize("name", ["oue", "sue", "subset_selection"])
def test_a_bit_for_each_of_very_many_choices_is_refused_with_advice(name):
    with raises(StudyError, "study.too_many_choices", "'olh'", field="questions[0].mechanism.name"):
        mechanism(name, {"count": 65_537}, "1")


@pytest.mark.parametrize("name", NAMES)
def test_too_small_epsilon_is_rejected_with_its_field(name):
    document = studies.document(studies.NUMBER, question(name, {"count": 60_000}, "1e-12"))
    with raises(StudyError, "study.epsilon_too_small_for_choices") as caught:
        mechanism_for(Study(document).questions[1])
    assert caught.value.field == "questions[1].mechanism.epsilon"
