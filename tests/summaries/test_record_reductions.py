"""Perturbed records: exact sums if they suffice, otherwise the reports themselves."""

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.documents.errors import SummaryError
from ldp_client.mechanisms.base import pack_signed, unpack_signed
from schemas import Study
from summaries import QuestionSummary, Summary, summarize
from summaries.reductions import REDUCTIONS
from summaries.reductions.records import record_moments, record_rows
from tests import studies
from tests.kit import reporting
from tests.kit.errors import raises

NUMBER = Study(studies.document(studies.RECORD))
YES_NO = Study(studies.document(studies.YES_NO_RECORD))


def reports_of(study, count):
    return reporting.reports_of(study, [studies.NEWER_ANSWERS[study.questions[0].id]] * count)


def test_moments_match_exact_sums_of_reports():
    reports = reports_of(NUMBER, 500)
    summary = summarize(NUMBER, reports)
    m = mechanism_for(NUMBER.questions[0])
    sums, products = record_moments(m, summary.questions["wage"].values)
    z = [unpack_signed(report.payloads["wage"]) for report in reports]
    scaled = np.asarray(z, object) / np.asarray([m.grid, m.grid, m.response_grid])
    assert sums.tolist() == pytest.approx(scaled.sum(axis=0).tolist(), rel=1e-12)
    assert products.ravel().tolist() == pytest.approx((scaled.T @ scaled).ravel().tolist(), rel=1e-12)


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
    reports = reports_of(YES_NO, 20)
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
    summary = summarize(YES_NO, reports_of(YES_NO, 3))
    with raises(SummaryError, "summary.not_serializable", field="questions.chance"):
        summary.to_json()
    document = Summary.empty(NUMBER).to_json().replace(NUMBER.digest, YES_NO.digest)
    with raises(SummaryError, "summary.part_needs_reports", field="questions.chance"):
        Summary.from_json(document.replace('"wage"', '"chance"'), YES_NO)
