"""Columns of reports are checked like single reports, and each id counts once."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, ReportError
from schemas import Study
from summaries import summarize, summarize_dataset
from summaries.engines.packing import Packer, possible
from summaries.findings import Findings
from summaries.rows import CONTENT, Reducer, once
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of
from tests.summaries.engines_data import FEW, REPORTS, STUDY, changed, made, table

REFUSABLE = {**studies.NUMBER, "id": "income", "refusal": {"share": "0.25"}}
PEOPLE = mechanisms_of(Study(studies.document(*studies.ALL, *studies.NEWER, REFUSABLE)))
HOLDERS = mechanisms_of(Study(studies.document(*studies.TABLES, **studies.HOLDER)))


@pytest.mark.parametrize("mechanism", [*PEOPLE.values(), *HOLDERS.values()], ids=lambda one: one.field)
def test_bulk_check_accepts_the_payloads_of_the_mechanism(mechanism):
    random = np.random.default_rng(3)
    size = mechanism.payload_size
    drawn = random.integers(0, 256, (400, size), dtype=np.uint8)
    # Of many bytes only small ones are numbers that reports may have; and a bit more or less.
    small = np.where(random.random((400, size)) < 0.9, drawn & 1, drawn)
    edges = np.array(
        [[0] * size, [255] * size, [128] + [0] * (size - 1), [127] + [255] * (size - 1)], np.uint8
    )
    answers = {**studies.ANSWERS, **studies.NEWER_ANSWERS, "income": None}
    good = edges
    if mechanism.field in answers:
        reports = [mechanism.perturb(answers[mechanism.field]) for _ in range(40)]
        good = np.frombuffer(b"".join(reports), np.uint8).reshape(40, -1)
        assert possible(mechanism, good).all()
    payloads = np.concatenate([drawn, small, edges, good])
    wanted = []
    for payload in payloads:
        try:
            mechanism.check(payload.tobytes())
            wanted.append(True)
        except ReportError:
            wanted.append(False)
    assert possible(mechanism, payloads).tolist() == wanted
    # Of 40 choices every pattern of bits may be.
    assert not all(wanted) or mechanism.field == "sue"


def packed(study, reports, change=lambda batch: batch):
    found = Findings(study)
    (batch,) = change(table(reports)).combine_chunks().to_batches()
    return Packer(study, found).pack(batch, 0, "file"), found


def as_texts(given):
    """The same columns in types that other programs write."""
    for name, kind in (("report_id", pa.large_string()), ("study", pa.string()), ("version", pa.int32())):
        given = given.set_column(given.column_names.index(name), name, given[name].cast(kind))
    return given.append_column("noisy.ever", pa.array(["no"] * len(given)))


DRAWN = Study({**FEW.document, "sample_one_question": True})
ONE_OF_TWO = reports_of(DRAWN, [{"ever": True, "occupation": "worker", "region": "north"}] * 60)


@pytest.mark.parametrize(
    ("study", "reports", "change"),
    [
        (STUDY, REPORTS[:60], lambda given: given),
        (STUDY, REPORTS[:60], as_texts),
        (DRAWN, ONE_OF_TWO, lambda given: given),
    ],
)
def test_rows_reduce_to_the_summary_of_their_reports(study, reports, change):
    rows, found = packed(study, reports, change)
    reducer = Reducer(study)
    for begin in range(0, 60, 25):
        reducer.add(rows[begin : begin + 25])
    assert reducer.summary().to_json() == summarize(study, reports).to_json()
    assert (found.read, found.refused) == (60, 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": "g" * 32}, "report: id: must be 32 lower-case"),
        ({"public": {"region": "east"}}, "report: public.region: is not one of the values"),
        ({"public": {}}, "report: public.region: is missing"),
        ({"version": 2}, "report: version: the digest belongs to survey, version 1"),
        ({"payloads": {"ever": b"\2", "occupation": b"\0"}}, "report: payloads.ever: is not among"),
        ({"payloads": {"ever": b"\1"}}, "report: payloads.occupation: is missing"),
        ({"payloads": {"ever": b"\1", "occupation": b"\0", "new": b""}}, "report: payloads.new: the study"),
    ],
)
def test_invalid_row_is_rejected_with_the_usual_reason(change, why):
    reports = made(FEW, 5)
    rows, found = packed(FEW, [*reports, changed(reports[0], **change)])
    assert len(rows) == 5
    (said,) = found.shown
    assert said.startswith(f"file, row 6: {why}")


def test_each_id_counts_once_and_clashes_are_found():
    rows, _ = packed(FEW, made(FEW, 2000))
    again = rows[:50].copy()
    again[:, 0] = 255
    other = rows[100:103].copy()
    other[:, 1:3] = 1
    other[:, CONTENT] ^= 1
    # The first half of an id alone does not make two reports one.
    half = rows[500:501].copy()
    half[:, CONTENT - 1] ^= 1
    order = np.random.default_rng(1).permutation(2054)
    found = once(np.concatenate([rows, again, other, half])[order])
    assert (len(found.kept), found.repeated, len(found.clashes)) == (2001, 50, 3)
    assert {one for _, one in found.clashes} == {bytes(row[8:24]).hex() for row in other}
    assert len(np.unique(found.kept[:, 8:24], axis=0)) == 2001


SOME = table(REPORTS[:20])
TRUE = pa.array([True] * 20)
AS_TEXT = [
    {name: payload and payload.decode("latin1") for name, payload in payloads.items()}
    for payloads in SOME["payloads"].to_pylist()
]


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("payloads", pa.array(AS_TEXT)),
        ("report_id", SOME["report_id"].cast(pa.binary()).combine_chunks()),
        ("version", TRUE),
        ("version", TRUE.dictionary_encode()),
    ],
    ids=["text", "bytes", "true", "a word for true"],
)
def test_engine_rejects_column_types_that_the_row_reader_rejects(name, values, tmp_path):
    """Give an engine a column of a type that is refused where reports are read one by one."""
    path = str(tmp_path / "x.parquet")
    pa.parquet.write_table(SOME.set_column(SOME.schema.get_field_index(name), name, values), path)
    with raises(InputError, "reports.many_refused", "20 of 20") as wanted:
        summarize(STUDY, [path])
    with pytest.raises(InputError) as refused:
        summarize_dataset(STUDY, path, workers=1)
    assert str(refused.value) == str(wanted.value)
