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
from collector.settings import Settings
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises


@pytest.mark.slow
def test_server_log_is_json_lines(start_server, study, make_report):
    first = start_server(environment={"LDPKIT_LOG_FORMAT": "json"})
    first.request("POST", "/v1/studies", study.document)
    report = make_report(study)
    assert first.put(report) == 201
    with pytest.raises(urllib.error.HTTPError):
        first.request("GET", "/metrics", headers={"Authorization": "Bearer wrong-key-of-somebody"})
    first.process.send_signal(signal.SIGTERM)
    first.process.wait(60)
    text = first.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    codes = [line["code"] for line in lines]
    assert {"start", "listening", "wrong-key", "stop"} <= set(codes)
    assert codes.count("start") == codes.count("stop") == 1
    assert not re.search(rf"{report.id}|habits|somebody|\\d\\d:\\d\\d", text)


def test_counts_are_logged_once_a_day(habits, study, make_report, caplog):
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


def test_unknown_log_format_is_rejected():
    with raises(InputError, "settings.unknown_log_form", "log_format", "text, json"):
        Settings(log_format="xml")
