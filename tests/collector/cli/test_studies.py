"""The operator's commands on studies, tickets and keys."""

import csv
import errno
import io
import json
import stat
from datetime import date, timedelta
from unittest.mock import Mock

import click
import pytest

from collector import retention
from collector.api import operator
from ldp_client.documents.errors import InputError, LdpkitError
from ldpkit.cli import invited, tickets
from ldpkit.cli.client import RefusalError
from tests.kit.answers import send_reports
from tests.kit.collectors import STRATUM, build_report, build_study
from tests.kit.errors import raises
from tests.kit.operators import URL, lines
from tests.ldp_client.issuers import channel_of

A_DAY = timedelta(1)


def test_list_and_status_print_the_state_of_studies(inviting, study, capsys):
    inviting.publish(build_study(id="other", title="Sleep", closes=(inviting.day + timedelta(2)).isoformat()))
    inviting.post([build_report(study).to_document() for _ in range(5)])
    inviting.day += A_DAY
    inviting.put(build_report(study))
    inviting.put(build_report(study, digest="0" * 64))
    inviting.operate("status")
    assert [line.split("\t")[0] for line in lines(capsys)] == ["habits", "other"]
    inviting.operate("status", "--json")
    found = json.loads(capsys.readouterr().out)[1]
    assert (found["id"], found["days_left"]) == ("other", 2)
    inviting.operate("status", "habits", "--json")
    found = json.loads(capsys.readouterr().out)
    assert [one["reports"] for one in found["by_day"]] == [5, 1]
    assert found["versions"] == [{"version": 1, "reports": 6}]
    assert found["refused"] == {"report-invalid": 1}
    assert found["attention"] == [
        "1 upload refused since the collector started, most of them as report-invalid"
    ]
    inviting.operate("status", "other")
    said = capsys.readouterr().out
    assert "look after: it has no report" in said
    assert "look after: it ends in 1 day" in said


def test_close_warns_about_reports_waiting_on_devices(inviting, capsys):
    """Reports of the last two windows wait on devices: a study closed on its last evening lost them all."""
    inviting.publish(build_study(id="hidden", channel=channel_of("https://issuer.example", hours=24)))
    for study_id, is_warned in (("hidden", True), ("habits", False)):
        with raises(InputError, "options.needs_yes"):
            inviting.operate("close", study_id)
        assert ("up to 48 hours after they were made" in capsys.readouterr().err) == is_warned


def test_tickets_are_links_and_pictures_for_their_owner_alone(inviting, study, tmp_path, capsys, monkeypatch):
    # In several requests, as a large count goes.
    monkeypatch.setattr(tickets, "AT_ONCE", 2)
    table, pictures = tmp_path / "links.csv", tmp_path / "codes"
    invite = ("invite", "habits", "--count", "3")
    inviting.operate(
        *invite, "--out", str(table), "--qr", str(pictures), "--address", "https://ask.example.org/s/habits/"
    )
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    words = [row["ticket"] for row in rows]
    assert len(set(words)) == 3
    links = [f"https://ask.example.org/s/habits#ticket={word}" for word in words]
    assert [row["link"] for row in rows] == links
    files = [table, *sorted(pictures.iterdir())]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 4
    assert stat.S_IMODE(pictures.stat().st_mode) == 0o700
    assert files[1].read_text().startswith("<?xml")
    report = build_report(study)
    assert [inviting.put(report).status_code, inviting.put(report, words[0]).status_code] == [401, 201]
    capsys.readouterr()
    inviting.operate("status", "habits")
    assert "2 tickets left" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "carry the public fields stratum"),
        (["--public", "stratum=village"], "stratum: must be one of its choices"),
        (["--public", "stratum=town", "--public", "age=20"], "carry the public fields stratum"),
        (["--public", "stratum=town", "--public", "stratum=town"], "must be FIELD=VALUE"),
        (["--public", "stratum=town", "--out", "taken.csv"], r"taken\.csv"),
    ],
)
def test_wrong_tickets_are_refused_before_any_is_made(inviting, tmp_path, monkeypatch, options, says):
    assert inviting.publish(build_study(2, public=[STRATUM])).status_code == 201
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.csv").write_text("")
    with pytest.raises((LdpkitError, click.UsageError), match=says):
        inviting.operate("invite", "habits", "--count", "2", *options)
    found = inviting.client.get("/v1/studies/habits/status", headers=inviting.operator).get_json()
    assert found["tickets_left"] == 0


def test_failed_invite_leaves_no_file_or_names_the_undo_command(inviting, tmp_path, capsys, monkeypatch):
    links, taken = tmp_path / "links.txt", tmp_path / "codes"
    taken.mkdir()
    invite = ("invite", "habits", "--count", "2", "--out")
    with raises(InputError, "files.cannot_write", str(taken)):
        inviting.operate(*invite, str(links), "--qr", str(taken))
    inviting.close()
    with pytest.raises(RefusalError, match="was closed"):
        inviting.operate(*invite, str(links), "--qr", str(tmp_path / "new"))
    assert list(tmp_path.glob("*.txt")) + list(tmp_path.glob("new")) == []
    inviting.operate("open", "habits")
    capsys.readouterr()
    inviting.operate(*invite, "-")
    assert len(lines(capsys)) == 2
    # A drawing that fails loses no link.
    monkeypatch.setattr(invited, "draw", Mock(side_effect=InputError("cannot write it")))
    with pytest.raises(InputError):
        inviting.operate(*invite, str(links), "--qr", str(tmp_path / "new"))
    assert links.read_text().count(URL) == 2
    # Nor does a disk that is full get them.
    monkeypatch.setattr("sys.stdout", Mock(**{"write.side_effect": OSError(errno.ENOSPC, "No space")}))
    assert inviting.exit_code("invite", "habits", "--count", "5") == 3
    assert "`ldpkit invite habits --disable` admits all reports again" in capsys.readouterr().err


def test_keys_are_bound_to_studies_and_expire(inviting, capsys):
    inviting.publish(build_study(id="other"))
    last = date(2099, 1, 1)
    inviting.operate("keys", "ann", "--role", "read", "--study", "habits", "--expires", last.isoformat())
    headers = {"Authorization": f"Bearer {lines(capsys)[0]}"}
    assert inviting.client.get("/v1/studies/habits/export", headers=headers).status_code == 200
    inviting.operate("keys")
    assert lines(capsys) == [f"ann\tread\thabits\tuntil {last}\tused on {inviting.day}"]
    inviting.day = last + timedelta(1)
    expired = inviting.client.get("/v1/studies/habits/export", headers=headers)
    assert expired.status_code == 401
    assert f"good until {last}" in expired.get_json()["detail"]
    inviting.operate("keys", "eve", "--role", "read", "--study", "habbits", "--study", "other")
    assert "study habbits is not published here" in capsys.readouterr().err
    for wrong, fact in (
        (("eve", "--role", "read"), "'eve'"),
        (("Some One", "--role", "read"), "64"),
        (("nobody", "--revoke", "--yes"), "'nobody'"),
    ):
        with raises(RefusalError, "server.refused", fact):
            inviting.operate("keys", *wrong)
    with raises(InputError, "options.needs_yes", "revoking the key ann"):
        inviting.operate("keys", "ann", "--revoke")
    for name in ("ann", "eve"):
        inviting.operate("keys", name, "--revoke", "--yes")
    capsys.readouterr()
    inviting.operate("keys")
    assert capsys.readouterr().out == ""


def test_reports_from_before_a_day_are_deleted(inviting, study, capsys, monkeypatch):
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 4)
    monkeypatch.setattr(operator, "MOST_AT_ONCE", 6)
    send_reports(inviting, "habits", 10)
    inviting.day += A_DAY
    last = build_report(study)
    inviting.put(last)
    tomorrow = str(inviting.day + A_DAY)
    for study_id, day, fact in (("habits", tomorrow, "still to come"), ("nosuch", "2026-06-01", "'nosuch'")):
        with raises(LdpkitError, "server.refused", fact):
            inviting.operate("delete", study_id, "--before", day, "--yes")
    delete = ["delete", "habits", "--before", inviting.day.isoformat()]
    with raises(InputError, "options.needs_yes", "10", "habits"):
        inviting.operate(*delete)
    inviting.operate(*delete, "--yes")
    assert lines(capsys) == ["10 reports of habits deleted"]
    assert inviting.exported() == [last]
    assert [(entry.key, entry.study) for entry in inviting.logged("expire")] == [("(token)", "habits")]


def test_delete_command_deletes_a_study_permanently(inviting, study, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(operator, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 2)
    send_reports(inviting, "habits", 5)
    with raises(InputError, "options.needs_yes", "5", "habits"):
        inviting.operate("delete", "habits")
    # Twice, as the message says of a deletion that broke off.
    for count in (5, 0):
        inviting.operate("delete", "habits", "--yes")
        assert lines(capsys) == [f"{count} reports of habits deleted, and the study closed permanently"]
    assert inviting.exported() == []
    assert inviting.put(build_report(study)).status_code == 410
    assert inviting.client.get("/v1/studies/habits?version=1").data == study.canonical()
    second = tmp_path / "second.json"
    second.write_bytes(build_study(2).canonical())
    with raises(RefusalError, "server.refused", "was deleted by its operator"):
        inviting.operate("publish", str(second))
    with raises(RefusalError, "server.refused", "was deleted"):
        inviting.operate("open", "habits")
    inviting.operate("status", "habits", "--json")
    assert json.loads(capsys.readouterr().out)["state"] == "deleted"
