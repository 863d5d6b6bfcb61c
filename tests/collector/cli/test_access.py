"""The operator's commands on access: invite and keys."""

from __future__ import annotations

import csv
import errno
import io
import os
import stat
from datetime import date, timedelta

import click
import pytest

from ldp_client.documents.errors import InputError, LdpkitError
from ldpkit.cli import invited, main, tickets
from ldpkit.cli.client import RefusalError
from ldpkit.cli.invited import Person
from tests.kit.commands import exit_code
from tests.kit.errors import raises
from tests.kit.operators import URL, at, lines

STRATUM = {"id": "stratum", "choices": ["town", "country"], "source": "ticket"}


@pytest.fixture
def served(asked, inviting):
    """A collector that answers the commands."""
    return asked(inviting)


@pytest.fixture
def strata(served, make_study):
    """A collector whose study has strata, which tickets carry."""
    assert served.publish(make_study(2, public=[STRATUM])).status_code == 201
    return served


def test_tickets_are_links_and_pictures_for_their_owner_alone(
    served, study, make_report, tmp_path, capsys, monkeypatch
):
    # In several requests, as a large count goes.
    monkeypatch.setattr(tickets, "AT_ONCE", 2)
    table, pictures = tmp_path / "links.csv", tmp_path / "codes"
    invite = ("invite", "habits", "--count", "3")
    at(*invite, "--out", str(table), "--qr", str(pictures), "--address", "https://ask.example.org/s/habits/")
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    words = [row["ticket"] for row in rows]
    assert len(set(words)) == 3
    links = [f"https://ask.example.org/s/habits#ticket={word}" for word in words]
    assert [row["link"] for row in rows] == links
    files = [table, *sorted(pictures.iterdir())]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 4
    assert stat.S_IMODE(pictures.stat().st_mode) == 0o700
    assert files[1].read_text().startswith("<?xml")
    report = make_report(study)
    assert [served.put(report).status_code, served.put(report, words[0]).status_code] == [401, 201]
    capsys.readouterr()
    at("status", "habits")
    assert "2 tickets left" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "carry the public fields stratum"),
        (["--public", "stratum=village"], "stratum: must be one of its choices"),
        (["--public", "stratum=town", "--public", "age=20"], "carry the public fields stratum"),
        (["--public", "stratum"], "must be FIELD=VALUE"),
        (["--public", "stratum=town", "--public", "stratum=town"], "must be FIELD=VALUE"),
        (["--public", "stratum=town", "--out", "taken.csv"], r"taken\.csv"),
    ],
)
def test_wrong_tickets_are_refused_before_any_is_made(strata, tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.csv").write_text("")
    with pytest.raises((LdpkitError, click.UsageError), match=says):
        at("invite", "habits", "--count", "2", *options)
    found = strata.client.get("/v1/studies/habits/status", headers=strata.operator).get_json()
    assert found["tickets_left"] == 0


def test_invite_creates_tickets_for_a_value(strata, make_study, make_report, capsys):
    study = make_study(2, public=[STRATUM])
    at("invite", "habits", "--count", "2", "--public", "stratum=town")
    for link in lines(capsys):
        assert strata.put(make_report(study), link.partition("=")[2]).status_code == 201
    assert [report.public["stratum"] for report in strata.exported()] == ["town"] * 2
    strata.close()
    with pytest.raises(LdpkitError, match="was closed"):
        at("invite", "habits", "--count", "2", "--public", "stratum=town")


def test_failed_invite_leaves_no_file(served, tmp_path, capsys):
    links, taken = tmp_path / "links.txt", tmp_path / "codes"
    taken.mkdir()
    invite = ("invite", "habits", "--count", "2", "--out")
    with raises(InputError, "files.cannot_write", str(taken)):
        at(*invite, str(links), "--qr", str(taken))
    served.close()
    with pytest.raises(RefusalError, match="was closed"):
        at(*invite, str(links), "--qr", str(tmp_path / "new"))
    assert list(tmp_path.glob("*.txt")) + list(tmp_path.glob("new")) == []
    at("open", "habits")
    capsys.readouterr()
    at(*invite, "-")
    assert len(lines(capsys)) == 2


def test_failed_qr_code_does_not_lose_links(tmp_path, monkeypatch):
    def draw(*_):
        raise InputError("cannot write it")

    monkeypatch.setattr(invited, "draw", draw)
    path, codes = str(tmp_path / "links.txt"), str(tmp_path / "codes")
    with pytest.raises(InputError), invited.new_links(path, codes, "https://x/", ["number"]) as write:
        write([Person("", {})] * 2, ["one", "two"])
    assert (tmp_path / "links.txt").read_text() == "https://x/one\nhttps://x/two\n"


class FullDisk(io.StringIO):
    """A standard output that goes to a full disk."""

    def write(self, _text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("served")
def test_invite_with_unwritable_output_names_the_undo_command(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout", FullDisk())
    assert main(["invite", "habits", "--count", "5", "--collector", URL]) == 3
    assert "`ldpkit invite habits --disable` admits all reports again" in capsys.readouterr().err


def test_keys_are_bound_to_studies_and_expire(served, make_study, capsys):
    served.publish(make_study(id="other"))
    last = date(2099, 1, 1)
    at("keys", "ann", "--role", "read", "--study", "habits", "--expires", last.isoformat())
    headers = {"Authorization": f"Bearer {lines(capsys)[0]}"}
    assert served.client.get("/v1/studies/habits/export", headers=headers).status_code == 200
    at("keys")
    assert lines(capsys) == [f"ann\tread\thabits\tuntil {last}\tused on {served.day}"]
    served.day = last + timedelta(1)
    expired = served.client.get("/v1/studies/habits/export", headers=headers)
    assert expired.status_code == 401
    assert f"good until {last}" in expired.get_json()["detail"]
    at("keys", "eve", "--role", "read", "--study", "habbits", "--study", "other")
    assert "study habbits is not published here" in capsys.readouterr().err
    with raises(InputError, "options.needs_yes", "revoking the key ann"):
        at("keys", "ann", "--revoke")
    for name in ("ann", "eve"):
        at("keys", name, "--revoke", "--yes")
    capsys.readouterr()
    at("keys")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("someone", "--role", "read"), ("server.refused", "'someone'")),
        (("Some One", "--role", "read"), ("server.refused", "64")),
        (("nobody", "--revoke", "--yes"), ("server.refused", "'nobody'")),
    ],
)
@pytest.mark.usefixtures("served")
def test_wrong_keys_commands_are_refused(arguments, code):
    at("keys", "someone", "--role", "read")
    with raises((InputError, RefusalError), code):
        at("keys", *arguments)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["keys", "eve"], "NAME with --role, NAME with --revoke"),
        (["keys", "eve", "--role", "read", "--revoke"], "NAME with --role, NAME with --revoke"),
        (["keys", "--study", "habits"], "go with --role"),
        (
            ["keys", "eve", "--role", "read", "--expires", "2099-02-30"],
            "'2099-02-30' does not match the format",
        ),
        (["delete", "habits", "--before", "June", "--yes"], "'June' does not match the format"),
    ],
)
def test_value_of_another_kind_is_refused(capsys, monkeypatch, command, says):
    monkeypatch.setenv("LDPKIT_TOKEN", "key")
    assert exit_code(command) == 2
    assert says in capsys.readouterr().err
