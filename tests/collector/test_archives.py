"""Archiving a closed study: nothing is lost whenever it is killed, and withdrawals reach the archive."""

from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
from collections import Counter
from dataclasses import replace
from functools import partial
from io import BytesIO

import pytest
from sqlalchemy import text

from collector.exports import dataset, parts
from collector.exports.store import Store
from collector.operator import archive_restored, archive_withdrawals, archiving
from collector.operator.archiving import archive, settled
from collector.operator.retention import delete_reports
from collector.storage.database import Database
from collector.storage.migrating import opened
from ldp_client.documents.errors import InputError
from tests.collector.answered import problem
from tests.collector.commands import run
from tests.collector.test_datasets import STUDY, Many, contents, manifest_of, many, reports_in  # noqa: F401
from tests.kit.errors import raises
from tests.summaries.killing import bucket_after_killing


@pytest.fixture
def closed(many, tmp_path):  # noqa: F811
    """The same, closed; `root` is where it is to be archived."""
    many.harness.close()
    many.root = tmp_path / "archive"
    return many


def archived(many, **changes):  # noqa: F811
    order = settled(many.order(many.root, **changes))
    with opened(many.url, 5) as database:
        return archive(database, order)


def stored_ids(many):  # noqa: F811
    with many.harness.collector.database.read() as session:
        rows = session.execute(text("SELECT id FROM reports WHERE payloads <> :none"), {"none": b""})
        return {bytes(row.id).hex() for row in rows}


def archived_ids(root):
    """What a finished dataset has."""
    if not (root / STUDY / "_manifest.json").exists():
        return set()
    return {one.id for file in manifest_of(root)["files"] for one in reports_in(root / STUDY / file["path"])}


def status(many):  # noqa: F811
    harness = many.harness
    harness.collector.studies.forget()
    harness.collector.arrivals.forget()
    return harness.client.get("/v1/studies/habits/status", headers=harness.operator).get_json()


def summaries(many):  # noqa: F811
    return [many.harness.summary(version=version).get_json() for version in (1, 2)]


def test_an_archived_study_is_shown_as_it_was_and_its_rows_are_gone(closed, tmp_path):
    before, counted = status(closed), summaries(closed)
    dataset.export_dataset(closed.order(tmp_path / "export"))
    done = archived(closed)
    assert (done.dropped, done.manifest.reports, stored_ids(closed)) == (120, 120, set())
    there = contents(closed.root)
    # It says that its reports may be nowhere else.
    name = f"{STUDY}/_manifest.json"
    there[name] = there[name].replace(b'"archive": true', b'"archive": false')
    assert there == contents(tmp_path / "export")
    after = status(closed)
    assert (after["state"], after["archived"]) == ("archived", str(closed.root))
    for name in ("reports", "reports_now", "by_day", "versions"):
        assert after[name] == before[name]
    assert summaries(closed) == counted
    with closed.harness.collector.database.read() as session:
        (line,) = session.execute(text("SELECT detail FROM audit_log WHERE action = 'archive'")).scalars()
    assert line == f"120 reports to {closed.root}"
    assert problem(closed.harness.export()) == (410, "study-archived")
    reopened = closed.harness.client.post("/v1/studies/habits/open", headers=closed.harness.operator)
    assert problem(reopened) == (409, "study-finished")
    # Counting again leaves what no row tells any more.
    run("admin", "recount", "--database", closed.url)
    assert summaries(closed) == counted
    for how in ("--dry-run", "--yes"):
        before = ("--before", closed.days[1].isoformat(), "--database", closed.url)
        with raises(InputError, "admin.study_archived"):
            run("admin", "expire", "habits", *before, how)
    with raises(InputError, "admin.study_archived"):
        delete_reports(closed.harness.collector.database, "habits", closed.days[1])
    with raises(InputError, "export.study_archived"):
        dataset.export_dataset(closed.order(tmp_path / "export"))
    assert archived(closed).dropped == 0


def test_what_cannot_be_archived_is_refused_and_nothing_is_written(many, make_study, tmp_path):  # noqa: F811
    many.root = tmp_path / "archive"
    many.harness.client.post("/v1/studies/habits/open", headers=many.harness.operator)
    with raises(InputError, "archive.study_open", "habits"):
        archived(many)
    many.harness.publish(make_study(id="short", retention={"days": 30}))
    many.harness.close("short")
    with opened(many.url, 5) as database:
        order = replace(settled(many.order(many.root)), study="short")
        with raises(InputError, "archive.retention", "version 1 of short", "30 days"):
            archive(database, order)
    assert not many.root.exists()
    many.harness.close()
    archived(many)
    with raises(InputError, "archive.at_other_address", str(many.root)):
        archived(Elsewhere(many, tmp_path / "other"))


class Elsewhere:
    def __init__(self, many, root):  # noqa: F811
        self.order, self.url, self.root = many.order, many.url, root


def test_a_store_that_did_not_keep_what_it_got_loses_no_report(closed, monkeypatch):
    genuine = Store.write_from

    def write_from(store, path, source, size):
        genuine(store, path, source, size)
        if path.endswith("part-02.parquet"):
            (closed.root / path).write_bytes(b"\0" * size)

    monkeypatch.setattr(Store, "write_from", write_from)
    with raises(InputError, "export.file_changed"):
        archived(closed)
    assert stored_ids(closed) == closed.ids
    assert status(closed)["state"] == "closed"
    monkeypatch.undo()
    assert archived(closed).dropped == 120
    assert archived_ids(closed.root) == closed.ids


def test_a_process_that_is_killed_as_files_are_read_again_leaves_all_there(closed, monkeypatch, tmp_path):
    kill = partial(bucket_after_killing, tmp_path / "mark", "check_bucket")
    monkeypatch.setattr(archiving, "check_bucket", kill)
    with pytest.raises(InputError, match="the same call goes on with what is there"):
        archived(closed, processes=2)
    # Nothing was found wrong with the files.
    assert archived_ids(closed.root) == stored_ids(closed) == closed.ids
    assert archived(closed, processes=2).dropped == 120


@pytest.mark.parametrize("later", [1, 8])
def test_files_are_read_again_in_the_buckets_that_they_have(closed, monkeypatch, later):
    """What reports come to may ask for other buckets than those that were written."""
    genuine, read = archiving.export_from, []

    def then_grown(*arguments):
        found = genuine(*arguments)
        monkeypatch.setattr(dataset, "choose_buckets", lambda _counts: later)
        return found

    def check(known, order, buckets, *more):
        read.append(buckets)
        return dataset.check_bucket(known, order, buckets, *more)

    monkeypatch.setattr(dataset, "choose_buckets", lambda _counts: 4)
    monkeypatch.setattr(archiving, "export_from", then_grown)
    monkeypatch.setattr(archiving, "check_bucket", check)
    assert archived(closed, buckets=None).dropped == 120
    assert read == [4] * 4


def test_without_room_for_temporary_files_the_archive_stays_as_it_is(closed, monkeypatch):
    class Full(BytesIO):
        def write(self, _content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    genuine = archiving.check_bucket

    def check(*given):
        monkeypatch.setattr(parts, "SpooledTemporaryFile", lambda _most: Full())
        return genuine(*given)

    monkeypatch.setattr(archiving, "check_bucket", check)
    with pytest.raises(
        InputError, match=r"^cannot keep temporary files in .*: No space left on device; set TMPDIR"
    ):
        archived(closed)
    assert archived_ids(closed.root) == stored_ids(closed) == closed.ids


def test_a_report_withdrawn_while_its_study_is_archived_is_in_neither_place(closed, monkeypatch):
    gone = [closed.sent[(1, day)][0] for day in closed.days]
    for module, name, report in (
        (archiving, "export_from", gone[0]),
        (archiving, "_is_whole", gone[1]),
    ):
        monkeypatch.setattr(module, name, once_after(getattr(module, name), closed, report))
    done = archived(closed)
    assert (done.dropped, done.manifest.reports) == (118, 118)
    assert archived_ids(closed.root) == closed.ids - {gone[0].id, gone[1].id}
    assert status(closed)["reports"] == 118


def once_after(genuine, many, report):  # noqa: F811
    """The function, behind whose first call a device withdraws its report."""
    left = [report]

    def called(*arguments):
        found = genuine(*arguments)
        for one in left:
            assert many.harness.withdraw(one.id, secret=one.secret).status_code == 200
        left.clear()
        return found

    return called


def test_a_withdrawal_is_acknowledged_once_the_report_left_the_archive(closed):
    gone, kept = closed.sent[(2, closed.days[1])][:2], closed.sent[(2, closed.days[1])][2]
    archived(closed)
    for report in gone:
        for _ in range(2):
            answer = closed.harness.withdraw(report.id, secret=report.secret)
            assert problem(answer) == (503, "withdrawal-waits")
            assert int(answer.headers["Retry-After"]) >= 60
    found = status(closed)
    assert (found["reports"], found["withdrawals_waiting"]) == (120, 2)
    assert any(
        f"`ldpkit admin archive habits --to {closed.root} --yes`" in line for line in found["attention"]
    )
    done = archived(closed)
    assert (done.withdrawn, done.manifest.reports) == (2, 118)
    assert archived_ids(closed.root) == closed.ids - {one.id for one in gone}
    for report in gone:
        assert closed.harness.withdraw(report.id, secret=report.secret).get_json()["result"] == "withdrawn"
        assert problem(closed.harness.put(report)) == (410, "report-withdrawn")
    assert problem(closed.harness.put(kept)) == (410, "study-closed")
    after = status(closed)
    assert (after["reports"], after["withdrawals_waiting"], after["attention"]) == (118, 0, [])
    files = [str(path) for path in closed.root.rglob("study_version=2/**/*.parquet")]
    recounted = json.loads(dataset_summary(closed.studies[1], files))
    assert summaries(closed)[1] == recounted


def dataset_summary(study, files):
    from summaries.reading import summarize_files

    return summarize_files(study, files).to_json()


class Killed:
    """Runs an archiving in a process of its own that dies at the n-th of its steps."""

    def __init__(self, many):  # noqa: F811
        self.many = many

    def __call__(self, step):
        """Whether it came to its end before that step."""
        child = os.fork()
        if child == 0:
            os._exit(self._run(step))
        _, code = os.waitpid(child, 0)
        assert code in (0, signal.SIGKILL)
        return code == 0

    def _run(self, step):
        left = [step]

        def dying(genuine):
            def called(*arguments, **options):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return genuine(*arguments, **options)

            return called

        for owner, name in ((Store, "write"), (Store, "write_from"), (Store, "remove"), (Database, "act")):
            setattr(owner, name, dying(getattr(owner, name)))
        archive_restored.REPORTS_AT_ONCE, archive_withdrawals.AT_ONCE = 50, 2
        try:
            archived(self.many)
        except BaseException:
            return 1
        return 0


def test_killed_at_any_step_it_loses_no_report_and_is_gone_on_with(closed):
    counted = summaries(closed)
    killed = Killed(closed)
    seen = Counter()
    begun = False
    for step in range(1, 100, 3):
        # Once it is archived little is left to do.
        is_done = killed(2 if begun else step)
        stored, there = stored_ids(closed), archived_ids(closed.root)
        assert stored | there == closed.ids
        found = status(closed)
        assert (found["reports"], summaries(closed)) == (120, counted)
        seen[found["state"], len(stored)] += 1
        begun = found["state"] == "archived"
        if is_done:
            break
    assert is_done
    # Before anything went, while rows went, and afterwards.
    assert {count for _, count in seen} >= {120, 0}
    assert any(0 < count < 120 for _, count in seen)
    assert archived_ids(closed.root) == closed.ids
    assert not (closed.root / STUDY / "_unfinished.json").exists()


def test_killed_at_any_step_a_withdrawal_counts_once(closed):
    archived(closed)
    gone = [closed.sent[(1, closed.days[0])][0], *closed.sent[(2, closed.days[2])][:3]]
    for report in gone:
        closed.harness.withdraw(report.id, secret=report.secret)
    killed, left = Killed(closed), {one.id for one in gone}
    for step in range(1, 40):
        is_done = killed(step)
        receipts = [closed.harness.withdraw(one.id, secret=one.secret).status_code for one in gone]
        assert set(receipts) == ({200} if is_done else {503})
        if is_done:
            break
    assert is_done
    assert archived_ids(closed.root) == closed.ids - left
    assert status(closed)["reports"] == 116
    for study in closed.studies:
        files = [str(path) for path in closed.root.rglob(f"study_version={study.version}/**/*.parquet")]
        assert summaries(closed)[study.version - 1] == json.loads(dataset_summary(study, files))


def test_deleting_an_archived_study_deletes_its_archive(closed, capsys):
    archived(closed)
    (closed.root / STUDY / "notes.txt").write_text("mine")
    run("admin", "delete-study", "habits", "--dry-run", "--database", closed.url)
    assert "120 reports would be deleted in" in capsys.readouterr().out
    run("admin", "delete-study", "habits", "--yes", "--database", closed.url)
    out = capsys.readouterr().out
    assert out.startswith("120 reports deleted in")
    assert f"its archive, {closed.root}" in out
    assert set(contents(closed.root)) == {f"{STUDY}/notes.txt"}
    found = status(closed)
    assert (found["state"], found["reports"], found["archived"]) == ("deleted", 0, None)
    report = closed.sent[(1, closed.days[0])][0]
    assert closed.harness.withdraw(report.id, secret=report.secret).status_code == 200


def test_the_command_asks_first_and_says_what_it_did(closed, capsys):
    where = ("--to", f"{closed.root}/", "--database", closed.url)
    with raises(InputError, "options.needs_yes", "archiving", "habits", "120"):
        run("admin", "archive", "habits", *where)
    run("admin", "archive", "habits", *where, "--dry-run")
    assert "stays closed for good" in capsys.readouterr().out
    assert not closed.root.exists()
    run("admin", "archive", "habits", *where, "--yes", "--json", "-q")
    said = {"study": "habits", "address": str(closed.root), "done": True, "reports": 120, "dropped": 120,
            "withdrawn": 0}  # fmt: skip
    assert json.loads(capsys.readouterr().out) == said
    run("admin", "studies", "--database", closed.url)
    assert "habits\tversion 2\tarchived\t120 reports" in capsys.readouterr().out


def test_a_postgresql_database_is_archived_alike(make_harness, postgresql, make_study, make_report, tmp_path):
    url = postgresql.new_database()
    many = Many(make_harness(database=url, busy_timeout=5), make_study, make_report)  # noqa: F811
    many.url, many.root = url, tmp_path / "archive"
    many.harness.close()
    counted, gone = summaries(many), many.sent[(1, many.days[0])][0]
    assert (archived(many).dropped, stored_ids(many)) == (120, set())
    assert (archived_ids(many.root), summaries(many)) == (many.ids, counted)
    for waits in (503, 503):
        assert many.harness.withdraw(gone.id, secret=gone.secret).status_code == waits
    assert archived(many).withdrawn == 1
    assert many.harness.withdraw(gone.id, secret=gone.secret).status_code == 200
    assert status(many)["reports"] == 119


def test_files_without_what_was_withdrawn_are_an_export_s_and_made_one_at_a_time(
    many,  # noqa: F811
    monkeypatch,
    tmp_path,
):
    """So many reports at once as are in memory anyway: here of groups of three."""
    monkeypatch.setattr(parts, "page_limit", lambda _rules: 3)
    many.harness.close()
    many.root = tmp_path / "archive"
    gone = [one for some in many.sent.values() for one in some[::4]]
    with sqlite3.connect(many.harness.path) as live, sqlite3.connect(tmp_path / "copy.db") as copy:
        live.backup(copy)
        ids = [(bytes.fromhex(one.id),) for one in gone]
        copy.executemany("UPDATE reports SET payloads = x'' WHERE id = ?", ids)
    order = many.order(tmp_path / "export", buckets=1)
    dataset.export_dataset(replace(order, database=f"sqlite:///{tmp_path / 'copy.db'}"))
    archived(many, buckets=1)
    assert {many.harness.withdraw(one.id, secret=one.secret).status_code for one in gone} == {503}
    made, growing = [], archive_withdrawals.Growing

    class Noted(growing):
        def __init__(self, *given):
            assert all(one._file.closed for one in made)
            super().__init__(*given)
            made.append(self)

        def add_columns(self, columns):
            assert len(columns) <= 3
            super().add_columns(columns)

    monkeypatch.setattr(archive_withdrawals, "Growing", Noted)
    assert archived(many).withdrawn == len(gone)
    assert len(made) == 12
    there, wanted = contents(many.root), contents(tmp_path / "export")
    name = f"{STUDY}/_manifest.json"
    there[name] = there[name].replace(b'"archive": true', b'"archive": false')
    assert there == wanted
