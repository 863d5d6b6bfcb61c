"""docs/secure-sum.md: a sum by its study document and commands."""

import json
import re
import shlex
from pathlib import Path

import pytest

from ldp_client import Device
from ldpkit.cli import main
from schemas import Study
from summaries import Summary
from tests.kit.collectors import REPOSITORY
from tests.kit.commands import parsed
from tests.kit.secure_sum import CODE, TOKEN
from tests.ldp_client.issuers import channel_of

GUIDE = (REPOSITORY / "docs" / "secure-sum.md").read_text("utf-8")


def blocks(language=""):
    """The fenced blocks of the section in a language."""
    section = GUIDE.partition("## Run one")[2].partition("\n## ")[0]
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [text for shown_as, text in fenced if shown_as == language]


@pytest.fixture
def ldpkit(tmp_path, monkeypatch, capsys):
    """Runs a command of the guide in an empty folder: its exit code and what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(line):
        words = shlex.split(line, comments=True)
        assert words[0] == "ldpkit"
        status = main(words[1:])
        return status, capsys.readouterr().out.strip()

    return run


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_two_nodes_from_keys_to_a_total(network, ldpkit, monkeypatch):
    made, published, closed = blocks()
    initialise, serve = made.splitlines()
    assert len(set(re.findall(r"[0-9a-f]{128}", ldpkit(initialise)[1]))) == 1
    assert parsed(shlex.split(serve)[1:])
    nodes, clients, tolerated = network.nodes[:2], 6, 1
    # The guide's study, at these nodes and for few people.
    document = json.loads(blocks("json")[0])
    addresses = [node.address for node in nodes]
    document["protocol"] |= {"devices": clients, "max_faulty": tolerated, "nodes": addresses}
    study = Study({**document, "channel": channel_of(network.issuer.url)})
    Path("study.json").write_text(study.to_json())
    for line, node in zip(published.splitlines(), nodes, strict=True):
        monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
        (_key, command), name = line.split(" ", 1), re.search(r"https://\w\.example", line)[0]
        assert ldpkit(command.replace(name, node.url))[0] == 0
    (asking,) = blocks("python")
    for name, node in zip("ab", nodes):
        asking = re.sub(rf"https://{name}\.example#[^\"]*", node.address, asking)
        asking = asking.replace(f"https://{name}.example", node.url)

    def answer(folders):
        for folder in folders:
            found = {"Device": Device}
            exec(asking.replace("FOLDER", repr(folder)), found)
            study = found["device"].fetch("commute")
            found["device"].consent(study)
            found["device"].answer(study, {"minutes": 40.0}, CODE)
            found["device"].flush(5)
            assert found["device"].flush(5).sent == 1

    export, close, fit, verify = closed.splitlines()
    assert shlex.split(export, comments=True)[0] == "export"
    monkeypatch.setenv("LDPKIT_TOKEN", f"{TOKEN} {TOKEN}")
    answer(f"early-{person}" for person in range(clients - tolerated - 1))
    # One device too few: no node is closed, and the others may still come.
    assert ldpkit(f"{close} --yes")[0] != 0
    assert not Path("total.json").exists()
    answer(f"late-{person}" for person in range(tolerated + 1))
    assert ldpkit(f"{close} --yes")[0] == 0
    assert Summary.from_json(Path("total.json").read_text(), study).questions["minutes"].n == clients
    assert parsed(fit.split()[1:])["study"] == "study.json"
    status, said = ldpkit(verify)
    assert (status, str(clients) in said) == (0, True)
    text = Path("total.transcript.json").read_text()
    at = text.index('"total":"') + len('"total":"')
    Path("total.transcript.json").write_text(f"{text[:at]}{'10'[text[at] == '1']}{text[at + 1 :]}")
    assert ldpkit(verify)[0] != 0
