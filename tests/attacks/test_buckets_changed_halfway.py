"""A change of `--buckets` that stops halfway, and leaves reports in no file that the database loses then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.exports import dataset, layout
from collector.exports.layout import bucket_of
from collector.exports.store import Store
from collector.exports.workers import turns_of
from collector.operator.retention import delete_reports
from collector.storage.migrating import opened
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from summaries import summarize_dataset
from tests.collector.test_archives import closed, many  # noqa: F401
from tests.collector.test_datasets import STUDY, contents, manifest_of, reports_in
from tests.kit.errors import raises

COUNTS = (1, 2, 4, 16)
CHANGES = [(former, after) for former in COUNTS for after in COUNTS if former != after]


class FullDisk:
    """A store that takes so many more files, and deletes none behind them."""

    def __init__(self, monkeypatch, left):
        self.left = left
        for name in ("write_from", "write", "remove"):
            monkeypatch.setattr(Store, name, self.counting(getattr(Store, name)))

    def counting(self, genuine):
        def act(*arguments):
            self.left -= 1
            if self.left < 0:
                raise InputError("cannot write: No space left on device")
            return genuine(*arguments)

        return act


def in_files(root):
    return {one.id for path in root.rglob("part-*.parquet") for one in reports_in(path)}


def interrupted(order, monkeypatch, left):
    """Whether an export that may change so much is."""
    with monkeypatch.context() as here:
        FullDisk(here, left)
        try:
            dataset.export_dataset(order)
        except InputError:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("former", "after"), [(1, 4), (4, 16), (4, 2), (16, 1)])
def test_at_no_moment_is_a_report_in_no_file(closed, tmp_path, monkeypatch, former, after):  # noqa: F811
    root = tmp_path / "out"
    dataset.export_dataset(closed.order(root, buckets=former))
    order = closed.order(root, buckets=after)
    while interrupted(order, monkeypatch, 3):
        assert in_files(root) == closed.ids
        assert (root / STUDY / "_unfinished.json").exists()
    dataset.export_dataset(closed.order(tmp_path / "whole", buckets=after))
    assert contents(root) == contents(tmp_path / "whole")


@pytest.mark.parametrize("left", range(2, 14, 3))
def test_what_expires_after_that_is_kept_or_spoken_of(closed, tmp_path, monkeypatch, left):  # noqa: F811
    root, second = tmp_path / "out", closed.days[1]
    dataset.export_dataset(closed.order(root, buckets=1))
    order = closed.order(root, buckets=2)
    assert interrupted(order, monkeypatch, left)
    with opened(closed.url, 5) as database:
        delete_reports(database, "habits", second)
    with raises(InputError, "export.reports_lost"):
        dataset.export_dataset(order)
    assert in_files(root) == closed.ids
    dataset.export_dataset(replace(order, forget_before=second))
    assert len(in_files(root)) == manifest_of(root)["reports"] == 80


def test_what_is_withdrawn_after_that_leaves(closed, tmp_path, monkeypatch):  # noqa: F811
    root = tmp_path / "out"
    dataset.export_dataset(closed.order(root, buckets=4))
    order = closed.order(root, buckets=2)
    assert interrupted(order, monkeypatch, 7)
    gone = closed.sent[(1, closed.days[0])]
    for one in gone:
        assert closed.harness.withdraw(one.id, secret=one.secret).status_code == 200
    dataset.export_dataset(order)
    assert in_files(root) == closed.ids - {one.id for one in gone}


@pytest.mark.slow
def test_a_dataset_that_was_to_grow_goes_on_to_that(closed, tmp_path, monkeypatch):  # noqa: F811
    """Also where nobody says so any more; another number comes after that one."""
    root = tmp_path / "out"
    order = closed.order(root, buckets=None)
    dataset.export_dataset(order)
    monkeypatch.setattr(layout, "REPORTS_PER_PART", 6)
    # The last of the old files is replaced.
    left = 0
    while (root / STUDY / "_manifest.json").exists():
        left += 1
        assert interrupted(order, monkeypatch, left)
    monkeypatch.setattr(layout, "REPORTS_PER_PART", 20)
    with raises(InputError, "merge.dataset_unfinished"):
        summarize_dataset(Study.from_json(closed.studies[0].canonical()), str(root), workers=1)
    before = contents(root)
    said = r"was not finished with --buckets 4: run that again, which ends it"
    with pytest.raises(InputError, match=said) as error:
        dataset.export_dataset(replace(order, buckets=2))
    # By what lies there, not by the call.
    assert not isinstance(error.value, UsageError)
    assert contents(root) == before
    assert dataset.export_dataset(order).manifest.buckets == 4
    assert in_files(root) == closed.ids
    assert dataset.export_dataset(replace(order, buckets=2)).manifest.buckets == 2
    assert in_files(root) == closed.ids


@pytest.mark.slow
def test_so_where_somebody_deleted_the_manifest(closed, tmp_path, monkeypatch):  # noqa: F811
    root = tmp_path / "out"
    for former, after in ((1, 4), (4, 2)):
        dataset.export_dataset(closed.order(root, buckets=former))
        (root / STUDY / "_manifest.json").unlink()
        order = closed.order(root, buckets=after)
        while interrupted(order, monkeypatch, 3):
            assert in_files(root) == closed.ids
        assert manifest_of(root)["buckets"] == after


@pytest.mark.parametrize(("former", "after"), CHANGES)
def test_whoever_takes_ids_over_is_there_before_they_leave(former, after):
    turn_of = {bucket: turn for turn, some in enumerate(turns_of(former, after)) for bucket in some}
    assert sorted(turn_of) == list(range(after))
    for first in range(256):
        old, new = bucket_of(bytes([first]), former), bucket_of(bytes([first]), after)
        assert new == old or old >= after or turn_of[new] < turn_of[old]
    assert turns_of(after, after) == [range(after)]
