"""A place, or an archive, that was moved: withdrawals still reach it, and nothing else is taken for it."""

from __future__ import annotations

import shutil

import pytest
from sqlalchemy import text

from collector.exports import dataset
from collector.operator import archive_withdrawals, archiving
from collector.operator.archiving import archive, settled
from collector.storage.migrating import opened
from ldp_client.documents.errors import InputError
from summaries.engines import summarize_dataset
from tests.collector.commands import run
from tests.collector.test_archives import archived, archived_ids, closed, many, status  # noqa: F401
from tests.collector.test_datasets import STUDY, contents, manifest_of


def moved(many, root):  # noqa: F811
    """`ldpkit admin archive … --moved`."""
    with opened(many.url, 5) as database:
        return archive(database, settled(many.order(root)), is_moved=True)


def withdrawn(many, report):  # noqa: F811
    return many.harness.withdraw(report.id, secret=report.secret).status_code


def killed(*_, **__):
    raise KeyboardInterrupt


def audited(many):  # noqa: F811
    with many.harness.collector.database.read() as session:
        lines = text("SELECT detail FROM audit_log WHERE action = 'archive' ORDER BY 1")
        return list(session.execute(lines).scalars())


@pytest.mark.slow
def test_a_moved_archive_loses_what_was_withdrawn_and_then_its_study(closed, tmp_path, capsys):  # noqa: F811
    archived(closed)
    gone, other = closed.sent[(1, closed.days[0])][0], tmp_path / "other disk"
    assert withdrawn(closed, gone) == 503
    closed.root.rename(other)
    command = ("admin", "archive", "habits", "--to", str(other), "--database", closed.url)
    with pytest.raises(InputError, match=r"name that address, or add --moved if the archive lies in .* now"):
        run(*command, "--yes")
    run(*command, "--moved", "--dry-run")
    assert f"in {other}, where it was moved from {closed.root}" in capsys.readouterr().out
    assert status(closed)["archived"] == str(closed.root)
    run(*command, "--moved")
    assert f"a copy of it that is left in {closed.root} is reached by" in capsys.readouterr().out
    assert (withdrawn(closed, gone), archived_ids(other)) == (200, closed.ids - {gone.id})
    assert status(closed)["archived"] == str(other)
    assert f"moved from {closed.root} to {other}" in audited(closed)
    run(*command)
    run("admin", "delete-study", "habits", "--yes", "--database", closed.url)
    assert (status(closed)["state"], archived_ids(other)) == ("deleted", set())


def test_deleting_a_moved_archive_says_how(closed, tmp_path):  # noqa: F811
    archived(closed)
    closed.root.rename(tmp_path / "other")
    with pytest.raises(InputError, match=r"moved: `ldpkit admin archive habits --to ADDRESS --moved`"):
        run("admin", "delete-study", "habits", "--yes", "--database", closed.url)


@pytest.mark.slow
def test_what_is_not_all_of_the_archive_is_taken_for_no_moved_one(closed, tmp_path):  # noqa: F811
    dataset.export_dataset(closed.order(tmp_path / "an export"))
    archived(closed)
    for name in ("a part", "more", "another's", "an older copy"):
        shutil.copytree(closed.root, tmp_path / name)
    first, second = closed.sent[(1, closed.days[0])][:2]
    assert withdrawn(closed, first) == 503
    archived(closed)
    for name in ("a part", "more", "another's"):
        shutil.copytree(closed.root, tmp_path / name, dirs_exist_ok=True)
    file = manifest_of(closed.root)["files"][-1]["path"]
    (tmp_path / "a part" / STUDY / file).unlink()
    extra = (tmp_path / "more" / STUDY / file).with_name("part-77.parquet")
    shutil.copy(closed.root / STUDY / file, extra)
    path = tmp_path / "another's" / STUDY / "_manifest.json"
    path.write_text(path.read_text().replace('"collector": "', '"collector": "0'))
    assert withdrawn(closed, second) == 503
    before = contents(tmp_path)
    for name, said in (
        ("nothing", "there is no"),
        ("an export", "but an export"),
        # Read at once where ids of its bucket wait to be taken out, else missed when all are counted.
        ("a part", "lacks 1 file|is not what was written there"),
        ("more", "beside the archive's own"),
        ("another's", "but another database's"),
        ("an older copy", "one of them is an older copy"),
    ):
        with pytest.raises(InputError, match=said):
            moved(closed, tmp_path / name)
    assert [name for name in contents(tmp_path) if ".parquet" in name] == [
        name for name in before if ".parquet" in name
    ]
    assert status(closed)["archived"] == str(closed.root)
    assert not any("moved" in line for line in audited(closed))


def test_what_is_archived_nowhere_was_not_moved(closed, tmp_path):  # noqa: F811
    with pytest.raises(InputError, match="habits is not archived: leave --moved out"):
        moved(closed, tmp_path / "other")
    assert status(closed)["archived"] is None


def test_an_archive_is_not_moved_while_rows_are_left(closed, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setattr(archiving, "drop_page", killed)
    with pytest.raises(KeyboardInterrupt):
        archived(closed)
    monkeypatch.undo()
    closed.root.rename(tmp_path / "other")
    with pytest.raises(InputError, match=r"120 reports of habits are still in .*: put the archive back in "):
        moved(closed, tmp_path / "other")
    (tmp_path / "other").rename(closed.root)
    assert archived(closed).dropped == 120


@pytest.mark.slow
def test_a_take_out_that_was_killed_goes_on_where_it_was_moved_to(closed, monkeypatch, tmp_path):  # noqa: F811
    """Its files are without what was withdrawn, its manifest is not; and what left is counted."""
    archived(closed)
    gone = closed.sent[(1, closed.days[0])][0]
    assert withdrawn(closed, gone) == 503
    monkeypatch.setattr(archive_withdrawals, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        archived(closed)
    monkeypatch.undo()
    with pytest.raises(InputError, match="are not those of the manifest; run `ldpkit admin archive` again"):
        summarize_dataset(closed.studies[0], closed.root)
    closed.root.rename(tmp_path / "other")
    assert moved(closed, tmp_path / "other").withdrawn == 1
    assert (withdrawn(closed, gone), status(closed)["reports"]) == (200, 119)
