"""A command sends no key in clear, and none without a key."""

from __future__ import annotations

import socket

import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli.client import Client, check_address

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
    monkeypatch.setattr("ldpkit.cli.client.ATTEMPTS", 1)
    return seen


@pytest.mark.attack(14)
@pytest.mark.parametrize(
    "url",
    [
        "http://survey.example",
        "http://127.evil.example",
        "http://localhost@survey.example",
        "http://survey.example\\@localhost",
        "ftp://localhost",
    ],
)
def test_clients_refuse_to_send_keys_over_http(asked, url):
    """Read an operator's key in transit, because a command was given http: no host is even looked up."""
    with pytest.raises(InputError):
        Client(url, TOKEN)
    assert not asked


@pytest.mark.parametrize("url", ["https://survey.example", "http://localhost:8000", "http://[::1]:80"])
def test_https_and_local_addresses_are_allowed(url):
    check_address(url)
