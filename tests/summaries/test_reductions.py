"""Reports are counted in bulk as mechanisms read each, and decoded to readable and unbiased columns."""

import json

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import SummaryError
from ldp_client.mechanisms.base import pack_signed, unpack_signed
from schemas import Report, Study
from summaries import QuestionSummary, Summary, summarize
from summaries.decoding import Decoding, decoder_of
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import BITS_AT_ONCE, MOST_IN_BYTE, column_sums, keeps_patterns
from summaries.reductions.histogram import REACH, histogram_edges
from summaries.reductions.records import record_moments, record_rows
from tests import studies
from tests.kit import reporting
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import CHOICES

N = 300
WORDS = ("randomized_response", "hadamard")


def of_choices(name, count):
    stated = {"choices": {"count": count}, "mechanism": {"name": name, "epsilon": "1"}}
    return studies.mechanism_of(studies.CHOICE, **stated)


def reports_of(m):
    """Payloads, and which choices each supports, shape (N, choices)."""
    payloads = [m.perturb(m.labels[index % m.choices]) for index in range(N)]
    sets = [[m.supported(payload, index) for index in range(m.choices)] for payload in payloads]
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(N, -1), np.asarray(sets, dtype=np.int64)


@pytest.mark.parametrize("count", [12, 300])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_counted_as_words_patterns_or_column_sums(name, count):
    m = of_choices(name, count)
    payloads, sets = reports_of(m)
    if name in WORDS:
        words = [int.from_bytes(payload.tobytes(), "big") for payload in payloads]
        expected = np.bincount(words, minlength=m.columns if name == "hadamard" else count)
    elif keeps_patterns(count):
        expected = np.bincount(sets @ (1 << np.arange(count)), minlength=1 << count)
    else:
        expected = sets.sum(axis=0)
    reduction = REDUCTIONS[name]
    values = reduction.reduce(m, payloads)
    assert values.tolist() == expected.tolist()
    assert len(values) == reduction.size(m)
    assert reduction.possible(m, N, values)
    assert not reduction.possible(m, 1, values)
    values[-1] = -1
    assert not reduction.possible(m, N, values)


KEPT = {
    question["id"]: studies.mechanism_of(question) for question in (studies.MEMOIZED, studies.MEMOIZED_BITS)
}


@pytest.mark.parametrize("name", [*CHOICES, *KEPT])
def test_reports_are_decoded_to_the_sets_they_support(name):
    """Memoized reports are decoded like those of the memoized mechanism."""
    m = KEPT.get(name) or of_choices(name, 12)
    payloads, sets = reports_of(m)
    bits = np.unpackbits(sets_of(m, payloads), axis=1, bitorder="little")[:, : m.choices]
    assert bits.tolist() == sets.tolist()


@pytest.mark.parametrize("levels", [1, 256, 3_000_001, None])
@pytest.mark.parametrize("question", [studies.NUMBER, studies.NORMAL], ids=["laplace", "gaussian"])
def test_the_histogram_puts_every_grid_point_between_its_edges(question, levels):
    m = studies.mechanism_of(question)
    m.levels = levels or m.levels
    edges = histogram_edges(m.levels, REACH[m.name])
    reduction = REDUCTIONS[m.name]
    assert len(edges) + 1 == reduction.size(m)
    assert (edges[0], edges[-1]) == (-0.5 - REACH[m.name], m.levels + REACH[m.name] + 0.5)
    points = np.concatenate([edges - 0.5, edges + 0.5, [-(2**30), 2**30]])[:: max(1, len(edges) // 300)]
    payloads = np.frombuffer(pack_signed(points.astype(int).tolist()), np.uint8).reshape(-1, 4)
    found = [reduction.reduce(m, payload[None]).argmax() for payload in payloads]
    assert found == np.searchsorted(edges, points).tolist()
    if m.name == "gaussian":
        assert edges[-1] - m.levels > 5.9 * m.scale
        assert np.diff(edges).max() <= m.scale / 32 + 1


@pytest.mark.parametrize("columns", [1, 65, 130, BITS_AT_ONCE // 100])
@pytest.mark.parametrize("rows", [0, 3, MOST_IN_BYTE, MOST_IN_BYTE + 1, 3 * MOST_IN_BYTE + 5])
def test_column_sums_match_unpacked_bits(rows: int, columns: int) -> None:
    bits = (np.random.default_rng(rows).random((rows, columns)) < 0.99).astype(np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert column_sums(packed, columns).tolist() == bits.sum(axis=0).tolist()


NUMBER = Study(studies.document(studies.RECORD))
YES_NO = Study(studies.document(studies.YES_NO_RECORD))


def alike(study, count):
    """Reports of people with the same answer to the only question."""
    (question,) = study.questions
    return reporting.reports_of(study, [{**studies.ANSWERS, **studies.NEWER_ANSWERS}[question.id]] * count)


def test_sums_of_the_largest_possible_entries_are_exact():
    """Products of 2**52, more of them than 63 bits hold."""
    m = mechanism_for(NUMBER.questions[0])
    extremes = [m.radius + (16 << 20), -m.radius - (16 << 20), m.response_grid + (16 << 20)]
    payloads = np.frombuffer(pack_signed(extremes) * 5000, np.uint8).reshape(5000, -1)
    whole = QuestionSummary.of(m, payloads)
    for _ in range(9):
        whole = whole.merge(whole)
    n = whole.n
    assert n == 5000 * 2**9
    assert n * extremes[0] ** 2 > 1 << 63
    sums, products = record_moments(m, whole.values)
    scaled = [value / grid for value, grid in zip(extremes, [m.grid, m.grid, m.response_grid])]
    assert sums.tolist() == pytest.approx([n * value for value in scaled], rel=1e-14)
    assert products.ravel().tolist() == pytest.approx(
        (n * np.outer(scaled, scaled)).ravel().tolist(), rel=1e-14
    )
    assert REDUCTIONS["gaussian_record"].possible(m, n, whole.values)
    assert not REDUCTIONS["gaussian_record"].possible(m, n // 2, whole.values)


def test_reports_with_a_yes_no_response_are_kept_whole(monkeypatch):
    reports = alike(YES_NO, 20)
    monkeypatch.setattr("summaries.reducing.CHUNK", 7)
    part = summarize(YES_NO, reports).questions["chance"]
    m = mechanism_for(YES_NO.questions[0])
    assert part.n == 20
    assert part.reports.tobytes() == b"".join(report.payloads["chance"] for report in reports)
    features, responses = record_rows(m, part.reports)
    for report, row, response in zip(reports, features, responses):
        payload = report.payloads["chance"]
        assert row.tolist() == [value / m.grid for value in unpack_signed(payload[:-1])]
        assert response == payload[-1]
    assert len(Summary.empty(YES_NO).questions["chance"].reports) == 0


def test_kept_reports_cannot_be_written_to_a_summary_file():
    summary = summarize(YES_NO, alike(YES_NO, 3))
    with raises(SummaryError, "summary.not_serializable", field="questions.chance"):
        summary.to_json()
    document = Summary.empty(NUMBER).to_json().replace(NUMBER.digest, YES_NO.digest)
    with raises(SummaryError, "summary.part_needs_reports", field="questions.chance"):
        Summary.from_json(document.replace('"wage"', '"chance"'), YES_NO)


MANY = 4000
# A false alarm in 2 million; the draws are the same each time.
MOST_SD = 5.0


def columns_of(question, answer):
    mechanism = studies.mechanism_of(question)
    random = NotForRealAnswers(np.random.default_rng(3).bytes)
    decoder = decoder_of(mechanism)
    rows = [decoder.cells(mechanism.perturb(answer, random)) for _ in range(MANY)]
    return dict(zip(decoder.columns, zip(*rows)))


def require_mean(values, truth):
    values = np.asarray(values)
    assert abs(values.mean() - truth) < MOST_SD * values.std() / np.sqrt(MANY)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "olh", "hadamard", "randomized_response"])
def test_choice_columns_are_unbiased_for_every_mechanism(name):
    found = columns_of({**studies.CHOICE, "mechanism": {"name": name, "epsilon": "1"}}, "worker")
    labels = studies.CHOICE["choices"]
    assert list(found) == ["noisy.occupation", *(f"unbiased.occupation[{label}]" for label in labels)]
    for label in labels:
        require_mean(found[f"unbiased.occupation[{label}]"], float(label == "worker"))
    said = found["noisy.occupation"]
    if name == "randomized_response":
        assert set(said) == set(labels)
    else:
        assert all(set(json.loads(one)) <= set(labels) for one in said)


def test_yes_no_has_one_unbiased_column_also_memoized():
    for question in (studies.YES_NO, {**studies.MEMOIZED, "id": "ever"}):
        for answer in (True, False):
            found = columns_of(question, answer)
            assert list(found) == ["noisy.ever", "unbiased.ever"]
            require_mean(found["unbiased.ever"], float(answer))


def test_refusals_have_a_column_and_no_unbiased_number():
    number = {**studies.NUMBER, "refusal": {"share": "0.5"}}
    for answer in (None, 2.0):
        found = columns_of(number, answer)
        assert list(found) == ["noisy.hours", "refused.hours"]
        require_mean(found["refused.hours"], float(answer is None))
    found = columns_of({**studies.ONE_OF, "refusal": True}, None)
    assert {"student", None} < set(found["noisy.colour"])
    require_mean(found["refused.colour"], 1.0)
    require_mean(found["unbiased.colour[worker]"], 0.0)


def test_versions_share_columns_and_records_are_undecoded():
    """A question that changes its kind becomes text; a regression's record is named once as undecoded."""
    first = Study(studies.document(studies.YES_NO, studies.LINEAR))
    stated = {"name": "hadamard", "epsilon": "1"}
    many = {**studies.CHOICE, "id": "place", "choices": {"count": 65}, "mechanism": stated}
    second = Study(studies.document({**studies.NUMBER, "id": "ever"}, studies.LINEAR, many, version=2))
    decoding = Decoding(lambda version, _: {1: first, 2: second}[version])
    half = mechanism_for(second.questions[0]).levels // 2
    reports = [
        Report("0" * 32, "survey", 1, first.digest, {"ever": b"\x01"}),
        Report("1" * 32, "survey", 2, second.digest, {"ever": half.to_bytes(4, "big")}),
    ]
    for report in reports:
        decoding.meet(report)
    assert decoding.columns == {"noisy.ever": False, "unbiased.ever": True}
    assert decoding.undecoded == ["rating", "place"]
    assert decoding.cells(reports[0])["noisy.ever"] == "yes"
    assert decoding.cells(reports[1])["unbiased.ever"] == pytest.approx(6, abs=1e-4)
    # A table of numbers and texts has it as one; a spreadsheet takes it as what it is.
    assert isinstance(decoding.cells(reports[1])["noisy.ever"], float)
