"""Choose what a collector renders, keeps or logs with headers: Host, and keys that are no text.

Defence: The collector: renders a page once for all hosts, and takes such keys for wrong ones.
"""

from __future__ import annotations

import pytest

from collector.views import participant
from schemas import Study
from tests import studies

PLANTS = Study(studies.document(*studies.TABLES, **studies.HOLDER, opens="2026-01-01"))


@pytest.fixture
def plants(empty):
    participant._rendered.cache_clear()
    assert empty.publish(PLANTS).status_code == 201
    return empty


def page(harness, host):
    answer = harness.client.get("/s/plants", headers={"Host": host})
    assert answer.status_code == 200
    return answer


def test_page_is_rendered_once_for_all_hosts(plants):
    for number in range(300):
        host = f"host-{number}.example.org"
        assert f"ldpkit answer https://{host}/v1/studies/plants" in page(plants, host).text
    found = participant._rendered.cache_info()
    assert (found.misses, found.currsize) == (1, 1)


def test_host_header_is_escaped_in_page(plants):
    odd = plants.client.get("/s/plants", headers={"Host": 'x"><b>'})
    assert "<b>" not in odd.text
    first, other = page(plants, "example.org"), page(plants, "other.example.org")
    assert first.headers["ETag"] != other.headers["ETag"]
    assert participant.ADDRESS not in first.text


@pytest.mark.parametrize("scheme", ["Basic", "basic", "Bearer", "Digest"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/v1/studies/plants/export"])
def test_non_ascii_key_is_rejected_as_wrong(plants, caplog, scheme, path):
    """One odd byte must not cause a server error with lines in the log."""
    answer = plants.client.get(path, headers={"Authorization": f"{scheme} \xff"})
    assert answer.status_code == 401
    assert "a request failed" not in caplog.text
