"""A nightly export that deletes from a dataset, in silence, what is nowhere else any more."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta

import pytest

from collector.exports import dataset
from collector.exports.dataset import Order, export_dataset
from collector.oblivious.keys import GatewayKeys
from collector.operator.archiving import archive, settled
from collector.operator.retention import delete_reports
from collector.storage.migrating import opened
from ldp_client.documents.errors import InputError
from tests.attacks.test_archives_overwritten import copied
from tests.collector.answered import problem
from tests.collector.commands import run
from tests.collector.conftest import build_report
from tests.collector.test_archives import archived_ids, closed, many  # noqa: F401
from tests.collector.test_datasets import STUDY, contents
from tests.kit.errors import raises
from tests.oblivious.conftest import relayed_study


def expire(many, day):  # noqa: F811
    with opened(many.url, 5) as database:
        delete_reports(database, "habits", day)


def exported(many, root, *options):  # noqa: F811
    run("export", "habits", "--format", "parquet", "--out", str(root), "--database", many.url, "-q", *options)


def test_what_expired_stays_until_somebody_gives_it_up(closed, tmp_path, capsys):  # noqa: F811
    root, (first, second, third) = tmp_path / "out", closed.days
    exported(closed, root)
    before = contents(root)
    expire(closed, third)
    for options in ((), ("--forget-before", str(second))):
        with pytest.raises(InputError) as refused:
            exported(closed, root, *options)
        said = str(refused.value)
        assert f"40 of {second}" in said
        assert (f"80 reports that the database has no more and nobody withdrew (40 of {first}" in said) == (
            not options
        )
        assert "nothing was written. Export to another folder, or delete them here too" in said
        assert f"`ldpkit export --format parquet --forget-before {third}`" in said
        assert "\n" not in said
        assert contents(root) == before
    capsys.readouterr()
    exported(closed, root, "--forget-before", str(third), "--json")
    said = json.loads(capsys.readouterr().out)
    assert (said["reports"], said["forgotten"], said["withdrawn"], said["deleted_files"]) == (40, 80, 0, 4)
    assert archived_ids(root) == {
        one.id for key, some in closed.sent.items() if key[1] == third for one in some
    }


def test_an_older_backup_takes_no_later_report_along(many, make_report, tmp_path):  # noqa: F811
    root = tmp_path / "out"
    harness = many.harness
    harness.client.post("/v1/studies/habits/open", headers=harness.operator)
    backup = copied(many, tmp_path / "backup.db")
    # Of a day that the backup has a part of, and of a later one.
    for day, number in ((many.days[-1], 5), (many.days[-1] + timedelta(1), 7)):
        harness.day = day
        some = [make_report(many.studies[1]) for _ in range(number)]
        assert harness.post([one.to_document() for one in some]).status_code == 200
        many.sent[(2, str(number))] = some
    order = many.order(root, today=many.days[-1] + timedelta(2))
    dataset.export_dataset(order)
    with raises(InputError, "export.reports_lost", "12"):
        dataset.export_dataset(replace(order, database=backup))
    assert archived_ids(root) == many.ids


def test_as_many_others_hide_none_that_are_missing(many, make_report, tmp_path):  # noqa: F811
    root, harness = tmp_path / "out", many.harness
    harness.client.post("/v1/studies/habits/open", headers=harness.operator)
    backup = copied(many, tmp_path / "backup.db")
    after = [make_report(many.studies[1]) for _ in range(5)]
    harness.post([one.to_document() for one in after])
    dataset.export_dataset(many.order(root, with_today=True))
    other = many.harness.__class__(backup)
    other.day = many.days[-1]
    assert other.post([make_report(many.studies[1]).to_document() for _ in range(6)]).status_code == 200
    other.collector.close()
    with raises(InputError, "export.reports_lost", "their file was left as it is"):
        dataset.export_dataset(replace(many.order(root, with_today=True), database=backup))
    assert ids_in_all(root) >= {one.id for one in after} | many.ids


def ids_in_all(root):
    return {one for path in (root / STUDY).rglob("*.parquet") for one in ids_in(path)}


def ids_in(path):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, columns=["report_id"]).column(0).to_pylist()


def test_withdrawn_reports_leave_and_are_counted(closed, tmp_path, capsys):  # noqa: F811
    exported(closed, tmp_path / "out")
    gone = closed.sent[(1, closed.days[0])]
    for one in gone:
        assert closed.harness.withdraw(one.id, secret=one.secret).status_code == 200
    capsys.readouterr()
    exported(closed, tmp_path / "out")
    assert (
        "deleted since the last export: 20 withdrawn reports, 0 reports that the database has no more, 1 file"
        in capsys.readouterr().out
    )
    assert archived_ids(tmp_path / "out") == closed.ids - {one.id for one in gone}


def test_nor_does_an_archive_of_what_is_left(closed, tmp_path):  # noqa: F811
    exported(closed, tmp_path / "out")
    expire(closed, closed.days[1])
    with opened(closed.url, 5) as database, raises(InputError, "export.reports_lost", "40"):
        archive(database, settled(closed.order(tmp_path / "out")))
    assert archived_ids(tmp_path / "out") == closed.ids


def test_what_expires_while_it_is_exported_stays_too(closed, tmp_path, monkeypatch):  # noqa: F811
    exported(closed, tmp_path / "out", "--buckets", "4")
    genuine = dataset.write_bucket

    def late(*arguments):
        monkeypatch.setattr(dataset, "write_bucket", genuine)
        expire(closed, closed.days[1])
        return genuine(*arguments)

    monkeypatch.setattr(dataset, "write_bucket", late)
    with raises(InputError, "export.deleted_meanwhile"):
        dataset.export_dataset(closed.order(tmp_path / "out"))
    assert archived_ids(tmp_path / "out") == closed.ids
    with raises(InputError, "export.reports_lost", "40"):
        dataset.export_dataset(closed.order(tmp_path / "out"))
    assert archived_ids(tmp_path / "out") == closed.ids


def test_other_buckets_and_days_that_are_left_out_lose_nothing(many, tmp_path):  # noqa: F811
    many.harness.client.post("/v1/studies/habits/open", headers=many.harness.operator)
    today = many.days[-1]
    for with_today, buckets in ((False, 2), (True, 8), (True, 2)):
        order = many.order(tmp_path / "out", with_today=with_today, today=today, buckets=buckets)
        assert dataset.export_dataset(order).gone[:2] == (0, 0)
    assert archived_ids(tmp_path / "out") == many.ids


def test_what_expired_beside_a_relay_was_withdrawn_by_nobody(make_harness, database_url, tmp_path):
    """Its ids stay, as those of withdrawn reports do; who withdraws one of them then is heard."""
    keys, root = GatewayKeys.generate(), tmp_path / "out"
    keys.save(tmp_path / "ohttp.keys")
    harness = make_harness(database=database_url, busy_timeout=10, ohttp_keys=str(tmp_path / "ohttp.keys"))
    study = relayed_study("https://relay.example/ldpkit", keys, id="habits")
    assert harness.publish(study).status_code == 201
    _, late, withdrawn = sent = [build_report(study) for _ in range(3)]
    assert [harness.put(one).status_code for one in sent] == [201] * 3
    day = harness.day
    harness.day += timedelta(1)
    order = Order(database_url, 10, "habits", str(root), harness.day, 1, processes=1)
    export_dataset(order)
    before = contents(root)
    assert harness.withdraw(withdrawn.id, secret=withdrawn.secret).status_code == 200
    assert delete_reports(harness.collector.database, "habits", harness.day) == 2
    with raises(InputError, "export.reports_lost", f"2 of {day}"):
        export_dataset(order)
    assert contents(root) == before
    assert harness.withdraw(late.id, secret=late.secret).status_code == 200
    with raises(InputError, "export.reports_lost", f"1 of {day}"):
        export_dataset(order)
    assert [problem(harness.put(one)) for one in sent] == [(410, "report-withdrawn")] * 3
    gone = export_dataset(replace(order, forget_before=harness.day)).gone
    assert (gone.withdrawn, gone.forgotten, ids_in_all(root)) == (2, 1, set())


def test_a_day_that_was_deleted_by_hand_once_it_expired_is_given_up_too(closed, tmp_path):  # noqa: F811
    """What is away may as well be on a disk that is not mounted: somebody has to say so."""
    root, (first, second, _) = tmp_path / "out", closed.days
    exported(closed, root)
    expire(closed, second)
    for folder in (root / STUDY).glob(f"*/day={first}"):
        shutil.rmtree(folder)
    before = contents(root)
    with raises(InputError, "export.files_missing", f"--forget-before {second}"):
        exported(closed, root)
    assert contents(root) == before
    exported(closed, root, "--forget-before", str(second))
    exported(closed, root)
    assert archived_ids(root) == {
        one.id for key, some in closed.sent.items() if key[1] != first for one in some
    }
