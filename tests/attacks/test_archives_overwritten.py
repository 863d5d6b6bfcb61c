"""Archives that a restored database, another one, damage or an empty mount would replace in silence."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet
import pytest

from collector.exports import dataset
from collector.operator import archive_withdrawals, archiving
from collector.operator.archiving import archive, settled
from collector.storage.migrating import opened
from ldp_client.documents.errors import InputError
from summaries.engines import summarize_dataset
from tests.collector.commands import run
from tests.collector.test_archives import archived, archived_ids, closed, many, status  # noqa: F401
from tests.collector.test_datasets import STUDY, manifest_of, reports_in
from tests.kit.errors import raises


def copied(many, path):  # noqa: F811
    """A backup of the database."""
    with sqlite3.connect(many.url.removeprefix("sqlite:///")) as own, sqlite3.connect(path) as backup:
        own.backup(backup)
    return f"sqlite:///{path}"


def order_at(many, url, root):  # noqa: F811
    return settled(replace(many.order(root), database=url))


def archived_at(many, url, root):  # noqa: F811
    with opened(url, 5) as database:
        return archive(database, order_at(many, url, root))


@pytest.fixture
def late(many, tmp_path, make_report):  # noqa: F811
    """A study of which there is a backup that 20 of its reports came after."""
    many.root = tmp_path / "archive"
    many.backup = copied(many, tmp_path / "backup.db")
    harness = many.harness
    harness.client.post("/v1/studies/habits/open", headers=harness.operator)
    some = [make_report(many.studies[1]) for _ in range(20)]
    assert harness.post([one.to_document() for one in some]).status_code == 200
    many.sent[(2, "late")] = some
    harness.close()
    return many


def test_a_backup_of_before_an_archive_replaces_no_archive(late):
    assert archived(late).dropped == 140
    with raises(InputError, "export.dataset_of_other_database"):
        archived_at(late, late.backup, late.root)
    assert archived_ids(late.root) == late.ids
    assert status(late)["state"] == "archived"


def test_nor_does_an_export(late):
    archived(late)
    with raises(InputError, "export.dataset_of_other_database"):
        dataset.export_dataset(order_at(late, late.backup, late.root))
    assert archived_ids(late.root) == late.ids


def test_damage_in_an_archive_is_not_made_right_by_a_withdrawal(closed):  # noqa: F811
    archived(closed)
    gone = closed.sent[(1, closed.days[0])][0]
    files = [closed.root / STUDY / one["path"] for one in manifest_of(closed.root)["files"]]
    (file,) = [one for one in files if gone.id in {report.id for report in reports_in(one)}]
    # A file of fewer rows: an older copy, or somebody's edit.
    table = pyarrow.parquet.read_table(file)
    kept = [at for at, name in enumerate(table["report_id"].to_pylist()) if name == gone.id]
    pyarrow.parquet.write_table(table.take(pa.array([*kept, (kept[0] + 1) % len(table)])), file)
    closed.harness.withdraw(gone.id, secret=gone.secret)
    with raises(InputError, "archive.withdrawal_file_changed"):
        archived(closed)
    assert status(closed)["reports"] == 120


def test_a_folder_that_is_not_mounted_is_no_deleted_archive(closed, tmp_path):  # noqa: F811
    archived(closed)
    closed.root.rename(tmp_path / "unmounted")
    with pytest.raises(InputError, match="the archive is away"):
        run("admin", "delete-study", "habits", "--yes", "--database", closed.url)
    assert status(closed)["state"] == "archived"
    (tmp_path / "unmounted").rename(closed.root)
    run("admin", "delete-study", "habits", "--yes", "--database", closed.url)
    assert status(closed)["state"] == "deleted"


def test_a_backup_of_after_an_archive_does_not_count_what_left_it(closed, tmp_path):  # noqa: F811
    archived(closed)
    backup = copied(closed, tmp_path / "backup.db")
    for one in closed.sent[(1, closed.days[0])][:3]:
        closed.harness.withdraw(one.id, secret=one.secret)
    assert archived(closed).withdrawn == 3
    with pytest.raises(InputError, match="117"):
        archived_at(closed, backup, closed.root)


def test_another_database_replaces_no_dataset(many, tmp_path):  # noqa: F811
    dataset.export_dataset(many.order(tmp_path / "root"))
    with sqlite3.connect(copied(many, tmp_path / "other.db").removeprefix("sqlite:///")) as other:
        # The same study on a database of its own, as one of very many reports is split over several.
        other.execute("UPDATE collector SET identity = randomblob(16)")
        other.execute("DELETE FROM reports WHERE hex(id) > '3'")
    with raises(InputError, "export.dataset_of_other_database"):
        dataset.export_dataset(order_at(many, f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "root"))
    assert archived_ids(tmp_path / "root") == many.ids


@pytest.mark.parametrize("buckets", [0, 3, 255, 512, "4"])
def test_a_manifest_of_buckets_that_leave_ids_out_is_refused(many, tmp_path, buckets):  # noqa: F811
    dataset.export_dataset(many.order(tmp_path / "root"))
    path = tmp_path / "root" / STUDY / "_manifest.json"
    path.write_text(path.read_text().replace('"buckets": 4', f'"buckets": {buckets!r}'.replace("'", '"')))
    with raises(InputError, "export.wrong_manifest"):
        dataset.export_dataset(many.order(tmp_path / "root", buckets=None))


def test_two_runs_at_once_bring_no_withdrawn_report_back(closed, monkeypatch):  # noqa: F811
    archived(closed)
    # Of one file, for which the slower run still has the second of them.
    files = [closed.root / STUDY / one["path"] for one in manifest_of(closed.root)["files"]]
    found = next(one for one in map(reports_in, files) if len(one) > 2)
    secrets = {one.id: one.secret for some in closed.sent.values() for one in some}
    first, second = (one.id for one in found[:2])
    assert closed.harness.withdraw(first, secret=secrets[first]).status_code == 503
    genuine = archive_withdrawals._rewrite

    def slow(*arguments):
        monkeypatch.setattr(archive_withdrawals, "_rewrite", genuine)
        assert closed.harness.withdraw(second, secret=secrets[second]).status_code == 503
        with raises(InputError, "study.already_being_written"):
            archived(closed)
        # As if the first had lost its turn, with its connection.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(archiving, "only_writer", lambda *_: nullcontext(Mock()))
            assert archived(closed).withdrawn == 2
        return genuine(*arguments)

    monkeypatch.setattr(archive_withdrawals, "_rewrite", slow)
    with raises(InputError, "archive.changed_meanwhile"):
        archived(closed)
    assert closed.harness.withdraw(second, secret=secrets[second]).status_code == 200
    assert archived_ids(closed.root) == closed.ids - {first, second}
    assert archived(closed).manifest.reports == status(closed)["reports"] == 118


def test_exporting_again_mends_a_file_that_was_damaged(many, tmp_path):  # noqa: F811
    root = tmp_path / "root"
    dataset.export_dataset(many.order(root))
    file = next((root / STUDY).rglob("study_version=1/**/*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        summarize_dataset(many.studies[0], root)
    assert dataset.export_dataset(many.order(root)).written == 1
    found = summarize_dataset(many.studies[0], root)
    assert {one.n for one in found.questions.values()} == {60}
