"""The operator's page does what the commands do: once confirmed, for keys that may, from its own forms."""

from __future__ import annotations

import math
import re
from datetime import timedelta

import pytest

from collector.operator import actions, stated_retention
from collector.views.page import COOKIE
from tests.collector.conftest import INVITATION_KEY, TOKEN
from tests.kit.deleting import delete_reports


@pytest.fixture
def place(make_harness, study, make_study):
    harness = make_harness(invitation_key=INVITATION_KEY)
    harness.publish(study)
    harness.publish(make_study(id="other"))
    return harness


def browser(harness, key=TOKEN):
    """Signed in with a key."""
    client = harness.app.test_client()
    client.set_cookie(COOKIE, key)
    return client


def key_of(harness, role, *studies):
    made = {"name": role, "role": role, **({"studies": list(studies)} if studies else {})}
    return harness.client.post("/v1/keys", json=made, headers=harness.operator).get_json()["key"]


def token_on(client, path):
    return re.search(r'name="token" value="(\w+)"', client.get(path).text)[1]


def press(client, path, **fields):
    """Open a form, and send it."""
    return client.post(path, data={"token": token_on(client, path), **fields})


def test_a_study_is_closed_and_opened(place, study, make_report):
    client = browser(place)
    page = client.get("/").text
    assert 'href="/do/studies/habits/close"' in page
    assert "It takes no reports until it is opened again" in client.get("/do/studies/habits/close").text
    assert place.put(make_report(study)).status_code == 201
    assert "Version 1 is closed" in press(client, "/do/studies/habits/close").text
    assert place.put(make_report(study)).status_code == 410
    assert 'href="/do/studies/habits/open"' in client.get("/").text
    assert press(client, "/do/studies/habits/open").status_code == 200
    assert place.put(make_report(study)).status_code == 201
    log = client.get("/do/audit-log").text
    assert "<td>(token)</td><td>close</td><td>habits</td>" in log


def test_invitations_are_shown_once(place, study, make_report):
    client = browser(place)
    said = press(client, "/do/studies/habits/invite", count="3").text
    words = re.findall(r"/s/habits#invitation=([\w-]+)", said)
    assert len(set(words)) == 3
    report = make_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    assert place.client.put(path, json=report.to_document()).status_code == 403
    headers = {"LDPKit-Invitation": words[0]}
    assert place.client.put(path, json=report.to_document(), headers=headers).status_code == 201
    for count in ("0", "1001", "-1", "ten", "", "1" * 300, "١"):
        assert press(client, "/do/studies/habits/invite", count=count).status_code == 422
    assert "3 invitations" not in client.get("/").text


def test_form_values_are_stored_in_invitations(place, make_study, make_report):
    stratum = {"id": "stratum", "choices": ["town", "<country>"], "source": "invitation"}
    study = make_study(2, public=[stratum])
    place.publish(study)
    client, path = browser(place), "/do/studies/habits/invite"
    form = client.get(path).text
    assert '<option value="&lt;country&gt;">&lt;country&gt;</option>' in form
    carried = {"public.stratum": "<country>"}
    (word,) = re.findall(r"#invitation=([\w-]+)", press(client, path, count="1", **carried).text)
    report = make_report(study)
    headers = {"LDPKit-Invitation": word}
    sent = place.client.put(
        f"/v1/studies/habits/reports/{report.id}", json=report.to_document(), headers=headers
    )
    assert sent.status_code == 201
    assert [each.public for each in place.exported()] == [{"stratum": "<country>"}]
    for wrong in ({}, {"public.stratum": ""}, {"public.stratum": "village"}):
        refused = press(client, path, count="1", **wrong)
        assert refused.status_code == 422
        assert "stratum" in refused.text
    assert "stratum" not in client.get("/do/studies/other/invite").text


def test_retention_form_deletes_overdue_reports(place, make_study, make_report):
    client, study = browser(place), make_study(2, retention={"days": 30})
    place.publish(study)
    place.put(make_report(study))
    assert "/do/studies/habits/retention" not in client.get("/").text
    place.day += timedelta(31)
    place.collector.arrivals.forget()
    page = client.get("/").text
    assert 'href="/do/studies/habits/retention"' in page
    assert 'href="/do/studies/other/retention"' not in page
    assert "1 report deleted" in press(client, "/do/studies/habits/retention").text
    assert place.exported() == []


def test_deletion_may_need_several_submissions(place, make_study, make_report, monkeypatch):
    """The page never claims that one request deleted all overdue reports."""
    monkeypatch.setattr(actions, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(stated_retention, "REPORTS_AT_ONCE", 2)
    client, study = browser(place), make_study(2, retention={"days": 30})
    place.publish(study)
    for _ in range(3):
        place.put(make_report(study))
    place.day += timedelta(31)
    place.collector.arrivals.forget()
    path = "/do/studies/habits/retention"
    first = press(client, path).text
    assert "2 reports deleted, and 1 overdue are left: go on" in first
    assert f'href="{path}"' in first
    last = press(client, path).text
    assert "1 report deleted." in last
    assert path not in last


def test_reports_deleted_by_another_process_are_not_shown_as_left(place, make_study, make_report):
    """The page used to say forever that reports were left to delete."""
    client, study = browser(place), make_study(2, retention={"days": 30})
    place.publish(study)
    place.put(make_report(study))
    place.day += timedelta(31)
    arrivals = place.collector.arrivals
    arrivals.forget()
    assert arrivals.get()
    # As of a database in which counting takes long.
    arrivals._due = math.inf
    assert delete_reports(place.collector.database, "habits", place.day) == 1
    said = press(client, "/do/studies/habits/retention").text
    assert "0 reports deleted." in said
    assert "are left" not in said


def test_only_the_token_can_create_and_revoke_keys(place):
    client = browser(place)
    asked = {"name": "ann", "role": "read", "studies": "habits other", "expires": "2099-01-01"}
    made = press(client, "/do/keys", **asked).text
    (key,) = re.findall(r"<li><code>([\w-]+)</code>", made)
    ann = browser(place, key)
    assert ann.get("/").status_code == 200
    assert key not in client.get("/do/keys").text
    wrong = [{"name": "a b"}, {"name": "ann"}, {"name": "bob", "role": "god"},
             {"name": "bob", "expires": "soon"}, {"name": "bob", "expires": "2001-01-01"},
             {"name": "bob", "studies": "a%b"}]  # fmt: skip
    for fields in wrong:
        assert press(client, "/do/keys", **{"role": "read", **fields}).status_code == 422
    assert press(client, "/do/keys/ann").status_code == 200
    assert ann.get("/").status_code == 401
    operator = browser(place, key_of(place, "operate"))
    assert operator.get("/do/keys").status_code == 403
    assert operator.post("/do/keys", data={"token": token_on(operator, "/do/studies/habits/close"),
                                           "name": "bob", "role": "read"}).status_code == 403  # fmt: skip


@pytest.mark.parametrize(
    ("role", "studies", "action", "may"),
    [
        ("read", (), "close", False),
        ("publish", (), "close", True),
        ("publish", (), "invite", False),
        ("publish", ("other",), "close", False),
        ("operate", ("other",), "invite", False),
        ("operate", ("habits",), "invite", True),
    ],
)
def test_key_permits_only_the_actions_of_its_role(place, role, studies, action, may):
    """The form of another key does not help: each request is checked by itself."""
    client, path = browser(place, key_of(place, role, *studies)), f"/do/studies/habits/{action}"
    assert (client.get(path).status_code == 200) == may
    with_any = token_on(client, path) if may else "0" * 64
    answer = client.post(path, data={"token": with_any, "count": "1"})
    assert (answer.status_code == 200) == may
    if not may:
        assert answer.status_code == 403


def test_form_with_a_foreign_token_is_rejected(place):
    client, path = browser(place), "/do/studies/habits/close"
    token = token_on(client, path)
    other = token_on(browser(place, key_of(place, "operate")), path)
    for given in ({}, {"token": ""}, {"token": other}, {"token": "é"}, {"token": token[:-1]}):
        assert client.post(path, data=given).status_code == 403
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert client.post(path, data={"token": token}, headers=foreign).status_code == 403
    # Nothing is done by a link, by a bare request, or for somebody who is signed out.
    assert client.get(path).status_code == 200
    assert place.app.test_client().post(path, data={"token": token}).status_code == 401
    assert client.post(path, data={"token": token, "more": "x" * 10_000}).status_code == 413
    listed = place.client.get("/v1/studies", headers=place.operator).get_json()["studies"]
    assert [one["state"] for one in listed] == ["open", "open"]


def test_unknown_addresses_get_an_escaped_error(place):
    client = browser(place)
    assert "is nothing that can be done" in client.get("/do/studies/habits/explode").text
    assert client.get("/do/studies/<script>/close").status_code in (400, 404)
    assert "<script>" not in client.get("/do/keys/%3Cscript%3E").text
    missing = press(client, "/do/studies/nosuch/close")
    assert missing.status_code == 404
    assert "nosuch" in missing.text
    policy = client.get("/do/keys").headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert client.get("/do/keys").headers["Cache-Control"] == "no-store"
