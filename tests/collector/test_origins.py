"""The pages' policies name the issuers of the studies, and stay short enough for servers in front."""

from __future__ import annotations

import re

import pytest

from collector.keys import Role, add_key
from collector.studies import MOST_ORIGINS
from tests import studies
from tests.collector.answered import refusal
from tests.kit.collectors import REPOSITORY
from tests.ldp_client.issuers import Key

# nginx refuses an answer whose headers are longer, unless it is told otherwise.
NGINX_BYTES = 4096
LABEL = "a" * 63


@pytest.fixture
def publishing(habits):
    """Publish a version of a study with an issuer; return the status and the text of a refusal."""
    seeds = {}

    def published(study, version, issuer, headers=habits.operator):
        # No two studies share a token key.
        if study not in seeds:
            seeds[study] = Key().text
        key = seeds[study]
        channel = {"batches": {"hours": 1}, "tickets": {"issuer": issuer, "keys": [{"key": key}]}}
        document = studies.document(studies.YES_NO, id=study, version=version, channel=channel)
        response = habits.client.post("/v1/studies", json=document, headers=headers)
        return response.status_code, refusal(response) if response.status_code >= 400 else None

    return published


def ann(harness):
    """Who may publish the study `mine`, and no other."""
    with harness.collector.database.write() as session:
        return {"Authorization": f"Bearer {add_key(session, 'ann', Role.PUBLISH, ['mine'])}"}


def long_issuer(number):
    """Its host is as long as names may be, 253 characters."""
    return f"https://{number:02}.{LABEL}.{LABEL}.{LABEL}.{LABEL[:58]}/tokens"


def named(response):
    return re.search("connect-src ([^;]*)", response.headers["Content-Security-Policy"])[1].split()


def check_pages(harness):
    """The page of another study, and the worker; what they may connect to."""
    page, worker = (harness.client.get(path) for path in ("/s/habits", "/assets/worker.js"))
    for response in (page, worker):
        assert response.status_code == 200
        assert sum(len(f"{name}: {value}") for name, value in response.headers.items()) < NGINX_BYTES - 500
    assert named(page) == named(worker)
    return named(page)


REFUSED = (422, ("study-invalid", "channel"))


@pytest.mark.attack(15)
def test_study_key_cannot_use_up_page_header_room(habits, publishing):
    """Someone with a key for one study names so many issuers that no page loads any more."""
    headers = ann(habits)
    found = [publishing("mine", version, long_issuer(version), headers) for version in range(1, 13)]
    assert found == [(201, None)] * 2 + [REFUSED] * 10
    # What is named already takes no more room.
    assert publishing("mine", 3, long_issuer(1), headers) == (201, None)
    assert publishing("other", 1, "https://issuer.example/tokens") == (201, None)
    assert len(check_pages(habits)) == 4


@pytest.mark.parametrize("recipe", ["docs/operate.md", "deploy/container/nginx.conf"])
def test_documented_proxies_accept_several_times_longer_headers(recipe):
    text = (REPOSITORY / recipe).read_text(encoding="utf-8")
    kilobytes = int(re.search(r"proxy_buffer_size (\d+)k;", text)[1])
    assert kilobytes << 10 >= 4 * MOST_ORIGINS
    assert f"proxy_buffers 4 {kilobytes}k;" in text
