"""docs/secure-sum.md, "Run one": two nodes are made, asked and closed by its commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest

from ldp_client import Device
from ldpkit.cli import main
from schemas import Study
from summaries import Summary
from tests.kit.commands import parsed
from tests.kit.secure_sum import CODE, flush
from tests.ldp_client.issuers import Issuer, channel_of
from tests.ports import held_port

REPOSITORY = Path(__file__).parents[3]
GUIDE = (REPOSITORY / "docs" / "secure-sum.md").read_text("utf-8")
SECTION = GUIDE.partition("## Run one")[2].partition("\n## ")[0]
FENCED = re.findall(r"^```(\w*)\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
MAKE, PUBLISH, CLOSE = (text for language, text in FENCED if not language)
(STUDY,) = (text for language, text in FENCED if language == "json")
(ASKING,) = (text for language, text in FENCED if language == "python")
# One machine under two names: devices demand two hosts.
HOSTS = {"a": "127.0.0.1", "b": "localhost"}
# For the guide's 1,000 clients, of whom 50 may cheat.
CLIENTS, TOLERATED = 6, 1
START_SECONDS = 60


class Node(NamedTuple):
    """A node in its own folder. address: its URL, then what `keygen` made; token: its operator's."""

    place: Path
    url: str
    address: str
    token: str
    process: subprocess.Popen[bytes]


def lines_of(block: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def done(capsys, command: list[str]) -> str:
    """Return the output of a command of the guide, which must succeed."""
    assert command[0] == "ldpkit"
    capsys.readouterr()
    assert main(command[1:]) == 0, command
    return capsys.readouterr().out.strip()


def start(name: str, port: int, folder: Path, monkeypatch, capsys) -> Node:
    """Run the first commands in the node's own folder, up to `serve`."""
    place = folder / name
    place.mkdir()
    monkeypatch.chdir(place)
    initialise, serve = lines_of(MAKE)
    printed = done(capsys, initialise)
    (keys,) = set(re.findall(r"[0-9a-f]{128}", printed))
    token = done(capsys, ["ldpkit", "token"])
    command = [sys.executable, "-m", "ldpkit", *serve[1:], "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    url = f"http://{HOSTS[name]}:{port}"
    return Node(place, url, f"{url}#{keys}", token, process)


def wait(node: Node) -> None:
    for _ in range(START_SECONDS * 10):
        assert node.process.poll() is None, (node.place / "log").read_text()
        try:
            return urlopen(f"{node.url}/v1/studies/nothing").close()
        except URLError as error:
            if getattr(error, "code", None) is not None:
                return None
            time.sleep(0.1)
    raise AssertionError("the node does not listen")


@pytest.fixture
def nodes(tmp_path, monkeypatch, capsys) -> Iterator[list[Node]]:
    started: list[Node] = []
    with ExitStack() as held:
        try:
            for name in HOSTS:
                port = held.enter_context(held_port())
                started.append(start(name, port, tmp_path, monkeypatch, capsys))
            for node in started:
                wait(node)
            (tmp_path / "author").mkdir()
            monkeypatch.chdir(tmp_path / "author")
            yield started
        finally:
            for node in started:
                node.process.terminate()
                node.process.wait()


def placed(text: str, nodes: list[Node]) -> str:
    """Return a text of the guide with these nodes' addresses and keys in place of its examples."""
    for name, node in zip(HOSTS, nodes, strict=True):
        text = re.sub(rf"https://{name}\.example#[^\"]*", node.address, text)
        text = text.replace(f"https://{name}.example", node.url)
    for place, node in enumerate(nodes, 1):
        text = text.replace(f"KEY{place}", node.token)
    return text


def publish(nodes: list[Node], issuer: str, monkeypatch, capsys) -> None:
    """The guide's study for fewer people, at both nodes."""
    document = json.loads(placed(STUDY, nodes))
    document["protocol"] |= {"devices": CLIENTS, "max_faulty": TOLERATED}
    document["channel"] = channel_of(issuer)
    Path("study.json").write_text(json.dumps(document))
    for key, *command in lines_of(placed(PUBLISH, nodes)):
        monkeypatch.setenv("LDPKIT_TOKEN", key.partition("=")[2])
        done(capsys, command)


def answer(nodes: list[Node], minutes: np.ndarray) -> None:
    """Let every device answer as in the guide, each in its own folder."""
    for person, number in enumerate(minutes):
        code = placed(ASKING, nodes).replace("FOLDER", repr(f"devices/{person}"))
        names = {"Device": Device}
        exec(code, names)
        device = names["device"]
        study = device.fetch("commute")
        device.consent(study)
        device.answer(study, {"minutes": float(number)}, CODE)
        assert flush(device).sent == 1


@pytest.fixture
def issuer() -> Iterator[str]:
    with Issuer() as running:
        yield running.url


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_two_nodes_from_keys_to_a_total(nodes, issuer, monkeypatch, capsys):
    publish(nodes, issuer, monkeypatch, capsys)
    minutes = np.random.default_rng(5).gamma(4, 10, CLIENTS)
    export, close, fit, verify = placed(CLOSE, nodes).splitlines()
    monkeypatch.setenv("LDPKIT_TOKEN", shlex.split(export, comments=True)[1].partition("=")[2])
    answer(nodes, minutes[: CLIENTS - TOLERATED - 1])
    # One device too few: no node is closed, and the others may still come.
    assert main([*close.split()[1:], "--yes"]) != 0
    assert not Path("total.json").exists()
    answer_rest = minutes[CLIENTS - TOLERATED - 1 :]
    Path("devices").rename("earlier")
    answer(nodes, answer_rest)
    done(capsys, [*close.split(), "--yes"])
    total = Summary.from_json(Path("total.json").read_text(), Study.from_json(Path("study.json").read_text()))
    assert total.questions["minutes"].n == CLIENTS
    assert parsed(fit.split()[1:])["study"] == "study.json"
    assert str(CLIENTS) in done(capsys, verify.split())
    text = Path("total.transcript.json").read_text()
    sum_of_one = text.index('"total":"') + len('"total":"')
    other = "1" if text[sum_of_one] == "0" else "0"
    damaged = text[:sum_of_one] + other + text[sum_of_one + 1 :]
    Path("total.transcript.json").write_text(damaged)
    assert main(verify.split()[1:]) != 0
