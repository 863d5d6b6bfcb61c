"""An operator's key is read in transit, because a command was given http:// instead of https://.

Defence: The command: sends no key in clear, except to this machine itself.
"""

from __future__ import annotations

import socket

import pytest

from collector.remote.client import require_private
from collector.remote.download import fetch_reports, fetch_summary
from collector.remote.nodes import NodeClient
from ldp_client.documents.errors import InputError
from ldpkit.cli import main

TOKEN = "operators-token-0123456789"


@pytest.fixture
def asked(monkeypatch):
    """The hosts that were looked up or connected to."""
    seen = []

    def refuse(host, *_arguments, **_options):
        seen.append(host)
        raise OSError("no network here")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr("collector.remote.client.ATTEMPTS", 1)
    return seen


@pytest.mark.parametrize("summary", [(), ("--summary",)])
def test_export_refuses_to_send_a_key_over_http(asked, tmp_path, monkeypatch, capsys, summary):
    monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
    out = tmp_path / "reports.ndjson"
    assert main(["export", "habits", "--collector", "http://survey.example", "--out", str(out), *summary])
    assert "the key would go there in clear; use https://" in capsys.readouterr().err
    assert not asked
    assert not out.exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://survey.example",
        "http://127.evil.example",
        "http://localhost.example:80",
        "http://localhost@survey.example",
        "http://survey.example\\@localhost",
        "HTTP://10.0.0.1",
        "ftp://localhost",
    ],
)
def test_clients_refuse_to_send_keys_over_http(asked, url):
    calls = (
        lambda: list(fetch_reports(url, "habits", TOKEN)),
        lambda: fetch_summary(url, "habits", TOKEN),
        lambda: NodeClient(url, "habits", TOKEN),
    )
    for call in calls:
        with pytest.raises(InputError):
            call()
    assert not asked


@pytest.mark.parametrize("url", ["https://survey.example", "http://localhost:8000", "http://[::1]:80"])
def test_https_and_local_addresses_are_allowed(url):
    require_private(url)
