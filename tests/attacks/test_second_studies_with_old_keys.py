"""Tries to have a second study state the token keys of the first: no report of it would ever leave."""

from __future__ import annotations

import base64
import json
import os

import pytest

from collector.storage import queries
from collector.studies import publishing
from inference.projection.token_keys import second_tokens, with_tokens
from ldp_client.documents.channel import SPKI_HEAD, SPKI_TAIL
from ldp_client.documents.errors import InputError, UsageError
from ldpkit.cli import main
from schemas import Study
from tests.collector.commands import URL
from tests.collector.conftest import asked
from tests.kit.errors import raises
from tests.ldp_client.issuers import channel_of
from tests.secure_sum.test_two_rounds import first_study, write_posterior

__all__ = ["asked"]
ADVICE = "run `ldpkit issuer key again > tokens.json`, and add --tokens tokens.json"


def other_key():
    modulus = bytes([0xC0]) + os.urandom(254) + b"\1"
    return base64.b64encode(SPKI_HEAD + modulus + SPKI_TAIL).decode()


@pytest.fixture
def tokened():
    return Study({**first_study().document, "channel": channel_of("https://issuer.example")})


def block_in(folder, block):
    path = folder / "tokens.json"
    path.write_text(json.dumps({"tokens": block}))
    return str(path)


def test_project_asks_for_new_token_keys_before_computing(tokened, tmp_path, capsys):
    (tmp_path / "first.json").write_text(tokened.to_json())
    write_posterior(tokened, tmp_path / "fit")
    out = tmp_path / "second.json"
    files = map(str, (tmp_path / "first.json", tmp_path / "fit"))
    assert main(["derive", *files, "--out", str(out), "--id", "again"]) == 2
    assert ADVICE in capsys.readouterr().err
    assert not out.exists()


def test_token_keys_of_first_study_are_rejected(tokened, tmp_path):
    path = block_in(tmp_path, tokened.document["channel"]["tokens"])
    with raises(InputError, "derive.token_keys_of_first_study") as caught:
        second_tokens(tokened, "again", path)
    assert ADVICE in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"tokens": 1}', '{"tokens": {"keys": [1]}}'])
def test_wrong_token_file_is_rejected(tokened, tmp_path, content):
    (tmp_path / "tokens.json").write_text(content)
    with raises(InputError, "derive.wrong_token_file"):
        second_tokens(tokened, "again", str(tmp_path / "tokens.json"))


WRONG = [
    {"issuer": "https://issuer.example", "keys": []},
    {"issuer": "issuer.example", "keys": [{"key": other_key()}]},
    {"issuer": "https://issuer.example", "keys": [{"key": "AAAA"}]},
    {"issuer": "https://issuer.example", "keys": [{"key": other_key(), "public": {"region": "north"}}]},
]


@pytest.mark.parametrize("block", WRONG)
def test_invalid_token_block_is_rejected_before_search(tokened, tmp_path, block):
    with raises(InputError, "derive.token_keys_invalid", "tokens.json: ") as caught:
        second_tokens(tokened, "again", block_in(tmp_path, block))
    assert ADVICE in str(caught.value)


def test_second_study_states_new_keys(tokened, tmp_path):
    block = {"issuer": "https://issuer.example", "keys": [{"key": other_key()}]}
    found = with_tokens(tokened, second_tokens(tokened, "again", block_in(tmp_path, block)))
    assert found.document["channel"]["tokens"] == block
    assert found.document["channel"]["batches"] == tokened.document["channel"]["batches"]


def test_study_without_tokens_rejects_token_file():
    with raises(UsageError, "derive.no_tokens"):
        second_tokens(first_study(), "again", "tokens.json")
    assert second_tokens(first_study(), "again", None) is None


def copied(first, new_id="wave-2", **changes):
    """What an author makes who copies the first study's document."""
    return Study({**first.document, "id": new_id, **changes})


def refused(response, first):
    said = response.get_json()
    assert response.status_code == 422
    assert said["field"] == "channel.tokens.keys"
    assert f"have a token key of study {first.id}" in said["detail"]
    return said["detail"]


@pytest.fixture
def published(empty, make_study):
    study = make_study(id="wave-1", channel=channel_of("https://issuer.example"))
    assert empty.publish(study).status_code == 201
    return empty, study


def test_collector_rejects_copied_study(published):
    harness, first = published
    said = refused(harness.publish(copied(first)), first)
    assert "state what `ldpkit issuer key wave-2` prints" in said
    with harness.collector.database.read() as session:
        assert not queries.published_versions(session, "wave-2")
    tokens = {"issuer": "https://issuer.example", "keys": [{"key": other_key()}]}
    own = copied(first, channel={"batches": {"hours": 24}, "tokens": tokens})
    assert harness.publish(own).status_code == 201


@pytest.mark.parametrize("end", [{}, {"deleted": True}, {"final": True}])
def test_token_keys_of_closed_study_stay_reserved(published, end):
    harness, first = published
    with harness.collector.database.write() as session:
        publishing.close(session, first.id, **end)
    refused(harness.publish(copied(first)), first)


def test_token_keys_of_earlier_version_stay_reserved(published):
    harness, first = published
    tokens = {"issuer": "https://issuer.example", "keys": [{"key": other_key()}]}
    changed = {"version": 2, "channel": {"batches": {"hours": 24}, "tokens": tokens}}
    assert harness.publish(copied(first, first.id, **changed)).status_code == 201
    refused(harness.publish(copied(first)), first)


def test_new_version_may_state_keys_of_same_study(published):
    harness, first = published
    assert harness.publish(copied(first, first.id, version=2)).status_code == 201
    assert harness.publish(copied(first, first.id, version=2)).status_code == 200


def test_new_version_without_tokens_cannot_state_keys_of_other_study(published, make_study):
    harness, first = published
    assert harness.publish(make_study(id="plain")).status_code == 201
    refused(harness.publish(copied(first, "plain", version=2)), first)


def test_key_quoted_in_text_is_not_reserved(empty, make_study):
    """Only a stated key counts, not one that is quoted in a text of the document."""
    channel = channel_of("https://issuer.example")
    quoted = json.dumps(channel["tokens"]["keys"], separators=(",", ":"))
    assert empty.publish(make_study(id="wave-0", purpose=quoted)).status_code == 201
    assert empty.publish(make_study(id="wave-1", channel=channel)).status_code == 201


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_publish_prints_study_that_has_token_key(published, asked, tmp_path, capsys, more):
    harness, first = published
    asked(harness)
    path = tmp_path / "two.json"
    path.write_text(copied(first).to_json())
    assert main(["publish", str(path), "--collector", URL, *more]) != 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "token key" in one]
    assert "have a token key of study wave-1" in line
    assert line.endswith("state what `ldpkit issuer key wave-2` prints")
    path.write_text(copied(first, first.id, version=2).to_json())
    assert main(["publish", str(path), "--collector", URL, *more]) == 0
