"""What commands have in common: a result never takes the name of another file."""

from __future__ import annotations

import os

import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import NewPath
from tests.kit.commands import leaves
from tests.kit.errors import raises


def test_every_command_writes_a_new_file():
    kinds = {
        words: option.type
        for words, command in leaves()
        for option in command.params
        if "--out" in option.opts
    }
    assert len(kinds) > 15
    # These refuse later, each with its own line, or write beside other files.
    others = {words for words, kind in kinds.items() if not isinstance(kind, NewPath)}
    assert others == {("perturb",), ("compile",)}


@pytest.fixture
def taken(tmp_path):
    (tmp_path / "file").write_text("mine")
    os.link(tmp_path / "file", tmp_path / "linked")
    (tmp_path / "symbolic").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["file", "linked", "symbolic", "dangling", "full"])
def test_taken_name_is_refused(taken, name):
    with raises(InputError, "files.exists", name):
        NewPath().convert(str(taken / name), None, None)


@pytest.mark.parametrize("name", ["new", "empty", "-"])
def test_free_name_is_taken(taken, monkeypatch, name):
    monkeypatch.chdir(taken)
    assert NewPath().convert(name, None, None) == name
