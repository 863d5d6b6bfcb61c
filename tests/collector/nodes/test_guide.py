"""docs/secure-sum.md: a sum and a regression in two rounds, by its study documents and commands."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from ldp_client import Device
from ldpkit.cli import main
from schemas import Study
from summaries import Summary
from tests.kit.collectors import REPOSITORY
from tests.kit.commands import parsed
from tests.kit.secure_sum import CODE, TOKEN, flush
from tests.ldp_client.issuers import channel_of, keys, other_key

GUIDE = (REPOSITORY / "docs" / "secure-sum.md").read_text("utf-8")
ONE, TWO = "Run one", "A regression in two rounds"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]


def blocks(heading, language=""):
    """The fenced blocks of a section in a language."""
    section = GUIDE.partition(f"## {heading}")[2].partition("\n## ")[0]
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [text for shown_as, text in fenced if shown_as == language]


def study_of(heading, network, nodes, devices, faulty, **changes):
    """The guide's study, at these nodes and for few people."""
    (text,) = blocks(heading, "json")
    document = json.loads(text)
    addresses = [node.address for node in nodes]
    document["protocol"] |= {"devices": devices, "max_faulty": faulty, "nodes": addresses}
    document["questions"][0]["mechanism"] |= changes
    document["channel"] = channel_of(network.issuer.url)
    return Study(document)


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


def test_two_nodes_from_keys_to_a_total(network, ldpkit, monkeypatch):
    made, published, closed = blocks(ONE)
    initialise, serve = made.splitlines()
    assert len(set(re.findall(r"[0-9a-f]{128}", ldpkit(initialise)[1]))) == 1
    assert parsed(shlex.split(serve)[1:])
    nodes, clients, tolerated = network.nodes[:2], 6, 1
    Path("study.json").write_text(study_of(ONE, network, nodes, clients, tolerated).to_json())
    for line, node in zip(published.splitlines(), nodes, strict=True):
        monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
        (_key, command), name = line.split(" ", 1), re.search(r"https://\w\.example", line)[0]
        assert ldpkit(command.replace(name, node.url))[0] == 0
    (asking,) = blocks(ONE, "python")
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
            assert flush(found["device"]).sent == 1

    export, close, fit, verify = closed.splitlines()
    assert shlex.split(export, comments=True)[0] == "export"
    monkeypatch.setenv("LDPKIT_TOKEN", f"{TOKEN} {TOKEN}")
    answer(f"early-{person}" for person in range(clients - tolerated - 1))
    # One device too few: no node is closed, and the others may still come.
    assert ldpkit(f"{close} --yes")[0] != 0
    assert not Path("total.json").exists()
    answer(f"late-{person}" for person in range(tolerated + 1))
    assert ldpkit(f"{close} --yes")[0] == 0
    study = Study.from_json(Path("study.json").read_text())
    assert Summary.from_json(Path("total.json").read_text(), study).questions["minutes"].n == clients
    assert parsed(fit.split()[1:])["study"] == "study.json"
    status, said = ldpkit(verify)
    assert (status, str(clients) in said) == (0, True)
    text = Path("total.transcript.json").read_text()
    at = text.index('"total":"') + len('"total":"')
    Path("total.transcript.json").write_text(f"{text[:at]}{'10'[text[at] == '1']}{text[at + 1 :]}")
    assert ldpkit(verify)[0] != 0


DEVICES = 12


def people(random):
    """So many records; bounds are five to ten times too wide."""
    hours, commute = random.normal(38, 6, DEVICES), random.normal(35, 12, DEVICES)
    pressure = 120 + 2 * (hours - 38) + 0.1 * (commute - 35) + random.normal(0, 4, DEVICES)
    columns = {"hours": hours, "commute": commute, "pressure": pressure}
    return [dict(zip(columns, map(float, row))) for row in zip(*columns.values())]


def answer_round(network, study, records):
    """Every device fetches, consents, answers and sends; one ledger for both rounds."""
    for node in network.nodes:
        assert node.publish(study).status_code == 201
    trusted = [node.address for node in network.nodes]
    for number, record in enumerate(records):
        folder = Path("devices", str(number))
        device = Device(folder, "64", network.nodes[0].url, max_delta="0.01", nodes=trusted)
        fetched = device.fetch(study.id)
        device.consent(fetched)
        device.answer(fetched, {"work": record}, CODE)
        assert flush(device).sent == 1


def widths(study):
    """The widths of the bounds of all fields together."""
    fields = (*study.questions[0].features, study.questions[0].response)
    return sum(float(field.bounds[1]) - float(field.bounds[0]) for field in fields)


def test_two_rounds_against_real_nodes(network, ldpkit, monkeypatch):
    """With much more ε for few people, and faster approximate fits."""
    study = first = study_of(TWO, network, network.nodes, DEVICES, 2, epsilon="10", delta="1e-4")
    monkeypatch.setenv("LDPKIT_TOKEN", " ".join([TOKEN] * len(network.nodes)))
    Path("first.json").write_text(study.to_json())
    records = people(np.random.default_rng(8))
    tokens = {"issuer": network.issuer.url, "keys": [{"key": keys()[1].text}]}
    printed = ""
    for line in blocks(TWO)[0].splitlines():
        command = f"ldpkit {line.partition('ldpkit ')[2]}"
        if command.startswith("ldpkit node close"):
            study = Study.from_json(Path(command.split()[3]).read_text())
            answer_round(network, study, records)
            command += " --yes"
            network.issuer.answers = [other_key] * DEVICES
        if command.startswith("ldpkit fit"):
            command += " --method gaussian_approx"
        status, said = ldpkit(command)
        assert status in (0, 4)
        printed += said
        if command.startswith("ldpkit derive"):
            second = json.loads(Path("second.json").read_text())
            second["channel"]["tickets"] = tokens
            Path("second.json").write_text(json.dumps(second))
    assert "`ldpkit tickets key strain-2` makes them" in printed
    assert "work: epsilon 40, delta 0.0004 are left" in printed
    found = json.loads(Path("posterior", "posterior.json").read_text())["questions"]["work"]
    slope = found["parameters"]["coefficient[hours]"]
    assert (study.id, found["n"]) == ("strain-2", DEVICES)
    # So few people learn little, and their prior pulls the slope to 0.
    assert abs(slope["mean"] - 2) < 8 * slope["sd"] < 24
    assert widths(study) < widths(first)
