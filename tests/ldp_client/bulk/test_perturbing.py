"""perturb_many: the same integers as one by one where the bytes are read alike, else the same exact law.

The holder of answers learns how many were clipped; a report does not depend on that.
"""

import io
import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow
import pytest

from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many, perturbing, randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.bulk.randomising import below, biased_bits, draw
from ldp_client.columns.clipping import is_clipped
from ldp_client.core import strips
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError, InputError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import READS, law_of
from tests.statistics import Stream, follows, no_noise, seeded
from tests.studies import mechanism_of as mechanism

REFUSABLE = {**studies.NUMBER, "id": "income", "refusal": {"share": "0.25"}}
QUESTIONS = [*studies.ALL, *studies.NEWER, REFUSABLE]
ANSWERS = {**studies.ANSWERS, **studies.NEWER_ANSWERS, "income": 3.5}
# These read their random bytes in another order than for one answer.
REORDERED = {"oue", "sue"}
WORD = 1 << 32


def payloads_of(m, answers, random=None):
    """perturb_many, also of memoized questions; from a seed unless a source is given."""
    return randomise_many(m, quantise_many(m, answers), random or seeded(m.name, m.payload_size))


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_noise_is_the_scalar_samplers_from_the_same_bytes(law):
    """Every path: accepted at once, compared with the curve, rejected, restarted in the tail."""
    many, one = Stream(1), Stream(1)
    drawn = draw(law, 20_000, many)
    assert drawn.tolist() == strips.table_of(law).draw(20_000, one)
    assert many.taken == one.taken


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_perturb_many_of_one_answer_equals_perturb(question):
    """Unary encodings read their bytes in another order: for them, see their laws below."""
    m, answer = mechanism(question), ANSWERS[question["id"]]
    reordered = m.name in REORDERED or getattr(m, "of", "") == "sue"
    differing = 0
    for seed in range(10):
        many, one = Stream(seed), Stream(seed)
        differing += payloads_of(m, [answer], many).tobytes() != m.perturb(answer, one)
        differing += not reordered and many.taken != one.taken
    assert (differing > 0) == reordered


@pytest.mark.parametrize("threshold", [1, 255, 1155094610, WORD - 256, WORD - 1])
def test_biased_bits_are_decided_exactly_at_the_threshold(threshold):
    for number in (0, threshold - 1, threshold, min(threshold + 1, WORD - 1), WORD - 1, 0x45000000):
        # The highest byte of each fraction, then the lower ones where they decide.
        highest, rest = number.to_bytes(4, "big")[:1], number.to_bytes(4, "big")[1:] + b"\0"
        stream = io.BytesIO(highest * 40 + rest * 40)
        bits = biased_bits(threshold, 5, NotForRealAnswers(stream.read))
        assert bits.tolist() == [255 * (number < threshold)] * 5


@pytest.mark.parametrize("name", sorted(REORDERED))
def test_choices_follow_the_exact_joint_law(name):
    m = mechanism(studies.choice_of(name, 3))
    index = 2
    payloads = payloads_of(m, np.full(10_000, index))
    seen = Counter(payload.tobytes() for payload in payloads)
    for answered in range(3):
        law = law_of(m, answered, READS[name](m))
        assert set(seen) <= set(law)
        counts = [seen[payload] for payload in law]
        assert follows(counts, [float(chance) for chance in law.values()]) == (answered == index)


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
    assert quantise_many(m, np.ma.masked_array(values)).tolist() == quantise_many(m, values).tolist()
    labels = np.asarray(["worker", "student", "worker"])
    assert quantise_many(mechanism(studies.CHOICE), labels).tolist() == [1, 0, 1]


@pytest.mark.parametrize("question", [studies.LINEAR, studies.LOGISTIC], ids=["linear", "logistic"])
def test_columns_of_records_are_quantised_as_one_by_one(question):
    m = mechanism(question, norm="0.7")
    random = np.random.default_rng(4)
    columns = {"age": random.uniform(10, 50, 2000), "years": random.uniform(-5, 30, 2000)}
    columns["age"][: len(NUMBERS)], columns["years"][5 : 5 + len(NUMBERS)] = NUMBERS, NUMBERS
    name = question["response"]["id"]
    columns[name] = random.random(2000) < 0.5 if m.binary else random.uniform(0, 6, 2000)
    records = [{key: column[place].item() for key, column in columns.items()} for place in range(2000)]
    expected = [m.quantise(record) for record in records]
    for age in (columns["age"], pd.Series(columns["age"], dtype="Float64")):
        assert quantise_many(m, {**columns, "age": age}).tolist() == expected


@pytest.mark.parametrize("question", [studies.RECORD, studies.YES_NO_RECORD], ids=["number", "yes or no"])
def test_records_on_a_fine_grid_are_quantised_as_one_by_one(question):
    """Squares of 20 features exceed 64 bits at this norm."""
    names = [f"x{place}" for place in range(20)]
    features = [{"id": name, "bounds": ["0", "1"]} for name in names]
    stated = {**studies.NOISY_RECORD, "epsilon": "8", "delta": "1e-3"}
    m = mechanism(question, norm="0.0011", features=features, mechanism=stated)
    ends = np.random.default_rng(7).integers(0, 2, (20, 20))
    columns = {**dict(zip(names, ends.T)), question["response"]["id"]: np.full(20, True if m.binary else 2.0)}
    for given in (columns, {name: column.tolist() for name, column in columns.items()}):
        records = [{name: column[row].item() for name, column in columns.items()} for row in range(20)]
        assert np.asarray(quantise_many(m, given)).tolist() == [m.quantise(record) for record in records]
    with raises(AnswerError, "core.one_column", field=f"{m.field}.x3"):
        quantise_many(m, {**columns, "x3": np.zeros(19)})


ONES, AGES = np.ones(2), {"age": np.ones(2), "years": np.ones(2)}
TIMES = np.array([8, 9], "timedelta64[h]")
# (question, code of the error, answers)
WRONG = [
    (studies.NUMBER, "core.row", np.asarray(["secret"])),
    (studies.NUMBER, "core.row", np.asarray([3.0, -np.inf])),
    (studies.NUMBER, "core.row", [3.0, None]),
    (studies.NUMBER, "core.times", TIMES),
    (studies.NUMBER, "core.times", TIMES.astype("timedelta64[ns]").astype(int).astype("datetime64[ns]")),
    (studies.NUMBER, "core.row", [8, np.timedelta64(4)]),
    (studies.NUMBER, "core.row", np.ma.masked_array([3, 24], [False, True])),
    (studies.CHOICE, "core.row", np.asarray(["worker", "secret"])),
    (studies.CHOICE, "core.row", np.ma.masked_array(["worker", "worker"], [False, True])),
    (studies.NEWER[1], "core.row", np.asarray([40])),
    (studies.NEWER[1], "core.row", np.asarray([1.0])),
    (studies.YES_NO, "core.row", np.ma.masked_array([True, False], [False, True])),
    (studies.LINEAR, "core.missing", AGES),
    (studies.LINEAR, "core.one_column", {**AGES, "years": np.ones(3), "rate": ONES}),
    (studies.LINEAR, "core.row", {**AGES, "years": np.asarray(["secret"] * 2), "rate": ONES}),
    (studies.LINEAR, "core.row", {**AGES, "years": [True, 30], "rate": ONES}),
    (studies.LINEAR, "core.times", {**AGES, "years": TIMES, "rate": ONES}),
    (studies.LINEAR, "core.row", {**AGES, "years": np.ma.masked_array([1, 1], [True, False]), "rate": ONES}),
    (studies.LINEAR, "core.unasked_field", {**AGES, "rate": ONES, "more": ONES}),
    (studies.LOGISTIC, "core.booleans", {**AGES, "affair": ONES}),
    (studies.LOGISTIC, "core.booleans", {**AGES, "affair": np.ma.masked_array([True, False], [True, False])}),
    (studies.RECORD, "core.row", {**AGES, "age": [1.0, True], "rate": ONES}),
    # Below a blank of pandas lies an arbitrary number.
    (studies.LINEAR, "core.row", {**AGES, "rate": pd.Series([1, None], dtype="Int64")}),
    (studies.RECORD, "core.row", {**AGES, "rate": pd.Series([1, None], dtype="Float64")}),
    *[(studies.NUMBER, "core.rows", answers) for answers in ("89", b"89", {8, 9}, 8.0, np.array(8.0), None)],
]


@pytest.mark.parametrize(("question", "code", "answers"), WRONG)
def test_arrays_that_do_not_fit_are_refused_before_any_noise(question, code, answers):
    """NumPy takes some times for numbers: eight hours would be 28,800,000,000,000."""
    with raises(AnswerError, code) as caught:
        perturb_many(mechanism(question), answers, no_noise)
    assert "secret" not in str(caught.value)
    assert caught.value.field.startswith(question["id"])


def test_perturb_many_rejects_a_study_given_as_mechanism():
    with raises(InputError, "files.one_mechanism"):
        perturb_many(Study(studies.document(studies.YES_NO)), np.ones(3, bool))


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


RECORDS = {"age": [17.5, 42, 50, 29.75], "years": [0, 23, 3, 30], "rate": [1, 5, 3, 3]}
WIDE = {"norm": "1.4142135624"}


@pytest.mark.parametrize("asked", [studies.LINEAR, studies.RECORD], ids=["sums", "record"])
@pytest.mark.parametrize(("norm", "clipped"), [({}, [1, 1, 1, 1]), (WIDE, [0, 0, 1, 1])])
def test_values_beyond_bounds_or_norm_are_clipped(asked, norm, clipped):
    records = [dict(zip(RECORDS, values)) for values in zip(*RECORDS.values())]
    its = studies.question_of(asked, **norm)
    for what in (its, mechanism_for(its)):
        assert [is_clipped(what, record) for record in records] == clipped


def test_perturb_many_warns_of_clipping_in_one_line(caplog):
    """pyarrow numbers do not compare with others; a huge integer does not convert to a float."""
    hours = mechanism(studies.NUMBER)
    for answers in (np.asarray([0.0, 12.5, -1.0]), [0.0, 12.5, -1.0], pyarrow.array([3.0, 12.5, -1.0])):
        perturb_many(hours, answers)
    perturb_many(hours, [0.0, 12.0])
    for asked, columns in (
        (studies.LINEAR, {name: np.asarray(column) for name, column in RECORDS.items()}),
        (studies.RECORD, {"age": [42, 10**400], "years": [23, 23], "rate": [5, 5]}),
    ):
        perturb_many(mechanism(asked, **WIDE), columns)
    warned = [line.partition(": ")[2] for line in caplog.messages]
    assert warned == [*["hours 2 of 3"] * 3, "rating 2 of 4", "wage 1 of 2"]


@pytest.mark.parametrize(
    ("document", "text", "warned"),
    [
        (studies.document(studies.NUMBER), "hours\n0\n12\n", None),
        (
            studies.document(studies.NUMBER, studies.AGE, studies.YES_NO),
            "hours,age,ever\n3,20,yes\n60,20,no\n13,10,no\n",
            "hours 2 of 3, age 1 of 3",
        ),
        (
            studies.document({**studies.TABLE, **WIDE}, **studies.HOLDER),
            "t,v,pe\n" + "10,40,480\n" * 400 + "50,40,480\n10,40,600\n",
            "power 2 of 402",
        ),
    ],
)
def test_file_of_answers_warns_of_clipping_per_question(tmp_path, capsys, document, text, warned):
    (tmp_path / "study.json").write_text(json.dumps(document))
    (tmp_path / "answers.csv").write_text(text)
    paths = [str(tmp_path / name) for name in ("study.json", "answers.csv", "out.ndjson")]
    assert main(["perturb", *paths[:2], "--out", paths[2]]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "clipped" in line]
    assert said == ([f"clipped to the study's bounds or norm: {warned}"] if warned else [])
