"""Pages of listed origins may use a collector's device routes; pages of other origins may not."""

import pytest

from collector.api.cors import REMEMBERED_SECONDS
from ldp_client.documents.errors import InputError
from tests.kit.collectors import TOKEN
from tests.kit.errors import raises

LISTED, OTHER = "https://survey.example.org", "https://survey.example.net"
ALLOWED = "Access-Control-Allow-Origin"


@pytest.fixture
def listing(make_harness, study):
    harness = make_harness("listing.sqlite3", cors_origins=(LISTED,))
    assert harness.publish(study).status_code == 201
    return harness


def preflight(harness, path, method, origin=LISTED):
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "content-type,ldpkit-ticket",
    }
    return harness.client.options(path, headers=headers)


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/studies/habits", "GET"),
        (f"/v1/studies/habits/reports/{'0' * 32}", "PUT"),
        (f"/v1/studies/habits/reports/{'0' * 32}", "DELETE"),
    ],
)
def test_listed_origins_may_use_device_routes(listing, path, method):
    answer = preflight(listing, path, method)
    headers = answer.headers
    assert (answer.status_code, answer.data, headers[ALLOWED]) == (204, b"", LISTED)
    assert method in headers["Access-Control-Allow-Methods"].split(", ")
    assert (headers["Access-Control-Max-Age"], headers["Vary"]) == (str(REMEMBERED_SECONDS), "Origin")
    # A cookie or a key of a visitor is nobody's here.
    assert "Access-Control-Allow-Credentials" not in headers
    # Of a report's upload it is the token; nobody's key does anything there.
    allowed = headers["Access-Control-Allow-Headers"].lower()
    assert ("authorization" in allowed) == (method == "PUT")
    # Nor may a foreign page send what the operator's page sends.
    assert "ldpkit-page" not in allowed
    for other in (OTHER, f"{LISTED}.example.net"):
        assert ALLOWED not in preflight(listing, path, method, other).headers


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/studies", "POST"),
        ("/v1/studies/habits", "DELETE"),
        ("/v1/studies/habits/summary", "GET"),
    ],
)
def test_no_origin_may_use_operator_or_analyst_routes(listing, habits, path, method):
    assert ALLOWED not in preflight(listing, path, method).headers
    headers = {"Origin": LISTED, "Authorization": f"Bearer {TOKEN}"}
    assert ALLOWED not in listing.client.open(path, method=method, headers=headers).headers
    # Where none is listed, no route has such headers.
    answer = habits.client.get("/v1/studies/habits", headers={"Origin": LISTED})
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


def test_fast_and_plain_upload_send_the_same_cors_headers(listing, make_report, study):
    """An upload in canonical form, the same with a blank, and a refusal."""
    report = make_report(study)
    path, whole = f"/v1/studies/{report.study}/reports/{report.id}", report.to_json()
    for origin, allowed in ((LISTED, LISTED), (OTHER, None)):
        headers = {"Origin": origin, "Content-Type": "application/json"}
        for body, status in ((whole, 2), (f" {whole}", 2), ("{", 4)):
            answer = listing.client.put(path, data=body, headers=headers)
            assert (answer.status_code // 100, answer.headers.get(ALLOWED)) == (status, allowed)
            assert answer.headers.getlist("Vary") == ["Origin"]
            assert (allowed is None) == ("Access-Control-Expose-Headers" not in answer.headers)


@pytest.mark.parametrize(
    "origin",
    [
        *("*", "null", "https://*.example.org", "survey.example.org", "https://survey.example.org/"),
        *("https://Survey.example.org", "https://survey.example.org:443", "http://survey.example.org"),
        *("http://localhost:80", "https://survey.example.org/page", "https://a@example.org", "file://"),
    ],
)
@pytest.mark.parametrize("setting", ["cors_origins", "frame_ancestors"])
def test_invalid_origin_setting_is_rejected(make_harness, setting, origin):
    with raises(InputError, "settings.wrong_value", setting, origin):
        make_harness(**{setting: (LISTED, origin)})


def test_only_listed_sites_may_frame_a_study(make_harness, study):
    for listed, sources in (
        ((), "'none'"),
        ((LISTED, "http://localhost:8080"), f"{LISTED} http://localhost:8080"),
    ):
        harness = make_harness(frame_ancestors=listed)
        harness.publish(study)
        policy = harness.client.get("/s/habits").headers["Content-Security-Policy"]
        assert f"frame-ancestors {sources};" in policy
    # An operator's page is no study's.
    assert "frame-ancestors 'none'" in harness.client.get("/").headers["Content-Security-Policy"]
