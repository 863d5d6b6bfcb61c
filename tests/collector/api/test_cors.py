"""Pages of listed origins may use a collector's device routes; pages of other origins may not."""

import pytest

from collector.api.cors import REMEMBERED_SECONDS
from ldp_client.documents.errors import InputError
from tests.kit.collectors import build_report
from tests.kit.errors import raises

LISTED, OTHER = "https://survey.example.org", "https://survey.example.net"
ALLOWED = "Access-Control-Allow-Origin"
REPORT = f"/v1/studies/habits/reports/{'0' * 32}"


@pytest.fixture
def listing(make_harness, study):
    return make_harness("listing.sqlite3", cors_origins=(LISTED,), published=[study])


@pytest.mark.parametrize(
    ("path", "method", "origin", "is_allowed"),
    [
        ("/v1/studies/habits", "GET", LISTED, True),
        (REPORT, "PUT", LISTED, True),
        (REPORT, "DELETE", LISTED, True),
        (REPORT, "PUT", OTHER, False),
        (REPORT, "PUT", f"{LISTED}.example.net", False),
        # Of operators and analysts.
        ("/v1/studies", "POST", LISTED, False),
        ("/v1/studies/habits", "DELETE", LISTED, False),
        ("/v1/studies/habits/summary", "GET", LISTED, False),
    ],
)
def test_only_listed_origins_may_use_device_routes(listing, path, method, origin, is_allowed):
    asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": "ldpkit-ticket"}
    answer = listing.client.options(path, headers={"Origin": origin, **asked})
    sent = listing.client.open(path, method=method, headers={"Origin": origin, **listing.operator})
    for headers in (answer.headers, sent.headers):
        assert headers.get(ALLOWED) == (LISTED if is_allowed else None)
        # A cookie or a key of a visitor is nobody's here.
        assert "Access-Control-Allow-Credentials" not in headers
    if is_allowed:
        headers = answer.headers
        assert (answer.status_code, answer.data) == (204, b"")
        assert method in headers["Access-Control-Allow-Methods"].split(", ")
        assert (headers["Access-Control-Max-Age"], headers["Vary"]) == (str(REMEMBERED_SECONDS), "Origin")
        allowed = headers["Access-Control-Allow-Headers"].lower()
        # Of a report's upload it is the token; nobody's key does anything there.
        assert ("authorization" in allowed) == (method == "PUT")
        # Nor may a foreign page send what the operator's page sends.
        assert "ldpkit-page" not in allowed


def test_without_listed_origins_no_route_has_cors_headers(habits):
    answer = habits.client.get("/v1/studies/habits", headers={"Origin": LISTED})
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


def test_fast_and_plain_upload_send_the_same_cors_headers(listing, study):
    """An upload in canonical form, the same with a blank, and a refusal."""
    report = build_report(study)
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
def test_invalid_origin_setting_is_rejected(make_harness, origin):
    for setting in ("cors_origins", "frame_ancestors"):
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
