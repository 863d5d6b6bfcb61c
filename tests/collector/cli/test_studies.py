"""The operator's commands on studies: publish, status, close, open."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import text

from ldp_client.documents.errors import InputError, LdpkitError
from ldpkit.cli.client import RefusalError
from tests.kit.commands import exit_code, parsed
from tests.kit.errors import raises
from tests.kit.operators import URL, at, lines
from tests.ldp_client.issuers import channel_of


def test_publish_prints_the_studys_links(asked, empty, study, tmp_path, capsys, monkeypatch):
    asked(empty)
    file = tmp_path / "study.json"
    file.write_bytes(study.canonical())
    with monkeypatch.context() as patch:
        patch.setenv("LDPKIT_TOKEN", "a-key-that-was-removed")
        with pytest.raises(RefusalError, match="does not know the key"):
            at("publish", str(file))
    assert empty.client.get("/v1/studies/habits").status_code == 404
    at("publish", str(file))
    said = "\n".join(lines(capsys))
    assert f"habits, version 1, is published; digest {study.digest}" in said
    assert f"{URL}/s/habits\n" in said
    at("publish", str(file))
    assert "was published before" in capsys.readouterr().out


def test_list_and_status_print_the_state_of_studies(asked, inviting, study, make_study, make_report, capsys):
    asked(inviting)
    inviting.publish(make_study(id="other", title="Sleep", closes=(inviting.day + timedelta(2)).isoformat()))
    inviting.post([make_report(study).to_document() for _ in range(5)])
    inviting.day += timedelta(1)
    inviting.put(make_report(study))
    inviting.put(make_report(study, digest="0" * 64))
    at("status")
    assert [line.split("\t")[0] for line in lines(capsys)] == ["habits", "other"]
    at("status", "--json")
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


def test_export_takes_no_abbreviated_option(capsys):
    """`--to URL` would be taken as `--token URL`."""
    asked = parsed(["export", "habits", "--collector", URL, "--out", "r.csv"])
    assert asked["collector"] == URL
    assert exit_code(["export", "habits", "--to", URL, "--out", "r.csv"]) == 2
    assert "--to" in capsys.readouterr().err


def test_close_warns_about_reports_waiting_on_devices(asked, inviting, make_study, capsys):
    """Reports of the last two windows wait on devices: a study closed on its last evening lost them all."""
    asked(inviting)
    inviting.publish(make_study(id="hidden", channel=channel_of("https://issuer.example", hours=24)))
    with raises(InputError, "options.needs_yes"):
        at("close", "hidden")
    assert "up to 48 hours after they were made" in capsys.readouterr().err
    with raises(InputError, "options.needs_yes"):
        at("close", "habits")
    assert "under way" not in capsys.readouterr().err


def test_closed_study_takes_no_version_and_deleted_study_stays_closed(asked, inviting, make_study, tmp_path):
    asked(inviting)
    second = tmp_path / "second.json"
    second.write_bytes(make_study(2).canonical())
    at("close", "habits", "--yes")
    with pytest.raises(LdpkitError, match="takes no new version; open it first"):
        at("publish", str(second))
    with inviting.collector.database.write() as session:
        session.execute(text("UPDATE studies SET deleted = true, final = true"))
    inviting.collector.has_changed("habits")
    with pytest.raises(LdpkitError, match=r"stays closed|was deleted"):
        at("open", "habits")
    with pytest.raises(LdpkitError, match="was deleted by its operator"):
        at("publish", str(second))
