"""The operator's commands at a collector: publish, status, close, open, invite, keys."""

from __future__ import annotations

import csv
import io
import json
import re
import stat
import sys
from contextlib import ExitStack
from datetime import date, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from collector.operator import access_commands, links
from collector.operator.overview import in_lines
from collector.remote import operating as remote
from collector.remote.client import RefusalError
from collector.storage.audit_log import entries
from ldp_client.documents.errors import InputError, LdpkitError, UsageError
from ldpkit.cli import build_parser, main
from tests.collector.commands import URL, answering, parsed, run
from tests.collector.conftest import INVITATION_KEY
from tests.kit.errors import raises
from tests.ldp_client.issuers import channel_of


@pytest.fixture
def either(make_harness, database_url, study):
    harness = make_harness(database=database_url, lock_timeout=5, invitation_key=INVITATION_KEY)
    harness.url = database_url
    harness.publish(study)
    return harness


@pytest.fixture
def asked():
    """Has the commands' requests answered by a harness, and counts them."""
    with ExitStack() as stack:

        def connect(harness):
            stack.enter_context(answering(harness.app))
            return harness

        yield connect


def at(*arguments):
    run(*arguments, "--collector", URL)


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def test_publish_prints_the_studys_links(asked, empty, study, tmp_path, capsys):
    asked(empty)
    file = tmp_path / "study.json"
    file.write_bytes(study.canonical())
    at("publish", str(file), "--dry-run")
    assert lines(capsys) == ["would publish habits, version 1, which is new there"]
    with pytest.raises(RefusalError, match="this collector does not know the key"):
        at("publish", str(file), "--dry-run", "--token", "a-key-that-was-removed")
    assert empty.client.get("/v1/studies/habits").status_code == 404
    at("publish", str(file))
    said = "\n".join(lines(capsys))
    assert f"habits, version 1, is published; digest {study.digest}" in said
    assert f"{URL}/s/habits\n" in said
    at("publish", str(file))
    assert "was published before" in capsys.readouterr().out
    at("publish", str(file), "--dry-run")
    assert "nothing would change" in capsys.readouterr().out


def test_republishing_a_closed_study_prints_how_to_open_it(asked, empty, study, tmp_path, capsys):
    asked(empty)
    file = tmp_path / "study.json"
    file.write_bytes(study.canonical())
    at("publish", str(file))
    assert "takes no reports" not in capsys.readouterr().out
    at("close", "habits", "--yes")
    capsys.readouterr()
    for more in ((), ("--dry-run",)):
        at("publish", str(file), *more)
        assert f"`ldpkit open habits --collector {URL}`" in capsys.readouterr().out
    at("publish", str(file), "--json")
    assert json.loads(capsys.readouterr().out)["closed"] is True


def test_list_and_status_print_the_state_of_studies(asked, either, study, make_study, make_report, capsys):
    asked(either)
    either.publish(make_study(id="other", title="Sleep", closes=(either.day + timedelta(2)).isoformat()))
    either.post([make_report(study).to_document() for _ in range(5)])
    either.day += timedelta(1)
    either.put(make_report(study))
    either.put(make_report(study, digest="0" * 64))
    at("status")
    assert [line.split("\t")[0] for line in lines(capsys)] == ["habits", "other"]
    at("status", "--state", "open", "--json")
    found = json.loads(capsys.readouterr().out)[1]
    assert (found["id"], found["days_left"]) == ("other", 2)
    at("status", "habits", "--json")
    found = json.loads(capsys.readouterr().out)
    assert [one["reports"] for one in found["by_day"]] == [5, 1]
    assert found["versions"] == [{"version": 1, "reports": 6}]
    assert found["refused"] == {"report-invalid": 1}
    assert found["attention"] == [
        "1 upload refused since the collector started, most of them as report-invalid"
    ]
    at("status", "other")
    said = capsys.readouterr().out
    assert "look after: it has no report" in said
    assert "look after: it ends in 1 day" in said


def test_reopened_study_restores_no_withdrawn_report(asked, either, study, make_report):
    asked(either)
    late, kept = make_report(study), make_report(study)
    either.put(kept)
    with raises(InputError, "options.needs_yes", "closing", "habits", "open"):
        at("close", "habits")
    at("close", "habits", "--dry-run")
    assert either.put(make_report(study)).status_code == 201
    at("close", "habits", "--yes")
    assert either.put(make_report(study)).status_code == 410
    # While it was closed a device took back what had not come yet, and another what had.
    for report in (late, kept):
        assert either.withdraw(report.id, secret=report.secret).status_code == 200
    at("open", "habits", "--yes")
    assert either.put(late).get_json()["type"].endswith("report-withdrawn")
    assert either.put(kept).get_json()["type"].endswith("report-withdrawn")
    assert either.put(make_report(study)).status_code == 201


def test_export_takes_no_abbreviated_option(capsys):
    """`--to URL` would be taken as `--token URL`."""
    asked = build_parser().parse_args(["export", "habits", "--collector", URL, "--out", "r.csv"])
    assert (asked.collector, asked.token) == (URL, None)
    with pytest.raises(SystemExit):
        main(["export", "habits", "--to", URL, "--out", "r.csv"])
    assert "--to" in capsys.readouterr().err


def test_close_warns_about_reports_waiting_on_devices(asked, either, make_study, capsys):
    """Reports of the last two windows wait on devices: a study closed on its last evening lost them all."""
    asked(either)
    either.publish(make_study(id="hidden", channel=channel_of("https://issuer.example", hours=24)))
    at("close", "hidden", "--dry-run")
    assert "up to 48 hours after they were made" in capsys.readouterr().err
    # Those to an earlier version are so too.
    either.publish(make_study(id="hidden", version=261126))
    at("close", "hidden", "--dry-run")
    assert "up to 48 hours after they were made" in capsys.readouterr().err
    at("close", "habits", "--dry-run")
    assert "under way" not in capsys.readouterr().err


def test_deleted_study_stays_closed(asked, either):
    asked(either)
    at("delete", "habits", "--yes")
    with pytest.raises(LdpkitError, match="was deleted"):
        at("open", "habits", "--yes")


@pytest.mark.parametrize("path", ["/s/habits", "/s/habits/", "/below/s/habits", "/v1/studies/habits"])
@pytest.mark.parametrize("options", [("--collector", URL, "--address"), ("--collector",)])
def test_invite_rejects_a_study_address_as_collector(asked, either, tmp_path, path, options):
    """Operators paste the study address that `ldpkit publish` prints."""
    asked(either)
    table = tmp_path / "links.csv"
    with raises(UsageError, "ticket.study_address"):
        run("invite", "habits", "--count", "3", "--out", str(table), *options, f"https://ask.example{path}")
    assert not table.exists()
    found = either.client.get("/v1/studies/habits/status", headers=either.operator).get_json()
    assert found["invitations_left"] is None


@pytest.mark.parametrize("path", ["/s/panel", "/s/habits-of-2026/", "/v1/studies/panel"])
def test_collector_address_may_contain_a_study_like_path(asked, either, tmp_path, path):
    asked(either)
    table = tmp_path / "links.txt"
    to = f"https://ask.example{path}"
    run("invite", "habits", "--count", "1", "--out", str(table), "--collector", URL, "--address", to)
    assert table.read_text().startswith(f"{to.rstrip('/')}/s/habits#invitation=")


def test_invitations_are_links_and_pictures_for_their_owner_alone(
    asked, either, study, make_report, tmp_path, capsys
):
    asked(either)
    table, pictures = tmp_path / "links.csv", tmp_path / "codes"
    at("invite", "habits", "--count", "3", "--dry-run")
    assert lines(capsys) == [
        f"would make 3 invitations to habits at {URL}; from then on only they let a report in"
    ]
    at("invite", "habits", "--count", "3", "--out", str(table), "--qr", str(pictures),
       "--address", "https://ask.example.org")  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    words = [row["invitation"] for row in rows]
    assert [row["link"] for row in rows] == [
        f"https://ask.example.org/s/habits#invitation={word}" for word in words
    ]
    files = [table, *sorted(pictures.iterdir())]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 4
    assert stat.S_IMODE(pictures.stat().st_mode) == 0o700
    assert files[1].read_text().startswith("<?xml")
    with raises(InputError, "files.not_writable", "links.csv"):
        at("invite", "habits", "--count", "1", "--out", str(table))
    path = f"/v1/studies/habits/reports/{(report := make_report(study)).id}"
    assert either.client.put(path, json=report.to_document()).status_code == 403
    headers = {"LDPKit-Invitation": words[0]}
    assert either.client.put(path, json=report.to_document(), headers=headers).status_code == 201
    at("status", "habits")
    assert "2 invitations left" in capsys.readouterr().out


def test_invite_dry_run_rejects_whatever_invite_rejects(asked, either, make_study, tmp_path, capsys):
    """`invite --dry-run` used to accept values that the study does not have, and closed studies."""
    asked(either)
    stratum = {"id": "stratum", "choices": ["town", "country"], "source": "invitation"}
    either.publish(make_study(2, public=[stratum]))
    taken = tmp_path / "links.csv"
    taken.write_text("")
    invite = ("invite", "habits", "--count", "2")
    wrong = {
        "value is missing": [],
        "stratum: must be": ["--public", "stratum=village"],
        "carry stratum": ["--public", "stratum=town", "--public", "age=20"],
        r"links\.csv": ["--public", "stratum=town", "--out", str(taken)],
    }
    for why, more in wrong.items():
        for how in ([], ["--dry-run"]):
            with pytest.raises(LdpkitError, match=why):
                at(*invite, *more, *how)
    at("status", "habits")
    assert "0 invitations left\nlook after: it has no report\nlook after: no invitation is left" in (
        capsys.readouterr().out.replace("\t", " ")
    )
    at(*invite, "--public", "stratum=town", "--dry-run")
    at(*invite, "--public", "stratum=town")
    capsys.readouterr()
    at("status", "habits")
    assert "2 invitations left" in capsys.readouterr().out
    either.close()
    for how in ([], ["--dry-run"]):
        with pytest.raises(LdpkitError, match="was closed"):
            at(*invite, "--public", "stratum=town", *how)


def test_study_dry_run_predicts_the_real_outcome(asked, either, make_study, tmp_path, capsys):
    """`publish --dry-run` used to accept a new version of a closed study."""
    asked(either)
    second = tmp_path / "second.json"
    second.write_bytes(make_study(2).canonical())
    at("open", "habits", "--dry-run")
    assert "it was not closed, and nothing would change" in capsys.readouterr().out
    at("close", "habits", "--yes")
    at("close", "habits", "--dry-run")
    assert "it takes none already, and nothing would change" in capsys.readouterr().out
    at("open", "habits", "--dry-run")
    assert "it would take reports again, unless it is a secure sum" in capsys.readouterr().out
    for how in ([], ["--dry-run"]):
        with pytest.raises(LdpkitError, match="takes no new version; open it first"):
            at("publish", str(second), *how)
    with either.collector.database.write() as session:
        session.execute(text("UPDATE studies SET deleted = true, final = true"))
    either.collector.has_changed("habits")
    for how in (["--yes"], ["--dry-run"]):
        with pytest.raises(LdpkitError, match=r"stays closed|was deleted"):
            at("open", "habits", *how)
    with pytest.raises(LdpkitError, match="was deleted by its operator"):
        at("publish", str(second), "--dry-run")


def test_failed_invite_leaves_no_file(asked, either, tmp_path, capsys):
    asked(either)
    links, taken = tmp_path / "links.txt", tmp_path / "codes"
    taken.mkdir()
    with raises(InputError, "files.folder_not_made"):
        at("invite", "habits", "--count", "1", "--out", str(links), "--qr", str(taken))
    either.close()
    with pytest.raises(RefusalError, match="was closed"):
        at("invite", "habits", "--count", "1", "--out", str(links), "--qr", str(tmp_path / "new"))
    assert list(tmp_path.glob("*.txt")) + list(tmp_path.glob("new")) == []
    at("open", "habits", "--yes")
    capsys.readouterr()
    at("invite", "habits", "--count", "2", "--out", "-")
    assert len(lines(capsys)) == 2
    assert not list(tmp_path.glob("-"))


def test_use_of_a_key_with_a_reused_name_is_recorded(asked, either, capsys):
    asked(either)
    for _ in range(2):
        at("keys", "add", "ann", "--role", "read")
        (key,) = lines(capsys)
        assert either.client.get("/v1/studies", headers={"Authorization": f"Bearer {key}"}).status_code == 200
        at("keys")
        assert lines(capsys)[0].endswith(f"used on {either.day}")
        at("keys", "revoke", "ann", "--yes")
        capsys.readouterr()


def test_qr_code_encodes_the_link(tmp_path):
    """Drawn by the library, read back from its modules: the same modules as of the same text."""
    import segno

    file = tmp_path / "one.svg"
    links._draw("https://ask.example.org/s/habits#invitation=abc", str(file))
    drawn = io.BytesIO()
    segno.make_qr("https://ask.example.org/s/habits#invitation=abc", error="m").save(
        drawn, kind="svg", scale=4, light="white"
    )
    assert file.read_bytes() == drawn.getvalue()


def test_invite_splits_a_large_count_into_requests(asked, either, monkeypatch, tmp_path):
    asked(either)
    monkeypatch.setattr(access_commands, "AT_ONCE", 2)
    at("invite", "habits", "--count", "5", "--out", str(tmp_path / "links.txt"))
    assert len(set((tmp_path / "links.txt").read_text().splitlines())) == 5


def test_keys_are_bound_to_studies_and_expire(asked, either, make_study, capsys):
    asked(either)
    either.publish(make_study(id="other"))
    last = date(2099, 1, 1)
    at("keys", "add", "ann", "--role", "read", "--study", "habits", "--expires", last.isoformat())
    told = capsys.readouterr()
    key, said = told.out.strip(), told.err
    assert not said
    headers = {"Authorization": f"Bearer {key}"}
    assert either.client.get("/v1/studies/habits/export", headers=headers).status_code == 200
    at("keys")
    assert lines(capsys) == [f"ann\tread\thabits\tuntil {last}\tused on {either.day}"]
    either.day = last + timedelta(1)
    expired = either.client.get("/v1/studies/habits/export", headers=headers)
    assert expired.status_code == 401
    assert f"good until {last}" in expired.get_json()["detail"]
    for day in ("20990101", "2099-W01-1", "2099-02-30"):
        with raises(InputError, "options.wrong_day", "--expires", day):
            at("keys", "add", "eve", "--role", "read", "--expires", day)
    at("keys", "add", "eve", "--role", "read", "--study", "habbits", "--study", "other")
    assert capsys.readouterr().err == "study habbits is not published here: the key is for it once it is\n"
    at("keys", "revoke", "eve", "--yes")
    with raises(InputError, "options.needs_yes"):
        at("keys", "revoke", "ann")
    at("keys", "revoke", "ann", "--dry-run")
    at("keys", "revoke", "ann", "--yes")
    capsys.readouterr()
    at("keys", "--json")
    assert json.loads(capsys.readouterr().out) == []


def test_each_operator_command_prints_one_json_object(
    asked, either, make_study, tmp_path, capsys, monkeypatch
):
    asked(either)
    (tmp_path / "study.json").write_bytes(make_study(id="other").canonical())

    def said(*arguments):
        at(*arguments, "--json")
        return json.loads(capsys.readouterr().out)

    found = [said("publish", str(tmp_path / "study.json"), *more) for more in (["--dry-run"], [], [])]
    assert [(one["done"], one["new"]) for one in found] == [(False, True), (True, True), (True, False)]
    assert (found[1]["study"], found[1]["version"], found[1]["people"]) == ("other", 1, f"{URL}/s/other")
    assert either.client.get(found[1]["devices"].removeprefix(URL)).get_json()["id"] == "other"
    before = {"state": "open", "reports": 0}
    named = {"study": "other", "before": before}
    assert said("close", "other", "--dry-run") == {**named, "version": None, "done": False}
    assert said("close", "other", "--yes") == {**named, "version": 1, "done": True}
    assert said("open", "other", "--yes") == {
        **named, "version": 1, "done": True, "before": {**before, "state": "closed"}
    }  # fmt: skip
    key = said("keys", "add", "ann", "--role", "read", "--study", "other")
    assert (key["name"], key["role"], key["studies"], key["expires"]) == ("ann", "read", ["other"], None)
    headers = {"Authorization": f"Bearer {key['key']}"}
    assert either.client.get("/v1/studies/other/export", headers=headers).status_code == 200
    gone = [said("keys", "revoke", "ann", how) for how in ("--dry-run", "--yes")]
    assert [(one["name"], one["done"]) for one in gone] == [("ann", False), ("ann", True)]
    assert said("expire", "--yes") == {"done": False, "reports": {}, "deleted": {}}
    assert said("invite", "other", "--count", "3", "--dry-run")["done"] is False
    links = said("invite", "other", "--count", "3")["links"]
    assert len({link.removeprefix(f"{URL}/s/other#invitation=") for link in links}) == 3
    file = str(tmp_path / "links.txt")
    found = said("invite", "other", "--count", "2", "--out", file)
    assert (found["invitations"], found["links"], found["file"]) == (2, None, file)
    # What was made before an error is not lost.
    monkeypatch.setattr(access_commands, "AT_ONCE", 2)
    answers = iter([(["abc", "def"], []), InputError("no more")])

    def invite(*_arguments):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(remote.RemoteCollector, "invite", invite)
    with pytest.raises(InputError, match="no more"):
        at("invite", "other", "--count", "4", "--json")
    assert json.loads(capsys.readouterr().out)["invitations"] == 2


def test_audit_log_records_key_action_study_and_day(asked, either, study, make_report, capsys):
    asked(either)
    report = make_report(study)
    either.put(report)
    either.withdraw(report.id)
    either.export()
    either.export()
    for _ in range(3):
        at("open", "habits", "--yes")
    for _ in range(3):
        at("close", "habits", "--yes")
    at("keys", "add", "ann", "--role", "read")
    capsys.readouterr()
    at("status", "--log")
    found = [line.split("\t") for line in lines(capsys)]
    assert {(key, action, study) for _, key, action, study, _ in found} == {
        ("(token)", "publish", "habits"),
        ("(token)", "delete reports", "habits"),
        ("(token)", "export", "habits"),
        ("(token)", "close", "habits"),
        ("(token)", "add key", ""),
    }
    assert len(found) == 5
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for day, *_ in found)
    with either.collector.database.read() as session:
        everything = str(entries(session, 100))
    assert report.id not in everything
    at("status", "--log", "--limit", "2", "--json")
    assert len(json.loads(capsys.readouterr().out)) == 2
    with raises(InputError, "admin.limit_without_log"):
        at("status", "--limit", "2")


@pytest.mark.parametrize("statement", ["UPDATE audit_log SET key = 'nobody'", "DELETE FROM audit_log"])
def test_audit_log_line_cannot_be_changed_or_deleted(either, statement):
    with pytest.raises(DatabaseError, match="append-only"), either.collector.database.write() as session:
        session.execute(text(statement))


def test_audit_log_line_cannot_be_replaced(either):
    """SQLite's REPLACE deletes the old line without asking the trigger of deletions."""
    columns = "id, at, 'nobody', action, study, detail"
    statement = f"REPLACE INTO audit_log SELECT {columns} FROM audit_log"
    if either.url.startswith("postgresql"):
        change = "ON CONFLICT (id) DO UPDATE SET key = 'nobody'"
        statement = f"INSERT INTO audit_log SELECT {columns} FROM audit_log {change}"
    with pytest.raises(DatabaseError, match="append-only"), either.collector.database.write() as session:
        session.execute(text(statement))


def test_close_asks_for_confirmation_on_a_terminal(asked, either, monkeypatch, capsys):
    asked(either)
    monkeypatch.setattr(sys, "stdin", terminal("n\n"))
    with raises(InputError, "options.answered_no"):
        at("close", "habits")
    monkeypatch.setattr(sys, "stdin", terminal("y\n"))
    at("close", "habits")
    assert "sure? [y/N]" in capsys.readouterr().err


def terminal(said):
    stream = io.StringIO(said)
    stream.isatty = lambda: True
    return stream


def test_command_without_a_key_names_the_token_variable(monkeypatch):
    monkeypatch.delenv("LDPKIT_TOKEN", raising=False)
    found = parsed("status", "--collector", URL)
    with raises(InputError, "keys.token_missing", "LDPKIT_TOKEN"):
        found.run(found)


def test_control_characters_in_a_title_are_not_printed(capsys):
    from collector.operator.at_a_collector import show

    status = {"id": "x", "title": "\x1b[2Jgone", "state": "open", "days_left": None, "opens": None,
              "closes": None,
              "reports": 0, "by_day": [], "versions": [], "version": 1, "refused": {},
              "invitations_left": None, "attention": [], "retention": []}  # fmt: skip
    show(status, False, in_lines)
    assert "\x1b" not in capsys.readouterr().out
