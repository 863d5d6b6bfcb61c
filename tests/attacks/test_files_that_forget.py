"""A nightly export that replaces, in silence, a file that is all there is of reports, or no export at all."""

from __future__ import annotations

from datetime import timedelta
from email.message import Message

import pytest

from collector.exports.dated import DatedReport
from collector.logs import write_ready
from collector.operator.retention import delete_reports
from collector.remote import download, keeping
from ldp_client.cli import main
from ldp_client.device.exchange import Answer
from ldp_client.documents.errors import EXIT_REFUSED, InputError, TransferError, UsageError
from tests.collector.commands import run
from tests.collector.conftest import TOKEN
from tests.kit.errors import raises
from tests.secure_sum.conftest import build_study

NAMES = ("reports.ndjson", "reports.csv", "reports.parquet")
URL = "http://127.0.0.1:1"


@pytest.fixture
def nightly(make_harness, study, monkeypatch):
    """A collector that the command is answered by, without a server."""
    harness = make_harness()
    harness.publish(study)
    monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)

    def ask(url, _token, _who, _most, _seconds, body=None, _type=""):
        path = url.removeprefix(URL)
        response = harness.client.open(
            path, method="POST", data=body, content_type="application/json", headers=harness.operator
        )
        assert response.status_code == 200, response.text
        return Answer(response.status_code, Message(), response.data)

    def dated(*_):
        *lines, _end = harness.export(format="dated").text.splitlines()
        return map(DatedReport.from_line, lines)

    monkeypatch.setattr(download, "ask", ask)
    monkeypatch.setattr(download, "fetch_reports", lambda *_: iter(harness.exported()))
    monkeypatch.setattr(download, "fetch_dated", dated)
    monkeypatch.setattr(download, "fetch_study", lambda *_: study)
    monkeypatch.setattr(download, "fetch_summary", lambda *_: harness.summary().text)
    return harness


def export(path, *options):
    run("export", "habits", "--to", URL, "--out", str(path), *options)


def expire(harness):
    assert delete_reports(harness.collector.database, "habits", harness.day + timedelta(1))


@pytest.mark.parametrize("name", NAMES)
def test_what_expired_stays_and_what_was_withdrawn_leaves(nightly, study, make_report, tmp_path, name):
    path = tmp_path / name
    first, second, third = sent = [make_report(study) for _ in range(3)]
    for one in sent:
        nightly.put(one)
    export(path)
    assert ids_in(path) == {one.id for one in sent}
    nightly.withdraw(first.id, secret=first.secret)
    export(path)
    assert ids_in(path) == {second.id, third.id}
    before = path.read_bytes()
    nightly.withdraw(second.id, secret=second.secret)
    expire(nightly)
    nightly.put(make_report(study))
    with raises(InputError, "export.reports_lost_at_collector", "has 1 report"):
        export(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.glob("*reports*")] == [name]
    export(path, "--forget")
    assert len(ids_in(path)) == 1
    assert not ids_in(path) & {one.id for one in sent}


def ids_in(path):
    return {row.id for row in keeping._rows_of(path, "habits")}


@pytest.mark.parametrize("name", NAMES[1:])
def test_so_it_is_with_columns_for_people(nightly, study, make_report, tmp_path, name):
    path = tmp_path / name
    nightly.put(make_report(study))
    export(path, "--decoded")
    before = path.read_bytes()
    expire(nightly)
    with raises(InputError, "export.reports_lost_at_collector", "left as it was"):
        export(path, "--decoded")
    assert path.read_bytes() == before


def test_a_file_in_another_order_has_lost_nothing(nightly, study, make_report, tmp_path):
    path = tmp_path / "reports.ndjson"
    for _ in range(3):
        nightly.put(make_report(study))
    export(path)
    *lines, end = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*reversed(lines), *lines[:1], end]))
    export(path)
    assert path.read_text() == "".join([*lines, end])


def test_of_a_summary_no_report_is_missing_afterwards(nightly, study, make_report, make_study, tmp_path):
    path = tmp_path / "summary.json"
    for _ in range(2):
        nightly.put(make_report(study))
        export(path, "--summary")
    before = path.read_text()
    expire(nightly)
    with raises(InputError, "export.fewer_answers", "summary.json"):
        export(path, "--summary")
    path.write_text(before.replace('"version":1', '"version":2'))
    with raises(InputError, "export.older_version", "is of version 2, this of version 1"):
        export(path, "--summary")
    path.write_text(before)
    export(path, "--summary", "--forget")
    assert path.read_text() != before
    path.write_text(before)
    nightly.publish(make_study(2))
    with raises(InputError, "export.older_version", "is of version 1, this of version 2"):
        export(path, "--summary")
    assert path.read_text() == before
    export(path, "--summary", "--forget")


@pytest.mark.parametrize("options", [(), ("--summary",)])
def test_another_studys_export_and_what_cannot_be_read_stay(nightly, study, make_report, tmp_path, options):
    path = tmp_path / ("summary.json" if options else "reports.ndjson")
    nightly.put(make_report(study))
    export(path, *options)
    whole = path.read_text()
    for changed, why in (
        (whole.replace('"study":"habits"', '"study":"other"'), "is an export of other, not of habits"),
        (whole[:-60], "cannot be read"),
    ):
        path.write_text(changed)
        if why == "cannot be read" and not options:
            path.write_text(whole[: whole.index("\n") - 9])
        with pytest.raises(InputError, match=why):
            export(path, *options)
    export(path, *options, "--forget")
    assert path.read_text() == whole


def test_what_is_no_export_stays_whatever_is_given_up(tmp_path):
    """`--out habits.json`, or ldpkit.toml, or the live database, took the place of each."""
    files = {
        "habits.json": b'{"format": "ldpkit.study/1", "id": "habits"}',
        "ldpkit.toml": b'database = "sqlite:///ldpkit.sqlite3"\n',
        "ohttp.keys": b'{"format":"ldpkit.ohttp-keys/1","keys":[]}',
        "ldpkit.sqlite3": b'SQLite format 3\0{"format":"ldpkit.report/1"',
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        for options in ((), ("--summary",), ("--forget",)):
            with raises(InputError, "files.is_other"):
                export(tmp_path / name, "--token", "any", *options)
        assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize(
    "command",
    [
        "study sign {study} --key {study} --out {out}",
        "audit {study} --out {out}",
        "summarize {study} {study} --out {out}",
        "project {study} {study} --out {out}",
        "secure-sum close {sum} --out {out}",
    ],
)
def test_nor_does_any_other_command_replace_what_it_did_not_make(tmp_path, study, capsys, command):
    paths = {name: tmp_path / f"{name}.json" for name in ("study", "sum", "out")}
    paths["study"].write_text(study.to_json())
    paths["sum"].write_text(build_study().to_json())
    paths["out"].write_text("all that I know\n")
    assert main(command.format(**paths).split()) == EXIT_REFUSED
    assert "out.json is there and no earlier result of this command" in capsys.readouterr().err
    assert paths["out"].read_text() == "all that I know\n"


def test_nor_does_a_server_that_is_ready(tmp_path):
    ready = tmp_path / "ready"
    for url in ("http://127.0.0.1:8000", "https://ask.example.org"):
        write_ready(str(ready), url)
        assert ready.read_text() == f"{url}\n"
    ready.write_text("database = 1\n")
    with raises(InputError, "files.is_other", "ready"):
        write_ready(str(ready), "http://127.0.0.1:8000")
    assert ready.read_text() == "database = 1\n"


def test_a_dataset_is_given_up_by_days(tmp_path):
    with raises(UsageError, "export.forget_of_dataset"):
        run("export", "habits", "--format", "parquet", "--out", str(tmp_path), "--forget")


def test_who_may_not_read_learns_nothing_of_what_became_of_reports(nightly, study, make_report):
    address = "/v1/studies/habits/export/lost"
    gone = make_report(study)
    asked = {"ids": [gone.id]}
    assert nightly.client.post(address, json=asked).status_code == 401
    assert nightly.client.post(address, json=asked, headers=nightly.operator).get_json() == {"lost": 1}
    nightly.put(gone)
    assert nightly.client.post(address, json=asked, headers=nightly.operator).get_json() == {"lost": 0}


def test_a_collector_that_says_something_else_is_none(monkeypatch):
    answer = Answer(200, Message(), b'{"lost": "none"}')
    monkeypatch.setattr(download, "ask", lambda *_: answer)
    with raises(TransferError, "server.count_not_json"):
        download.count_lost(URL, "habits", "any", ["0" * 32])
