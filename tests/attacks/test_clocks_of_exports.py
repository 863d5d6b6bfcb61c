"""Exports by a machine whose clock is wrong: days that ended leave the dataset, or one under way is final."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collector.exports.dataset import export_dataset
from collector.storage import upkeep
from ldp_client.documents.errors import InputError
from tests.collector.commands import run
from tests.collector.test_datasets import STUDY, contents, manifest_of, many  # noqa: F401
from tests.kit.errors import raises

A_DAY = timedelta(1)


@pytest.fixture
def opened(many, tmp_path):  # noqa: F811
    """The same, of a study that takes reports; `root` is where it is exported to."""
    many.harness.client.post("/v1/studies/habits/open", headers=many.harness.operator)
    many.root = tmp_path / "out"
    return many


@pytest.mark.parametrize("behind", [1, 2, 9, 20000])
def test_a_clock_that_is_behind_deletes_no_day_that_ended(opened, behind):
    export_dataset(opened.order(opened.root))
    before = contents(opened.root)
    wrong = opened.days[-1] + A_DAY - timedelta(behind)
    with pytest.raises(InputError, match=rf"clock says {wrong} .* {opened.days[-1]}.* Set the clock right"):
        export_dataset(opened.order(opened.root, today=wrong))
    assert contents(opened.root) == before
    assert export_dataset(opened.order(opened.root)).written == 0


def test_nor_what_was_written_of_today(opened):
    export_dataset(opened.order(opened.root, today=opened.days[-1], with_today=True))
    before = contents(opened.root)
    with raises(InputError, "export.clock_behind", f"has {opened.days[-1]} already", "--with-today"):
        export_dataset(opened.order(opened.root, today=opened.days[-1]))
    assert contents(opened.root) == before
    export_dataset(opened.order(opened.root, today=opened.days[-1], with_today=True))
    assert export_dataset(opened.order(opened.root)).manifest.through == str(opened.days[-1])


def test_reports_of_a_day_to_come_are_named_before_anything_is_written(opened):
    today = opened.days[1]
    with raises(InputError, "export.clock_behind", f"{today}", f"{opened.days[-1]}"):
        export_dataset(opened.order(opened.root, today=today))
    assert not opened.root.exists()


@pytest.mark.parametrize("ahead", [3, 1000])
def test_a_clock_that_is_ahead_calls_no_day_final_that_no_server_has_seen(opened, make_report, ahead):
    today = opened.days[-1]
    done = export_dataset(opened.order(opened.root, today=today + timedelta(ahead)))
    assert done.manifest.through == str(today)
    # The next night it is put right.
    late = make_report(opened.studies[1])
    assert opened.harness.put(late).status_code == 201
    assert export_dataset(opened.order(opened.root, today=today + A_DAY)).manifest.reports == 121


def test_what_was_withdrawn_of_today_leaves_all_the_same(opened):
    today = opened.days[-1]
    export_dataset(opened.order(opened.root, today=today, with_today=True))
    for version in (1, 2):
        for one in opened.sent[(version, today)]:
            assert opened.harness.withdraw(one.id, secret=one.secret).status_code == 200
    assert export_dataset(opened.order(opened.root, today=today)).manifest.reports == 80
    assert not list((opened.root / STUDY).rglob(f"day={today}/*"))


def test_the_command_says_it_in_one_line(opened, monkeypatch):
    call = ("export", "habits", "--format", "parquet", "--out", str(opened.root), "--database", opened.url)
    monkeypatch.setattr(upkeep, "utc_today", lambda: opened.days[-1] + A_DAY)
    run(*call)
    monkeypatch.setattr(upkeep, "utc_today", lambda: opened.days[-1] - A_DAY)
    with raises(InputError, "export.clock_behind"):
        run(*call)
    assert manifest_of(opened.root)["reports"] == 120
