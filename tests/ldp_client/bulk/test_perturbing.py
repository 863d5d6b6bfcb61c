"""perturb_many: the same integers as one by one where the bytes are read alike, else the same exact law."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.audit.answers import Stream
from ldp_client.bulk import numbers, perturb_many, perturbing, randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.bulk.randomness import below, biased_bits
from ldp_client.core import strips
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms import MECHANISMS
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import READS, law_of
from tests.statistics import follows, seeded

QUESTIONS = [*studies.ALL, *studies.NEWER]
ANSWERS = {**studies.ANSWERS, **studies.NEWER_ANSWERS}
# These read their random bytes in another order than for one answer.
REORDERED = {"oue", "sue", "subset_selection"}
SAMPLES = 20_000
WORD = 1 << 32


def mechanism(question, **changes):
    return mechanism_for(Study(studies.document({**question, **changes})).questions[0])


def payloads_of(m, answers, random=None):
    """perturb_many, also of memoized questions; from a seed unless a source is given."""
    return randomise_many(m, quantise_many(m, answers), random or seeded(m.name, m.payload_size))


def of_four(name):
    return mechanism(studies.CHOICE, choices={"count": 4}, mechanism={"name": name, "epsilon": "1"})


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_noise_is_the_scalar_samplers_from_the_same_bytes(law):
    """Every path: accepted at once, decided by the chord, left open, rejected, restarted in the tail."""
    for seed in range(3):
        many, one = Stream(seed), Stream(seed)
        drawn = numbers.draw(law, 30_000, many)
        assert drawn.tolist() == strips.table_of(law).draw(30_000, one)
        assert many.taken == one.taken


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_chord_decisions_agree_with_the_exact_curve(law):
    """Checked at heights all over a strip and close to its bounds; the chord leaves few draws undecided."""
    numbers.draw(law, 1, Stream(0))
    bulk = numbers._tables[law]
    random = np.random.default_rng(1)
    chosen = np.repeat(np.arange(0, 480, 5), 40)
    points = random.integers(0, WORD, len(chosen))
    edge, right = bulk.edge[chosen], bulk.edge[chosen + 1]
    heights = right + (random.random(len(chosen)) * (edge - right)).astype(np.int64)
    under, over = bulk._judge(chosen, points, heights)
    assert not (under & over).any()
    for index in np.flatnonzero(under | over)[::7]:
        strip, point, height = int(chosen[index]), int(points[index]) >> 1, int(heights[index])

        def unused(_size):
            raise AssertionError("the exact test was not certain at once")

        assert bulk.table._under_curve(strip, point, height, unused) == under[index]
    early = chosen < 64
    assert (under | over)[early].mean() > 0.9


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_perturb_many_of_one_answer_equals_perturb(question):
    """Unary encodings and subsets read their bytes in another order: for them, see their laws below."""
    m, answer = mechanism(question), ANSWERS[question["id"]]
    reordered = m.name in REORDERED or getattr(m, "of", "") == "sue"
    differing = 0
    for seed in range(100):
        many, one = Stream(seed), Stream(seed)
        differing += payloads_of(m, [answer], many).tobytes() != m.perturb(answer, one)
        differing += not reordered and many.taken != one.taken
    assert (differing > 0) == reordered


def spelled(word):
    """Random bytes that make every fraction `word`, 8 digits at a time from the highest."""
    digits = [word >> (8 * part + place) & 1 for part in (3, 2, 1, 0) for place in range(8)]
    stream = iter([1 - digit for digit in digits])
    return NotForRealAnswers(lambda size: bytes([255 * next(stream)]) * size)


@pytest.mark.parametrize("threshold", [1, 255, 256, 1155094610, 1 << 31, WORD - 256, WORD - 1])
def test_biased_bits_are_decided_exactly_at_the_threshold(threshold):
    for word in (0, threshold - 1, threshold, min(threshold + 1, WORD - 1), WORD - 1, 0x45000000):
        bits = biased_bits(threshold, 5, spelled(word))
        assert bits.tolist() == [255 * (word < threshold)] * 5


def test_lower_digits_are_drawn_for_undecided_bytes_alone():
    stream = Stream(7)
    biased_bits(1155094610, 1 << 16, stream)
    assert 8 < stream.taken / (1 << 16) < 8.5


@pytest.mark.parametrize("name", sorted(READS))
def test_choices_follow_the_exact_joint_law(name):
    m = of_four(name)
    index = 2
    payloads = payloads_of(m, np.full(SAMPLES, index))
    # A hash function is one of 2**62: the law is that of the supported choices.
    if name == "olh":
        supported = sum(m.supported(payload.tobytes(), index) for payload in payloads)
        assert follows([supported, SAMPLES - supported], [float(m.p), 1 - float(m.p)])
        return
    seen = Counter(payload.tobytes() for payload in payloads)
    for answered in range(4):
        law = law_of(m, answered, READS[name](m))
        assert set(seen) <= set(law)
        counts = [seen[payload] for payload in law]
        assert follows(counts, [float(chance) for chance in law.values()]) == (answered == index)


def test_rows_of_a_batch_are_independent():
    """Neighbouring rows, and neighbouring bytes, share no bits."""
    m = mechanism(studies.CHOICE, choices={"count": 1024})
    bits = np.unpackbits(payloads_of(m, np.zeros(4000, np.int64)), axis=1, bitorder="little")[:, 1:]
    q = float(m.q)
    for one, other in ((bits[1:], bits[:-1]), (bits[:, 8:], bits[:, :-8]), (bits[:, 1:], bits[:, :-1])):
        both = int((one & other).sum())
        spread = np.sqrt(one.size * q * q * (1 - q * q) * 2)
        assert abs(both - one.size * q * q) < 5.5 * spread


def test_a_wrong_bulk_threshold_is_noticed(monkeypatch):
    m = of_four("oue")
    monkeypatch.setattr(m, "threshold", m.threshold * 11 // 10)
    law = law_of(of_four("oue"), 1, READS["oue"](of_four("oue")))
    seen = Counter(payload.tobytes() for payload in payloads_of(m, np.full(SAMPLES, 1)))
    assert not follows([seen[payload] for payload in law], [float(chance) for chance in law.values()])


def test_uniform_integers_are_unbiased_for_every_limit():
    limits = np.tile([1, 2, 3, 5, 7, (1 << 31) + 1], 5000)
    drawn = below(limits, len(limits), Stream(3))
    assert (drawn < limits).all()
    for limit in (2, 3, 5, 7):
        assert follows(np.bincount(drawn[limits == limit], minlength=limit), np.full(limit, 1 / limit))
    wide = drawn[limits > 1 << 30] >> 29
    assert follows(np.bincount(np.minimum(wide, 3)), np.full(4, 0.25))


NUMBERS = [0.0, 12.0, -1e300, 1e300, 3.3, 11.999999999, 1e-17, 6.0]


def test_arrays_of_numbers_are_quantised_as_one_by_one():
    m = mechanism(studies.NUMBER)
    values = np.concatenate([NUMBERS, np.random.default_rng(2).uniform(-2, 14, 3000)])
    assert quantise_many(m, values).tolist() == [m.quantise(value) for value in values.tolist()]
    whole = np.arange(-3, 16)
    assert quantise_many(m, whole).tolist() == [m.quantise(value) for value in whole.tolist()]


@pytest.mark.parametrize("question", [studies.LINEAR, studies.LOGISTIC], ids=["linear", "logistic"])
@pytest.mark.parametrize("norm", ["0.01", "1", "1.4"])
def test_columns_of_records_are_quantised_as_one_by_one(question, norm):
    m = mechanism(question, norm=norm)
    random = np.random.default_rng(4)
    columns = {"age": random.uniform(10, 50, 2000), "years": random.uniform(-5, 30, 2000)}
    columns["age"][: len(NUMBERS)], columns["years"][5 : 5 + len(NUMBERS)] = NUMBERS, NUMBERS
    name = question["response"]["id"]
    columns[name] = random.random(2000) < 0.5 if m.binary else random.uniform(0, 6, 2000)
    records = [{key: column[place].item() for key, column in columns.items()} for place in range(2000)]
    assert quantise_many(m, columns).tolist() == [m.quantise(record) for record in records]


def test_labels_and_numbered_choices_are_looked_up():
    labels = np.asarray(["worker", "student", "teacher", "worker"])
    assert quantise_many(mechanism(studies.CHOICE), labels).tolist() == [1, 0, 2, 1]
    assert quantise_many(of_four("olh"), np.asarray([3, 0], np.int8)).tolist() == [3, 0]
    assert quantise_many(mechanism(studies.YES_NO), np.asarray([True, False])).tolist() == [1, 0]
    assert list(quantise_many(mechanism(studies.YES_NO), ["yes", False])) == [1, 0]


WRONG = [
    (studies.NUMBER, np.asarray(["secret"])),
    (studies.NUMBER, np.asarray([True])),
    (studies.NUMBER, np.asarray([3.0, np.nan])),
    (studies.NUMBER, np.asarray([3.0, -np.inf])),
    (studies.NUMBER, [3.0, None]),
    (studies.CHOICE, np.asarray(["secret"])),
    (studies.CHOICE, np.asarray([1])),
    (studies.NEWER[1], np.asarray([40])),
    (studies.NEWER[1], np.asarray([-1])),
    (studies.NEWER[1], np.asarray([1.0])),
    (studies.YES_NO, np.asarray([1])),
    (studies.LINEAR, {"age": np.ones(2), "years": np.ones(2)}),
    (studies.LINEAR, {"age": np.ones(2), "years": np.ones(3), "rate": np.ones(2)}),
    (studies.LINEAR, {"age": np.ones(2), "years": np.asarray(["secret"] * 2), "rate": np.ones(2)}),
    (studies.LINEAR, {"age": np.ones(2), "years": np.ones(2), "rate": np.ones(2), "more": np.ones(2)}),
    (studies.LOGISTIC, {"age": np.ones(2), "years": np.ones(2), "affair": np.ones(2)}),
    (studies.RECORD, {"age": np.ones(2), "years": np.ones(3), "rate": np.ones(2)}),
    (studies.RECORD, {"age": [1.0, True], "years": np.ones(2), "rate": np.ones(2)}),
]


@pytest.mark.parametrize(("question", "answers"), WRONG)
def test_arrays_that_do_not_fit_are_refused_before_any_noise(question, answers):
    def no_noise(_size):
        raise AssertionError("noise was drawn")

    with pytest.raises(AnswerError) as caught:
        perturb_many(mechanism(question), answers, no_noise)
    assert "secret" not in str(caught.value)
    assert caught.value.field.startswith(question["id"])


def masked(values, *hidden):
    return np.ma.masked_array(values, [index in hidden for index in range(len(values))])


def test_masked_values_are_never_used():
    """A masked number is a missing number in every column."""
    hours = mechanism(studies.NUMBER)
    for values in (np.asarray([24.0, 3.0]), np.asarray([24, 3])):
        assert quantise_many(hours, masked(values)).tolist() == [hours.quantise(24), hours.quantise(3)]
        with raises(AnswerError, "core.row", "2: is missing", field="hours"):
            quantise_many(hours, masked(values, 1))
    for question in (studies.LINEAR, studies.RECORD):
        columns = {"age": masked([40.0, 20.0]), "years": masked([20, 5], 0), "rate": np.asarray([1.0, 2.0])}
        with raises(AnswerError, "core.row", "1: is missing"):
            quantise_many(mechanism(question), columns)


def test_masked_choice_is_a_missing_answer():
    for question, values in (
        (studies.CHOICE, np.asarray(["worker", "worker"])),
        (studies.NEWER[1], np.asarray([3, 4])),
        (studies.YES_NO, np.asarray([True, False])),
    ):
        assert len(quantise_many(mechanism(question), masked(values))) == 2
        with pytest.raises(AnswerError):
            quantise_many(mechanism(question), masked(values, 1))
    risk = {"age": np.ones(2), "years": np.ones(2), "affair": masked([True, False], 1)}
    with raises(AnswerError, "core.booleans", "affair"):
        quantise_many(mechanism(studies.LOGISTIC), risk)


def test_numpy_booleans_are_rejected_as_numbers():
    for question, answer in (
        (studies.NUMBER, np.bool_(True)),
        (studies.NUMBER, np.asarray(True)),
        (studies.LINEAR, {**studies.ANSWERS["rating"], "age": np.bool_(False)}),
    ):
        with raises(AnswerError, "core.number"):
            mechanism(question).quantise(answer)
    assert mechanism(studies.NUMBER).quantise(np.float32(3)) == mechanism(studies.NUMBER).quantise(3)


def test_products_are_scaled_exactly_close_to_a_half_too():
    multipliers = [1 << 59, (1 << 41) + 1, (1 << 37) - 3]
    random = np.random.default_rng(5)
    products = random.integers(-(1 << 40), 1 << 40, (500, 3))
    products[:, 0] = random.integers(-1000, 1000, 500)
    exact = [[(p * m + (1 << 59)) >> 60 for p, m in zip(row, multipliers)] for row in products.tolist()]
    assert numbers.scaled(products, multipliers).tolist() == exact


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_every_payload_of_many_chunks_is_possible(question, monkeypatch):
    monkeypatch.setattr(perturbing, "CHUNK", 1 << 9)
    m = mechanism(question)
    payloads = payloads_of(m, [ANSWERS[question["id"]]] * 157)
    assert payloads.shape == (157, m.payload_size)
    assert len({payload.tobytes() for payload in payloads}) > 1
    for payload in payloads:
        m.check(payload.tobytes())
    assert payloads_of(m, []).shape == (0, m.payload_size)


def test_memory_is_bounded_by_chunks():
    m = mechanism(studies.CHOICE, choices={"count": 1024})
    tracemalloc.start()
    payloads = payloads_of(m, np.zeros(40_000, np.int64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < payloads.nbytes + (8 << 20)


def test_every_mechanism_has_a_bulk_form():
    """A share of a secure sum's noise is a device's own affair, and a table a holder's: one form serves."""
    alone = {"summed_gaussian", "table_statistics", "table_normal_equations", "table_statistics_laplace"}
    assert set(MECHANISMS) - set(perturbing.RANDOMISERS) == alone
