"""The operator's page: over the test client, and in a real browser."""

from base64 import b64encode
from datetime import timedelta

import pytest

from collector.keys import MOST_SESSIONS, Role, add_key, remove_key
from tests.kit.answers import client_of, delete_study
from tests.kit.collectors import TOKEN, build_report, build_study


def sign_in(client, key, **options):
    return client.post("/sign-in", data={"key": key}, **options)


def test_the_page_needs_a_session_that_begins_and_ends_on_it(habits):
    basic = {"Authorization": "Basic " + b64encode(f"me:{TOKEN}".encode()).decode()}
    for headers in ({}, basic, {"Authorization": f"Bearer {TOKEN}"}):
        refused = habits.client.get("/", headers=headers)
        assert (refused.status_code, 'action="/sign-in"' in refused.text) == (401, True)
        # What browsers ask for by themselves they keep, and nobody could sign out.
        assert "Basic" not in refused.headers["WWW-Authenticate"]
    client, foreign = habits.app.test_client(), {"Sec-Fetch-Site": "cross-site"}
    assert sign_in(client, "wrong").status_code == 401
    assert sign_in(client, TOKEN, headers=foreign).status_code == 403
    assert client.get("/").status_code == 401
    done = sign_in(client, TOKEN)
    assert (done.status_code, done.headers["Location"]) == (303, "/")
    assert client.post("/sign-out", headers=foreign).status_code == 403
    assert "Habits" in client.get("/").text
    assert client.post("/sign-out").status_code == 303
    assert client.get("/").status_code == 401
    for host, is_secure in (("localhost:8000", False), ("[::1]:8000", False), ("ask.example.org", True)):
        cookie = sign_in(client, TOKEN, headers={"Host": host}).headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
        assert ("Secure" in cookie, TOKEN in cookie) == (is_secure, False), host


def test_page_shows_counts_and_finds_studies_by_words(habits, study):
    habits.post([build_report(study).to_document() for _ in range(7)])
    habits.put(build_report(study, digest="0" * 64))
    habits.publish(build_study(id="other", title="Another study"))
    client, both = client_of(habits), {"habits", "other"}
    for words, shown in (("OTHER", {"other"}), ("study open", {"other"}), ("x", set()), ("open", both)):
        text = client.get("/", query_string={"words": words}).text
        assert {one for one in both if f">{one}</code>" in text} == shown, words
        assert ("None of 2 has these words" in text) == (not shown)
    for words in ("Habits", "<strong>7</strong> reports", "report-invalid", "All questions together: ε = "):
        assert words in text


def test_study_texts_are_escaped_also_in_a_preview(empty):
    title = {"en": "<script>alert(1)</script>", "de": "Gewohnheiten"}
    study = build_study(languages=["en", "de"], title=title, purpose="<img src=x onerror=alert(1)>")

    def preview(language):
        asked = {"query_string": {"language": language}, "headers": empty.operator}
        return empty.client.post("/new/preview", json=study.document, **asked).text

    # A preview has no script at all, so it draws no noise and sends nothing.
    assert "<script" not in preview("en")
    empty.publish(study)
    for text in (preview("en"), preview("<b>"), client_of(empty).get("/").text):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<title>Gewohnheiten</title>" in preview("de")


def test_share_shows_link_code_and_element(habits):
    client = client_of(habits)
    text = client.get("/share/habits").text
    for words in (
        'href="http://localhost/s/habits"',
        "&lt;ldp-study src=&#34;http://localhost/s/habits&#34;&gt;",
        "src=&#34;http://localhost/assets/element.js&#34;",
        "<svg",
    ):
        assert words in text
    assert client.get("/share/nothing").status_code == 404


@pytest.mark.parametrize("path", ["/", "/new", "/share/habits", "/assets/operator/operator.js"])
def test_page_and_assets_send_a_strict_content_policy(habits, path):
    response = client_of(habits).get(path)
    policy = response.headers["Content-Security-Policy"]
    assert (response.status_code, "default-src 'none'" in policy, "unsafe" in policy) == (200, True, False)
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_page_shows_no_study_as_open_after_its_last_day(habits):
    last = habits.day
    assert habits.publish(build_study(2, closes=str(last))).status_code == 201
    assert f"version 2, open, last day {last};" in client_of(habits).get("/").text
    habits.day += timedelta(1)
    assert f"version 2, ended, last day {last};" in client_of(habits).get("/").text
    delete_study(habits.collector.database, "habits")
    habits.collector.studies.forget()
    assert f"version 2, deleted, last day {last};" in client_of(habits).get("/").text


OF_PAGE = {"LDPKit-Page": "1", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OF_PAGE, 200),
        ({"LDPKit-Page": "1", "Sec-Fetch-Site": "same-site"}, 403),
        ({"LDPKit-Page": "1", "Sec-Fetch-Site": "none"}, 403),
        ({"LDPKit-Page": "1"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 401),
    ],
    ids=str,
)
@pytest.mark.attack(14)
def test_only_the_pages_own_script_acts_with_the_cookie(habits, headers, status):
    """Another site has an operator's browser close a study: the cookie alone does nothing."""
    client = client_of(habits)
    assert client.post("/v1/studies/habits/close", headers=headers).status_code == status
    assert habits.collector.studies.get()[0].closed == (status == 200)


@pytest.mark.attack(15)
def test_signing_out_without_a_session_writes_nothing(habits, monkeypatch):
    """A stranger signs out again and again, so that uploads wait for the writer."""
    monkeypatch.setattr(habits.collector.writer, "act", lambda _change: pytest.fail("it was written"))
    client = habits.app.test_client()
    client.set_cookie("ldpkit-session", "invented")
    for one in (client, habits.app.test_client()):
        assert one.post("/sign-out").status_code == 303


def test_a_key_has_a_bounded_number_of_sessions(habits):
    first = client_of(habits)
    for _ in range(MOST_SESSIONS):
        client_of(habits)
    gone = first.get("/")
    assert (gone.status_code, "the session has ended" in gone.text.lower()) == (401, True)
    assert "ldpkit-session=;" in gone.headers["Set-Cookie"]
    assert len(habits.sql("SELECT * FROM sessions")) == 1


@pytest.mark.attack(14)
@pytest.mark.parametrize(
    ("days", "is_removed", "status"), [(0, False, 200), (0, True, 401), (1, False, 401), (2, False, 401)]
)
def test_session_ends_with_its_key_or_after_the_next_day(habits, days, is_removed, status):
    """Someone goes on in the browser whose key was removed, or the day after its last."""
    key = habits.write(add_key, "ann", Role.READ, None, habits.day)
    client, operator = client_of(habits, key), client_of(habits)
    if is_removed:
        habits.write(remove_key, "ann")
    habits.day += timedelta(days)
    assert client.get("/").status_code == status
    assert client.get("/v1/studies", headers=OF_PAGE).status_code == status
    assert operator.get("/v1/keys", headers=OF_PAGE).status_code == (200 if days < 2 else 401)
    # A new session deletes those of earlier days.
    client_of(habits)
    assert len(habits.sql("SELECT * FROM sessions")) == (3 if days < 2 else 1)
