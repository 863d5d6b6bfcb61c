"""A key for one study is used to reach other studies, all studies' counts, or other keys.

Defence: The collector: refuses every request about other studies or all of them, shows only that study's
lines, and makes keys only with the operator's token.
"""

from __future__ import annotations

import pytest

from collector.storage.keys import Role, add_key
from tests.collector.answered import basic


@pytest.fixture
def two(habits, make_study, make_report):
    other = make_study(id="other", title="Another study")
    habits.publish(other)
    habits.report = make_report(other)
    habits.put(habits.report)
    return habits


def bound(harness, role):
    with harness.collector.database.write() as session:
        return {"Authorization": f"Bearer {add_key(session, 'ann', role, ['habits'])}"}


def test_key_of_one_study_is_refused_for_others(two, make_study):
    headers = bound(two, Role.OPERATE)
    report = f"/v1/studies/other/reports/{two.report.id}"
    for method, path, body in [
        ("GET", "/v1/studies/other/export", None),
        ("GET", "/v1/studies/other/summary", None),
        ("GET", "/v1/studies/other/status", None),
        ("POST", "/v1/studies/other/close", {}),
        ("POST", "/v1/studies/other/open", {}),
        ("POST", "/v1/studies/other/invitations", {"count": 1}),
        ("DELETE", report, None),
        ("POST", "/v1/studies", make_study(version=2, id="other").document),
        ("POST", "/v1/studies", make_study(id="third").document),
        ("GET", "/metrics", None),
        ("GET", "/v1/keys", None),
    ]:
        response = two.client.open(path, method=method, json=body, headers=headers)
        assert response.status_code == 403, path
    assert two.client.get("/v1/studies/third").status_code == 404
    assert two.client.get("/v1/studies/habits/export", headers=headers).status_code == 200
    listed = two.client.get("/v1/studies", headers=headers).get_json()["studies"]
    assert [study["id"] for study in listed] == ["habits"]
    lines = two.client.get("/v1/audit-log", headers=headers).get_json()["entries"]
    assert {line["study"] for line in lines} == {"habits"}


def test_page_for_key_of_one_study_shows_only_that_study(two):
    key = bound(two, Role.READ)["Authorization"].removeprefix("Bearer ")
    text = two.client.get("/", headers=basic(key)).text
    assert "Habits" in text
    assert "Another study" not in text


def test_keys_cannot_create_or_remove_keys(two):
    """A thief of one key could otherwise keep a second one after the first is removed."""
    with two.collector.database.write() as session:
        key = add_key(session, "bob", Role.OPERATE)
    headers = {"Authorization": f"Bearer {key}"}
    made = two.client.post("/v1/keys", json={"name": "eve", "role": "operate"}, headers=headers)
    assert made.status_code == 403
    assert two.client.delete("/v1/keys/bob", headers=headers).status_code == 403
