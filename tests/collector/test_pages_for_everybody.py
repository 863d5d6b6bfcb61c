"""Every visitor gets the study's page for the day, and documents that are cheap to repeat."""

from datetime import date, timedelta
from types import SimpleNamespace

import pytest

from collector.studies.publishing import publish
from tests import studies
from tests.collector.conftest import TODAY, build_study
from tests.portable.token_issuer import keys

DAYS = {"opens": "2026-06-10", "closes": "2026-06-20"}


def page(harness, **headers):
    return harness.client.get("/s/habits", headers=headers)


@pytest.mark.parametrize("document", [{}, {"questions": [studies.TABLE], **studies.HOLDER, "id": "habits"}])
@pytest.mark.parametrize(
    ("day", "words"),
    [
        (date(2026, 6, 8), "opens on 2026-06-10"),
        (date(2026, 6, 9), ""),  # today somewhere on earth
        (date(2026, 6, 20), ""),
        (date(2026, 6, 21), "is over"),
    ],
)
def test_the_page_asks_on_the_studys_days_only(empty, document, day, words):
    empty.publish(build_study(**DAYS, **document))
    empty.day = day
    text = page(empty).text
    asks = '<form id="answers"' in text or "ldpkit answer" in text
    assert asks == (not words)
    assert words in text


def test_closing_shows_on_the_page_at_once(habits):
    assert '<form id="answers"' in page(habits).text
    habits.close()
    assert '<form id="answers"' not in page(habits).text


def test_a_new_version_is_served_at_once_and_the_old_one_under_its_number(habits, study):
    habits.client.get("/v1/studies/habits")
    newer = build_study(2, title="Newer habits")
    habits.publish(newer)
    assert habits.client.get("/v1/studies/habits").data == newer.canonical()
    assert habits.client.get("/v1/studies/habits?version=1").data == study.canonical()
    assert "Newer habits" in page(habits).text


def test_version_published_by_another_process_is_served(habits, monkeypatch):
    habits.client.get("/v1/studies/habits")
    newer = build_study(2, title="Newer habits")
    with habits.collector.database.write() as session:
        publish(session, newer)
    monkeypatch.setattr("collector.studies.publishing.time.monotonic", lambda: float("inf"))
    assert habits.client.get("/v1/studies/habits").data == newer.canonical()


def test_many_visitors_read_the_database_once(habits, monkeypatch):
    monkeypatch.setattr("collector.studies.publishing.time.monotonic", lambda: 0.0)
    page(habits)
    habits.client.get("/v1/studies/habits")
    monkeypatch.setattr(habits.collector.database, "read", None)
    for _ in range(3):
        assert page(habits).status_code == 200
        assert habits.client.get("/v1/studies/habits").status_code == 200


def test_the_page_and_the_document_are_sent_once(habits):
    for path in ("/s/habits", "/v1/studies/habits"):
        first = habits.client.get(path)
        again = habits.client.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")
    habits.day = TODAY + timedelta(days=1)
    assert page(habits, **{"If-None-Match": page(habits).headers["ETag"]}).status_code == 304


def test_assets_are_immutable_only_under_their_content_hash(habits):
    page(habits)
    text = page(habits).text
    for name in ("page.js", "participant.css"):
        address = next(part for part in text.split('"') if f"/assets/{name}?v=" in part)
        assert "immutable" in habits.client.get(address).headers["Cache-Control"]
        assert habits.client.get(f"/assets/{name}").headers["Cache-Control"] == "no-store"
        assert habits.client.get(f"/assets/{name}?v=0").headers["Cache-Control"] == "no-store"


def test_scripts_for_other_sites_are_sent_once(habits):
    for name in ("ldpkit.js", "element.js"):
        first = habits.client.get(f"/assets/{name}")
        assert first.headers["Access-Control-Allow-Origin"] == "*"
        assert first.headers["Cache-Control"] == "no-cache"
        again = habits.client.get(f"/assets/{name}", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")


def worker_of(harness):
    """The address of the page's worker, and what it may connect to."""
    address = next(part for part in page(harness).text.split('"') if "/assets/worker.js?v=" in part)
    answer = harness.client.get(address)
    assert "immutable" in answer.headers["Cache-Control"]
    return address, answer.headers["Content-Security-Policy"].split("connect-src ")[1]


def test_worker_address_changes_with_its_content_policy(habits, monkeypatch):
    """Browsers take the policy with the script, and fetch neither again from an address that they know."""
    times = iter(range(100))
    # That module's clock alone: by everybody's, whoever waits for the database would wait for too long.
    clock = SimpleNamespace(monotonic=lambda: 10.0 * next(times))
    monkeypatch.setattr("collector.views.participant.time", clock)
    before, allowed = worker_of(habits)
    assert allowed == "'self'"
    assert habits.publish(build_study(id="plain")).status_code == 201
    assert worker_of(habits) == (before, allowed)
    tokens = {"issuer": "https://issuer.example", "keys": [{"key": keys()[0].stated}]}
    study = build_study(id="later", channel={"batches": {"hours": 24}, "tokens": tokens})
    assert habits.publish(study).status_code == 201
    after, allowed = worker_of(habits)
    assert (after != before, allowed) == (True, "'self' https://issuer.example")
    assert habits.client.get(before).headers["Cache-Control"] == "no-store"
