"""Keys are stored as hashes, and belong to studies."""

import hashlib

import pytest

from collector.keys import Role, add_key
from tests.kit.answers import client_of
from tests.kit.collectors import build_study


def test_only_the_hash_of_a_key_is_stored(habits, capsys):
    habits.operate("keys", "someone", "--role", "read")
    key = capsys.readouterr().out.strip()
    (row,) = habits.sql("SELECT name, role, hash FROM keys")
    assert (row.name, row.role, bytes(row.hash)) == ("someone", "read", hashlib.sha256(key.encode()).digest())
    assert len(key) >= 40


@pytest.mark.attack(14)
def test_key_of_one_study_sees_nothing_of_others(habits):
    """Use a key for one study to read the lists of all."""
    habits.publish(build_study(id="other", title="Another study"))
    key = habits.write(add_key, "ann", Role.OPERATE, ["habits"])
    headers = {"Authorization": f"Bearer {key}"}
    listed = habits.client.get("/v1/studies", headers=headers).get_json()["studies"]
    assert [study["id"] for study in listed] == ["habits"]
    lines = habits.client.get("/v1/audit-log", headers=headers).get_json()["entries"]
    assert {line["study"] for line in lines} == {"habits"}
    assert "Another study" not in client_of(habits, key).get("/").text


@pytest.mark.attack(15)
@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
@pytest.mark.parametrize("path", ["/", "/v1/studies/habits/export"])
def test_non_ascii_key_is_rejected_as_wrong(habits, caplog, scheme, path):
    """Send a key that is no text: it is a wrong key, and no server error with lines in the log."""
    answer = habits.client.get(path, headers={"Authorization": f"{scheme} \xff"})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "a request failed" not in caplog.text
