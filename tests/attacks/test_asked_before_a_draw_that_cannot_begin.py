"""Asks a data holder for consent, and keeps it, for a draw held up by another, or that can leave no mark."""

import os
from functools import partial

import pytest

from ldp_client.cli import main
from ldp_client.commands import device as commands
from ldp_client.device.ledger import Ledger
from tests.attacks.test_tables_perturbed_and_answered import MARK, STUDY, folder
from tests.ldp_client.devices import Server

__all__ = ["folder"]
access, opened = os.access, os.open


def refusing(name, real, path, *more):
    """As of a file or folder of somebody else."""
    if os.fspath(path).endswith(name):
        raise PermissionError(13, os.strerror(13))
    return real(path, *more)


def no_folder(monkeypatch):
    monkeypatch.setattr(os, "open", partial(refusing, "north.csv.perturbing", opened))


def no_file(monkeypatch):
    with open(MARK, "w", encoding="utf-8"):
        pass
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith(MARK) and access(path, mode))


def no_turn(_):
    with open("north.csv.perturbing", "w", encoding="utf-8"):
        pass


@pytest.mark.parametrize(
    ("hinder", "said"),
    [(no_folder, "put the answers into"), (no_file, "put the answers into"), (no_turn, "is under way")],
)
@pytest.mark.usefixtures("folder")
def test_nobody_is_asked_and_nothing_is_kept(monkeypatch, capsys, hinder, said):
    asked = []
    monkeypatch.setattr(commands, "_ask_for_consent", lambda *_: asked.append(1))
    hinder(monkeypatch)
    with Server(STUDY.canonical()) as server:
        where = f"{server.url}/v1/studies/{STUDY.id}"
        assert main(["answer", where, "--folder", "device", "--table", "north.csv"]) == 3
    assert said in capsys.readouterr().err
    assert not asked
    with Ledger("device").reading() as connection:
        assert not connection.execute("SELECT * FROM consents").fetchall()


@pytest.mark.usefixtures("folder")
def test_the_question_keeps_nobody_else_out(monkeypatch):
    """It may wait for hours: what was tried before it is let go."""
    seen = []
    monkeypatch.setattr(commands, "_ask_for_consent", lambda *_: seen.extend(os.listdir()))
    with Server(STUDY.canonical()) as server:
        where = f"{server.url}/v1/studies/{STUDY.id}"
        assert main(["answer", where, "--folder", "device", "--table", "north.csv"]) == 0
    assert sorted(seen) == ["device", "north.csv", "study.json"]
