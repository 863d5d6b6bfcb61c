"""A server's log as JSON lines: what happened, in codes, and neither when nor to whom."""

from __future__ import annotations

import json
import logging
import re
import signal
import urllib.error
from datetime import timedelta

import pytest

from collector.logs import JsonLines
from collector.serving.place import saying_second
from collector.settings import Settings
from ldp_client.documents.errors import InputError


@pytest.mark.slow
def test_a_servers_life_is_lines_for_programs(start_server, study, make_report):
    """A second server on the file, too, which says so."""
    json_lines = {"LDPKIT_LOG": "json"}
    first = start_server(environment=json_lines)
    first.request("POST", "/v1/studies", study.document)
    report = make_report(study)
    assert first.put(report) == 201
    with pytest.raises(urllib.error.HTTPError):
        first.request("GET", "/metrics", headers={"Authorization": "Bearer wrong-key-of-somebody"})
    second = start_server(environment=json_lines)
    for server in (second, first):
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
    text = first.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    codes = [line["code"] for line in lines]
    assert {"start", "listening", "wrong-key", "second-process", "stop"} <= set(codes)
    assert codes.count("start") == codes.count("stop") == 2
    assert codes.count("second-process") == 1
    assert not re.search(rf"{report.id}|habits|somebody|\\d\\d:\\d\\d", text)
    assert not list(first.database.parent.glob("*.served"))


def test_each_days_counts_are_a_line_and_no_more_often(habits, study, make_report, caplog):
    caplog.set_level(logging.INFO, "collector")
    for days in (0, 0, 1, 1):
        habits.day += timedelta(days)
        habits.put(make_report(study))
        habits.put(make_report(study, digest="0" * 64))
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    counts = [line for line in lines if line["code"] == "counts"]
    assert [(line["accepted"], line["rejected"]) for line in counts] == [
        (2, {"report-invalid": 2}),
        (3, {"report-invalid": 3}),
    ]


def test_another_form_is_refused():
    with pytest.raises(InputError, match="setting log: must be one of text, json"):
        Settings(log="xml")


def test_a_second_server_by_another_name_of_the_file_is_said(tmp_path, caplog):
    """The mark lay beside the link."""
    file, link = tmp_path / "real.sqlite3", tmp_path / "link" / "reports.sqlite3"
    link.parent.mkdir()
    link.symlink_to(file)
    with saying_second(file, 1), saying_second(link, 1):
        pass
    assert "another server works on" in caplog.text
    assert not list(link.parent.glob(".*"))
