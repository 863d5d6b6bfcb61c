"""Columns of reports are checked like single reports, and each id counts once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, ReportError
from schemas import Study
from summaries import dask_summary, spark_summary, summarize, summarize_dataset
from summaries.engines.packing import Packer
from summaries.engines.parts import Part
from summaries.engines.possible import possible
from summaries.engines.reducer import Reducer
from summaries.engines.rows import CONTENT, RowLayout, halves_of, once, parts_of
from tests import studies
from tests.summaries.engines_data import FEW, STUDY, changed, made, table

MECHANISMS = mechanisms_of(Study(studies.document(*studies.ALL, *studies.NEWER)))
HOLDERS = mechanisms_of(Study(studies.document(*studies.TABLES, **studies.HOLDER)))


def is_taken(mechanism, payload):
    try:
        mechanism.check(payload)
    except ReportError:
        return False
    return True


@pytest.mark.parametrize("mechanism", [*MECHANISMS.values(), *HOLDERS.values()], ids=lambda one: one.field)
def test_bulk_check_accepts_the_payloads_of_the_mechanism(mechanism):
    random = np.random.default_rng(3)
    size = mechanism.payload_size
    drawn = random.integers(0, 256, (400, size), dtype=np.uint8)
    # Of many bytes only small ones are numbers that reports may have; and a bit more or less.
    small = np.where(random.random((400, size)) < 0.9, drawn & 1, drawn)
    edges = np.array(
        [[0] * size, [255] * size, [128] + [0] * (size - 1), [127] + [255] * (size - 1)], np.uint8
    )
    if mechanism.field in studies.NEWER_ANSWERS or mechanism.field in studies.ANSWERS:
        answer = {**studies.ANSWERS, **studies.NEWER_ANSWERS}[mechanism.field]
        good = np.frombuffer(b"".join(mechanism.perturb(answer) for _ in range(40)), np.uint8).reshape(40, -1)
        assert possible(mechanism, good).all()
    else:
        good = edges
    payloads = np.concatenate([drawn, small, edges, good])
    wanted = [is_taken(mechanism, payload.tobytes()) for payload in payloads]
    assert possible(mechanism, payloads).tolist() == wanted
    # Of 40 choices every pattern of bits may be.
    assert not all(wanted) or mechanism.field == "sue"


def packed(study, reports, change=lambda batch: batch):
    found = Part.empty(study)
    (batch,) = change(table(reports)).combine_chunks().to_batches()
    return Packer(study, found).pack(batch, 0, "file"), found


def as_texts(given):
    """The same columns in types that other programs write."""
    for name, kind in (("report_id", pa.large_string()), ("study", pa.string()), ("version", pa.int32())):
        given = given.set_column(given.column_names.index(name), name, given[name].cast(kind))
    return given.append_column("noisy.ever", pa.array(["no"] * len(given)))


@pytest.mark.parametrize("change", [lambda given: given, as_texts])
def test_rows_reduce_to_the_summary_of_their_reports(change):
    reports = made(STUDY, 60)
    rows, found = packed(STUDY, reports, change)
    reducer = Reducer(STUDY)
    for begin in range(0, 60, 25):
        reducer.add(rows[begin : begin + 25])
    assert reducer.summary().to_json() == summarize(STUDY, reports).to_json()
    assert (found.read, found.bad.count) == (60, 0)


def test_rows_of_sample_one_study_reduce_to_their_summary():
    study = Study(studies.document(studies.YES_NO, studies.CHOICE, studies.AGE, sample_one_question=True))
    reports = [
        changed(
            report, payloads={name: report.payloads[name] for name in [list(report.payloads)[number % 3]]}
        )
        for number, report in enumerate(made(study, 50))
    ]
    rows, found = packed(study, reports)
    reducer = Reducer(study)
    reducer.add(rows)
    assert reducer.summary().to_json() == summarize(study, reports).to_json()
    both = changed(reports[0], payloads={**reports[0].payloads, **reports[1].payloads})
    rows, found = packed(study, [*reports, both])
    assert (len(rows), found.bad.count) == (50, 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": "g" * 32}, "report: id: must be 32 lower-case"),
        ({"id": "ab"}, "report: id: must be 32 lower-case"),
        ({"id": "AB" * 16}, "report: id: must be 32 lower-case"),
        ({"public": {"region": "east"}}, "report: public.region: is not one of the values"),
        ({"public": {}}, "report: public.region: is missing"),
        ({"version": 2}, "report: version: the digest belongs to survey, version 1"),
        ({"payloads": {"ever": b"\2", "occupation": b"\0"}}, "report: payloads.ever: is not one"),
        ({"payloads": {"ever": b"\1"}}, "report: payloads.occupation: is missing"),
        ({"payloads": {"ever": b"\1\1", "occupation": b"\0"}}, "report: payloads.ever: must have 1 byte"),
        ({"payloads": {"ever": b"\1", "occupation": b"\0", "new": b""}}, "report: payloads.new: the study"),
    ],
)  # fmt: skip
def test_invalid_row_is_rejected_with_the_usual_reason(change, why):
    reports = made(FEW, 5)
    rows, found = packed(FEW, [*reports, changed(reports[0], **change)])
    assert len(rows) == 5
    (said,) = found.bad.shown
    assert said.startswith(f"file, row 6: {why}")


def test_rows_of_other_studies_are_counted_and_a_few_shown():
    reports = made(FEW, 5)
    others = [changed(one, digest="0" * 64, version=2) for one in made(FEW, 7, seed=2)]
    foreign = [changed(one, study="another") for one in others]
    rows, found = packed(FEW, [*others, *reports, *[changed(one, digest="1" * 64) for one in foreign]])
    assert (len(rows), found.bad.count) == (5, 0)
    assert found.others.versions == {(2, "0" * 64): 7}
    assert found.others.foreign.count == 7
    assert [one.partition(":")[0] for one in found.others.foreign.shown] == [
        f"file, row {n}" for n in (13, 14, 15)
    ]


def test_table_without_report_columns_is_rejected():
    _, found = packed(FEW, made(FEW, 3), lambda given: given.drop_columns("payloads"))
    assert found.bad.count == 3
    assert found.bad.shown[0] == "file, row 1: report: the row lacks a column of an export"


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


@pytest.mark.parametrize("bits", [0, 1, 5, 12])
def test_rows_are_split_by_the_first_bits_of_their_ids(bits):
    rows, _ = packed(FEW, made(FEW, 300))
    parts = dict(parts_of(rows, bits))
    assert sum(map(len, parts.values())) == 300
    for number, some in parts.items():
        assert (halves_of(some)[0] >> np.uint64(64 - bits) == number).all() if bits else number == 0
    assert RowLayout(FEW).width == CONTENT + 4 + 1 + 1


def with_twice(name):
    """Columns of reports, of which one stands there again with what other people's reports have."""
    good, others = table(made(FEW, 20)), table(made(FEW, 20, seed=2))
    if "." not in name:
        return pa.table([*good.columns, others[name]], [*good.column_names, name])
    name, child = name.split(".")
    own, other = (one[name].combine_chunks() for one in (good, others))
    children = [field.name for field in own.type]
    again = pa.StructArray.from_arrays([*own.flatten(), other.field(child)], [*children, child])
    return good.set_column(good.column_names.index(name), name, again)


@pytest.mark.parametrize(
    "name", ["report_id", "version", "public", "payloads", "payloads.ever", "public.region"]
)
def test_duplicate_column_is_rejected_by_every_reader(tmp_path, name):
    given, path = with_twice(name), tmp_path / "twice.parquet"
    pq.write_table(given, path)
    said = f"has the column {name} twice"
    for refuse in (
        lambda: summarize_dataset(FEW, path),
        lambda: summarize(FEW, path),
        lambda: summarize(FEW, given),
        lambda: dask_summary(FEW, SimpleNamespace(columns=given.column_names)),
        lambda: spark_summary(FEW, SimpleNamespace(columns=given.column_names)),
        lambda: summarize(FEW, given.to_pandas()),
    )[: 3 if "." in name else 6]:
        with pytest.raises(InputError, match=said):
            refuse()


def test_duplicate_column_outside_reports_is_allowed(tmp_path):
    good = table(made(FEW, 20))
    given, path = (
        good.append_column("note", good["study"]).append_column("note", good["study"]),
        "own.parquet",
    )
    pq.write_table(given, tmp_path / path)
    assert summarize_dataset(FEW, tmp_path / path).to_json() == summarize(FEW, given).to_json()
