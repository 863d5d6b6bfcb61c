"""Analyses of counts that engines make equal analyses of the reports: tables of several private answers."""

from __future__ import annotations

from functools import partial

import pytest

from inference import analyse
from inference.analyses.reports import table_of_reports
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from summaries import count_dataset
from summaries.engines import parts
from tests import studies
from tests.kit.errors import raises
from tests.summaries.engines_data import FEW, changed, made, write, write_dataset

CELLS = made(FEW, 400)


def test_tables_from_counts_equal_tables_from_reports(tmp_path):
    write_dataset(tmp_path, CELLS)
    names = ["ever", "occupation", "region"]
    counts = count_dataset(FEW, tmp_path, names)
    for some in (names, ["ever", "region"], ["occupation", "ever"], ["ever"]):
        wanted, found = table_of_reports(FEW, CELLS, some), table_of_reports(FEW, counts, some)
        assert found.n == wanted.n == 400
        assert shape_of(found) == shape_of(wanted)
    with raises(InputError, "engine.not_counted_by", "region"):
        table_of_reports(FEW, count_dataset(FEW, tmp_path, ["ever"]), names)
    other = Study({**FEW.document, "version": FEW.version + 1})
    with raises(InputError, "fit.counts_of_other_study", other.id):
        table_of_reports(other, counts, names)
    with raises(UsageError, "engine.unknown_column", "age"):
        count_dataset(FEW, tmp_path, ["age"])


def shape_of(table):
    """What the rows of a table say, in any order."""
    private = [one.vectors[one.codes].tolist() for one in table.private.values()]
    return sorted(
        zip(
            table.counts.tolist(), map(str, table.public.to_dict("records")), *map(partial(map, str), private)
        )
    )


def test_reports_of_sample_one_study_are_counted(tmp_path):
    study = Study(studies.document(studies.YES_NO, studies.CHOICE, sample_one_question=True))
    reports = [
        changed(one, payloads=dict([list(one.payloads.items())[number % 2]]))
        for number, one in enumerate(made(study, 60))
    ]
    counts = count_dataset(study, write(tmp_path / "a.parquet", reports), ["ever"])
    assert shape_of(table_of_reports(study, counts, ["ever"])) == shape_of(
        table_of_reports(study, reports, ["ever"])
    )


def test_analysis_accepts_counts(tmp_path):
    counts = count_dataset(FEW, write(tmp_path / "a.parquet", CELLS), ["ever", "region"])
    how = {"method": "gaussian_approx", "draws": 100, "chains": 2}
    wanted, found = (analyse(FEW, given, "ever ~ region", **how) for given in (CELLS, counts))
    assert found.n == wanted.n
    assert set(found.draws) == set(wanted.draws)
    for name, values in wanted.draws.items():
        # Rows in another order round differently.
        assert found.draws[name].mean() == pytest.approx(values.mean(), abs=1e-3)


def test_counting_too_many_distinct_reports_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "MOST_DISTINCT", 7)
    with raises(InputError, "engine.too_many_distinct", "7"):
        count_dataset(FEW, write(tmp_path / "a.parquet", CELLS), ["ever", "occupation"])


def test_counting_stops_once_distinct_reports_are_too_many(tmp_path, monkeypatch):
    """Workers' counts are added up as they arrive: each may have few, and all together too many."""
    cells = CELLS[:40]
    write_dataset(tmp_path, cells, buckets=8, days=1)
    read = []

    def count():
        read.clear()
        told = lambda rows, _of: read.append(rows)  # noqa: E731
        return count_dataset(FEW, tmp_path, ["ever", "occupation", "region"], workers=1, told=told)

    distinct = len(count().seen)
    assert read[-1] == len(cells)
    monkeypatch.setattr(parts, "MOST_DISTINCT", distinct * 2 // 3)
    with raises(InputError, "engine.too_many_distinct", str(parts.MOST_DISTINCT)):
        count()
    assert 0 < read[-1] < len(cells)
