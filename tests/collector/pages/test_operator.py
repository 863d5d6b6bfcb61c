"""The operator's page: over the test client, and in a real browser."""

from base64 import b64encode
from datetime import timedelta

import pytest

from collector.keys import MOST_SESSIONS, Role, add_key, remove_key
from schemas import Study
from tests.kit.answers import client_of
from tests.kit.deleting import delete_study


def sign_in(client, key, **options):
    return client.post("/sign-in", data={"key": key}, **options)


def test_the_page_needs_a_session_that_begins_and_ends_on_it(habits, token):
    basic = {"Authorization": "Basic " + b64encode(f"me:{token}".encode()).decode()}
    for headers in ({}, basic, {"Authorization": f"Bearer {token}"}):
        refused = habits.client.get("/", headers=headers)
        assert refused.status_code == 401
        assert 'action="/sign-in"' in refused.text
        # What browsers ask for by themselves they keep, and nobody could sign out.
        assert "Basic" not in refused.headers["WWW-Authenticate"]
    client, foreign = habits.app.test_client(), {"Sec-Fetch-Site": "cross-site"}
    assert sign_in(client, "wrong").status_code == 401
    assert sign_in(client, token, headers=foreign).status_code == 403
    assert "Habits" not in client.get("/").text
    done = sign_in(client, token)
    assert (done.status_code, done.headers["Location"]) == (303, "/")
    cookie = done.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert token not in cookie
    assert client.post("/sign-out", headers=foreign).status_code == 403
    assert "Habits" in client.get("/").text
    assert client.post("/sign-out").status_code == 303
    assert client.get("/").status_code == 401
    for host, is_secure in (("localhost:8000", False), ("[::1]:8000", False), ("ask.example.org", True)):
        cookie = sign_in(habits.app.test_client(), token, headers={"Host": host}).headers["Set-Cookie"]
        assert ("Secure" in cookie) == is_secure, host


def test_page_shows_budget_and_report_counts(habits, study, make_report, token):
    habits.post([make_report(study).to_document() for _ in range(7)])
    habits.put(make_report(study, digest="0" * 64))
    text = client_of(habits, token).get("/").text
    for words in (
        "Habits",
        "<strong>7</strong> reports",
        "report-invalid",
        "All questions together: ε = ",
    ):
        assert words in text


def test_page_finds_studies_by_words_of_id_title_and_state(habits, make_study, token):
    habits.publish(make_study(id="other", title="Another study"))
    client = client_of(habits, token)
    for words, shown in (
        ("OTHER", {"other"}),
        ("study open", {"other"}),
        ("open", {"habits", "other"}),
        ("x", set()),
    ):
        text = client.get("/", query_string={"words": words}).text
        assert {one for one in ("habits", "other") if f">{one}</code>" in text} == shown, words
    assert "None of 2 has these words" in text


@pytest.mark.parametrize("page", ["/", "/new/preview"])
def test_study_texts_are_escaped(empty, make_study, token, page):
    study = make_study(title="<script>alert(1)</script>", purpose="<img src=x onerror=alert(1)>")
    if page == "/":
        empty.publish(study)
        text = client_of(empty, token).get(page).text
    else:
        text = empty.client.post(page, json=study.document, headers=empty.operator).text
        # A preview has no script at all, so it draws no noise and sends nothing.
        assert "<script" not in text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_preview_is_in_a_language_of_the_draft(empty, make_study):
    languages = {"languages": ["en", "de"], "title": {"en": "Habits", "de": "Gewohnheiten"}}
    for asked, title in (("de", "Gewohnheiten"), ("", "Habits"), ("<b>", "Habits")):
        text = empty.client.post(
            "/new/preview",
            json=make_study(**languages).document,
            headers=empty.operator,
            query_string={"language": asked},
        ).text
        assert f"<title>{title}</title>" in text


def test_share_shows_link_code_and_element(habits, token):
    client = client_of(habits, token)
    text = client.get("/share/habits").text
    assert 'href="http://localhost/s/habits"' in text
    assert "&lt;ldp-study src=&#34;http://localhost/s/habits&#34;&gt;" in text
    assert "src=&#34;http://localhost/assets/element.js&#34;" in text
    assert "<svg" in text
    assert client.get("/share/nothing").status_code == 404


ASSETS = ("operator.css", "operator.js", "builder.js")


def test_page_and_assets_send_a_strict_content_policy(habits, token):
    for path in ("/", "/new", "/share/habits", *(f"/assets/operator/{name}" for name in ASSETS)):
        response = client_of(habits, token).get(path)
        assert response.status_code == 200
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_page_shows_no_study_as_open_after_its_last_day(habits, study, token):
    last = habits.day
    assert habits.publish(Study({**study.document, "version": 2, "closes": str(last)})).status_code == 201
    assert f"version 2, open, last day {last};" in client_of(habits, token).get("/").text
    habits.day += timedelta(1)
    assert f"version 2, ended, last day {last};" in client_of(habits, token).get("/").text
    delete_study(habits.collector.database, "habits")
    habits.collector.studies.forget()
    assert f"version 2, deleted, last day {last};" in client_of(habits, token).get("/").text


OF_PAGE = {"LDPKit-Page": "1", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OF_PAGE, 200),
        ({"LDPKit-Page": "1", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"LDPKit-Page": "1", "Sec-Fetch-Site": "same-site"}, 403),
        ({"LDPKit-Page": "1", "Sec-Fetch-Site": "none"}, 403),
        ({"LDPKit-Page": "1"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 401),
        ({}, 401),
    ],
    ids=str,
)
@pytest.mark.attack(14)
def test_only_the_pages_own_script_acts_with_the_cookie(habits, token, headers, status):
    """Another site has an operator's browser close a study: the cookie alone does nothing."""
    client = habits.app.test_client()
    sign_in(client, token)
    assert client.post("/v1/studies/habits/close", headers=headers).status_code == status
    assert habits.collector.studies.get()[0].closed == (status == 200)


@pytest.mark.attack(15)
def test_signing_out_without_a_session_writes_nothing(habits, monkeypatch):
    """A stranger signs out again and again, so that uploads wait for the writer."""
    monkeypatch.setattr(habits.collector.keys, "_act", lambda _change: pytest.fail("it was written"))
    client = habits.app.test_client()
    client.set_cookie("ldpkit-session", "invented")
    for one in (client, habits.app.test_client()):
        assert one.post("/sign-out").status_code == 303


def test_a_key_has_a_bounded_number_of_sessions(habits, token):
    first = habits.app.test_client()
    sign_in(first, token)
    for _ in range(MOST_SESSIONS):
        sign_in(habits.app.test_client(), token)
    gone = first.get("/")
    assert (gone.status_code, "the session has ended" in gone.text.lower()) == (401, True)
    assert "ldpkit-session=;" in gone.headers["Set-Cookie"]
    assert len(habits.sql("SELECT * FROM sessions")) == 1


def test_a_session_ends_after_the_next_day(habits, token):
    client = habits.app.test_client()
    sign_in(client, token)
    habits.day += timedelta(1)
    assert client.get("/v1/keys", headers=OF_PAGE).status_code == 200
    habits.day += timedelta(1)
    assert client.get("/v1/keys", headers=OF_PAGE).status_code == 401
    sign_in(client, token)
    assert len(habits.sql("SELECT * FROM sessions")) == 1


@pytest.mark.attack(14)
@pytest.mark.parametrize("is_removed", [True, False])
def test_session_ends_with_its_key(habits, is_removed):
    """Someone goes on in the browser whose key was removed, or the day after its last."""

    def seen():
        """The statuses of the operator's page and of what its script asks for."""
        return client.get("/").status_code, client.get("/v1/studies", headers=OF_PAGE).status_code

    client, key = habits.app.test_client(), habits.write(add_key, "ann", Role.READ, None, habits.day)
    assert sign_in(client, key).status_code == 303
    assert seen() == (200, 200)
    if is_removed:
        habits.write(remove_key, "ann")
    else:
        habits.day += timedelta(1)
    assert seen() == (401, 401)
