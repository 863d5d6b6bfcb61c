"""Tries to have a second study state the token keys of the first: no report of it would ever leave."""

from __future__ import annotations

import base64
import json
import os

import pytest

from inference.projection.token_keys import second_tokens, with_tokens
from ldp_client.cli import main
from ldp_client.documents.channel import SPKI_HEAD, SPKI_TAIL
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from tests.ldp_client.issuers import channel_of
from tests.secure_sum.test_two_rounds import first_study, write_posterior

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


def test_keys_of_its_own_are_asked_for_before_anything_is_computed(tokened, tmp_path, capsys):
    (tmp_path / "first.json").write_text(tokened.to_json())
    write_posterior(tokened, tmp_path / "fit")
    out = tmp_path / "second.json"
    files = map(str, (tmp_path / "first.json", tmp_path / "fit"))
    assert main(["project", *files, "--out", str(out), "--id", "again"]) == 2
    assert ADVICE in capsys.readouterr().err
    assert not out.exists()


def test_the_first_studys_keys_are_refused(tokened, tmp_path):
    path = block_in(tmp_path, tokened.document["channel"]["tokens"])
    with pytest.raises(InputError, match="has keys of the first study") as caught:
        second_tokens(tokened, "again", path)
    assert ADVICE in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"tokens": 1}', '{"tokens": {"keys": [1]}}'])
def test_another_file_is_refused(tokened, tmp_path, content):
    (tmp_path / "tokens.json").write_text(content)
    with pytest.raises(InputError, match="is not what `ldpkit issuer key` prints"):
        second_tokens(tokened, "again", str(tmp_path / "tokens.json"))


WRONG = [
    {"issuer": "https://issuer.example", "keys": []},
    {"issuer": "issuer.example", "keys": [{"key": other_key()}]},
    {"issuer": "https://issuer.example", "keys": [{"key": "AAAA"}]},
    {"issuer": "https://issuer.example", "keys": [{"key": other_key(), "public": {"region": "north"}}]},
]


@pytest.mark.parametrize("block", WRONG)
def test_a_block_that_the_second_study_cannot_have_is_refused_before_the_search(tokened, tmp_path, block):
    with pytest.raises(InputError, match=r"tokens\.json: ") as caught:
        second_tokens(tokened, "again", block_in(tmp_path, block))
    assert ADVICE in str(caught.value)


def test_new_keys_stand_in_the_second_study(tokened, tmp_path):
    block = {"issuer": "https://issuer.example", "keys": [{"key": other_key()}]}
    found = with_tokens(tokened, second_tokens(tokened, "again", block_in(tmp_path, block)))
    assert found.document["channel"]["tokens"] == block
    assert found.document["channel"]["batches"] == tokened.document["channel"]["batches"]


def test_a_study_without_tokens_takes_none():
    with pytest.raises(UsageError, match="takes no tokens"):
        second_tokens(first_study(), "again", "tokens.json")
    assert second_tokens(first_study(), "again", None) is None
