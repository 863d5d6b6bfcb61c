"""The guide to tokens, from nothing: an issuer, a collector, three people, and a code that is tried twice."""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.device import outbox
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit import collector_fixtures as fixtures
from tests.kit.collectors import REPOSITORY, TOKEN, Server

start_server = fixtures.start_server
GUIDE = (REPOSITORY / "docs" / "tickets.md").read_text()
DAY = 86_400
NOON = 21_000.5 * DAY


def guide_block(begins):
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    (block,) = [block for block in blocks if block.startswith(begins)]
    return block.strip().split("\n")


def run(line, folder, token=TOKEN):
    """One line of the guide, as a shell takes it."""
    command = line.replace("ldpkit ", f"{shlex.quote(sys.executable)} -m ldpkit ", 1)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LDPKIT_TOKEN": token}
    if not token:
        del environment["LDPKIT_TOKEN"]
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def issuer(tmp_path):
    """The guide's issuer, which serves, and a function for one line of the guide at its port."""
    run(guide_block("ldpkit init issuer")[0], tmp_path)
    folder = tmp_path / "issuer"
    token = run("ldpkit token", folder, "").strip()
    database = {"LDPKIT_DATABASE": f"sqlite:///{folder / 'ldpkit.sqlite3'}", "LDPKIT_TOKEN": token}
    server = Server(folder, command=("serve", "--as", "issuer"), environment=database)

    def operate(line):
        return run(line.replace("http://127.0.0.1:8100", server.url), folder, token)

    for line in guide_block("export LDPKIT_TOKEN")[1:]:
        operate(line)
    yield server, operate, folder
    server.kill()


def answer(collector, person, code, capsys):
    """`ldpkit answer`, as somebody types it: its status and what it says."""
    address = f"{collector.url}/s/habits" + (f"#ticket={code}" if code else "")
    words = ["answer", "--max-epsilon", "8", address, "--set", "ever=yes", "--yes", "--folder", str(person)]
    status = main(words)
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.mark.slow
def test_token_guide_works_from_scratch(issuer, start_server, tmp_path, monkeypatch, capsys):
    server, operate, folder = issuer
    collector = start_server()
    # The guide's port may be another program's here.
    tokens = {**json.loads((folder / "tickets.json").read_text())["tickets"], "issuer": server.url}
    channel = {"batches": {"hours": 24}, "tickets": tokens}
    study = Study(studies.document(studies.YES_NO, id="habits", channel=channel))
    (tmp_path / "study.json").write_text(study.to_json())
    (line,) = guide_block("ldpkit publish")
    assert "digest" in run(f"{line} --collector {collector.url}", tmp_path)
    monkeypatch.setattr(outbox, "now", lambda: NOON)
    rows = list(csv.DictReader((folder / "codes.csv").open()))
    assert [row["name"] for row in rows] == ["Ada", "Bo", "Cy"]
    people = [tmp_path / row["name"] for row in rows]
    for person, row in zip(people, rows):
        status, said = answer(collector, person, row["ticket"], capsys)
        assert (status, "1 report leaves" in said) == (0, True)
    thief = tmp_path / "thief"
    status, said = answer(collector, thief, rows[0]["ticket"], capsys)
    assert (status, "gives no second token" in said) == (5, True)
    monkeypatch.setattr(outbox, "now", lambda: NOON + 1.5 * DAY)
    for person in people:
        assert "1 report sent" in answer(collector, person, "", capsys)[1]
    assert "0 reports sent" in answer(collector, thief, rows[0]["ticket"], capsys)[1]
    assert collector.read("/v1/studies/habits/export").count("payloads") == 3
    theirs, here = guide_block("ldpkit tickets status")
    assert "3 of 3 tickets got a token" in operate(theirs)
    assert f"of {server.url}, one a report" in run(f"{here} --collector {collector.url}", tmp_path)
    server.process.terminate()
    server.process.wait()
    # Whoever takes the one file has every token.
    assert not Path(folder / "ldpkit.sqlite3-wal").exists()
