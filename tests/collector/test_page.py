"""The operator's page: over the test client, and in a real browser."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from collector.bounding import REST, CostBoundCache
from schemas import Study
from tests import studies
from tests.collector.answered import basic
from tests.portable import chromium

WAIT_SECONDS = 30


@contextmanager
def browser(folder, width=1000):
    driver = chromium.start(folder / "profile")
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield driver
    finally:
        driver.quit()


def test_the_page_needs_a_key(habits, token):
    response = habits.client.get("/")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Basic ")
    for headers in (basic("wrong"), basic(""), {"Authorization": f"Bearer {token}"}):
        refused = habits.client.get("/", headers=headers)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Basic ")
    assert habits.client.get("/", headers=basic(token)).status_code == 200


def test_the_page_says_what_is_asked_and_what_came(habits, study, make_report, token):
    habits.post([make_report(study).to_document() for _ in range(7)])
    habits.put(make_report(study, digest="0" * 64))
    text = habits.client.get("/", headers=basic(token)).text
    for words in (
        "Habits",
        "<strong>7</strong> reports",
        "report-invalid",
        "Laplace noise",
        "Yes or no.",
    ):
        assert words in text


def test_the_page_does_not_leave_out_delta(empty, token):
    empty.publish(Study(studies.document(studies.LINEAR)))
    assert "added probability of 1 in 1,000,000" in empty.client.get("/", headers=basic(token)).text


def test_words_of_a_study_are_never_markup(empty, make_study, token):
    empty.publish(make_study(title="<script>alert(1)</script>", purpose="<img src=x onerror=alert(1)>"))
    text = empty.client.get("/", headers=basic(token)).text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_strict_policy_stands_on_page_and_assets(habits, token):
    for path in ("/", "/assets/operator/operator.css", "/assets/operator/operator.js"):
        response = habits.client.get(path, headers=basic(token))
        assert response.status_code == 200
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_recent_value_is_kept_in_proportion_to_its_cost(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("collector.bounding.time.monotonic", lambda: now[0])
    computed = []

    def compute():
        now[0] += 2.0
        computed.append(now[0])
        return len(computed)

    recent = CostBoundCache(compute)
    assert [recent.get(), recent.get()] == [1, 1]
    now[0] += 2.0 * REST
    assert recent.get() == 2


def shown(driver, selector, part="innerText"):
    """Of an element in one step: the page may replace it at any time."""
    return driver.execute_script("return document.querySelector(arguments[0])[arguments[1]]", selector, part)


@pytest.mark.slow
def test_in_a_browser_counts_go_up_by_themselves(start_server, study, make_report, token, tmp_path):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    address = urlsplit(server.url)
    with browser(tmp_path) as driver:
        driver.get(f"http://me:{token}@{address.netloc}/")
        assert driver.title == "ldpkit collector"
        assert shown(driver, "section a", "href").endswith("/s/habits")
        for _ in range(3):
            assert server.put(make_report(study)) == 201
        WebDriverWait(driver, WAIT_SECONDS).until(lambda page: shown(page, ".reports strong") == "3")
        assert shown(driver, "#state") == "live"
        messages = [
            entry["message"] for entry in driver.get_log("browser") if "favicon" not in entry["message"]
        ]
        assert messages == []


@pytest.mark.parametrize("width", [390, 1200])
def test_in_a_browser_nothing_overflows(start_server, study, token, tmp_path, width):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    with browser(tmp_path, width) as driver:
        driver.get(f"http://me:{token}@{urlsplit(server.url).netloc}/")
        scrolled = driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert scrolled <= 0


def test_every_mechanism_has_its_words(empty, token):
    study = Study(studies.document(*studies.ALL, *studies.NEWER))
    assert empty.publish(study).status_code == 201
    response = empty.client.get("/", headers=basic(token))
    assert response.status_code == 200
    assert response.text.count("of the reports were false") == len(study.questions)


def test_the_page_says_which_versions_reports_it_tells_of(habits, study, make_report, token):
    """Reports of another version are none of those that a posterior and the cells are about."""
    for _ in range(40):
        habits.put(make_report(study))
    document = {**study.document, "version": 2, "public": [{"id": "side", "choices": ["n", "s"]}]}
    assert habits.publish(Study(document)).status_code == 201
    text = habits.client.get("/", headers=basic(token)).text
    assert "<strong>40</strong> reports, 0 of them of version 2" in text
    assert "at least 2 have fewer than 20" in text
    assert "there are no reports of this version" in text


def test_the_page_calls_no_study_open_after_its_last_day(habits, study, token):
    last = habits.day
    assert habits.publish(Study({**study.document, "version": 2, "closes": str(last)})).status_code == 201
    assert f"to {last};" in habits.client.get("/", headers=basic(token)).text
    habits.day += timedelta(1)
    text = habits.client.get("/", headers=basic(token)).text
    assert f"ended on {last}" in text
    assert "open from" not in text
