"""The guide to tokens, from nothing: an issuer, a collector, three people, and a code that is tried twice."""

import csv
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from ldp_client import Direct
from ldp_client.device import outbox
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies
from tests.end_to_end.conftest import LDPKIT, TOKEN, ldpkit, started

GUIDE = Path(__file__).parents[2] / "docs" / "tickets.md"
DAY = 86_400


def guide_block(begins):
    """The commands of the guide's block that begins so."""
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if block.startswith(begins)]
    return block.strip().split("\n")


def run(line, folder, token=TOKEN):
    """One line of the guide, as a shell takes it."""
    command = line.replace("ldpkit ", f"{LDPKIT[0]} -m ldpkit ", 1)
    environment = {**os.environ, "LDPKIT_TOKEN": token}
    if token is None:
        del environment["LDPKIT_TOKEN"]
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Issuer:
    def __init__(self, folder):
        self.folder = folder
        self.process, self.url = started(folder / "url", "serve", "--as", "issuer", "--port", "0", cwd=folder)
        self.token = run("ldpkit token", folder, None).strip()

    def operate(self, line):
        """One line of the guide, at this issuer, whose port is another one."""
        return run(line.replace("http://127.0.0.1:8100", self.url), self.folder, self.token)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def office(tmp_path):
    """The guide's issuer, up to the moment when it serves."""
    run(guide_block("ldpkit init issuer")[0], tmp_path)
    issuer = Issuer(tmp_path / "issuer")
    for line in guide_block("export LDPKIT_TOKEN")[1:]:
        issuer.operate(line)
    yield issuer, tmp_path / "issuer"
    issuer.kill()


def study_with(folder, issuer):
    tokens = json.loads((folder / "tickets.json").read_text())["tickets"]
    # The guide's port may be another program's here.
    stated = {"batches": {"hours": 24}, "tickets": {**tokens, "issuer": issuer.url}}
    return Study(studies.document(studies.YES_NO, id="habits", channel=stated))


def answer(collector, person, code, capsys, says):
    """`ldpkit answer`, as somebody types it."""
    words = [
        "answer",
        "--max-epsilon",
        "8",
        f"{collector.url}/s/habits" + (f"#ticket={code}" if code else ""),
        "--set",
        "ever=yes",
        "--yes",
    ]
    status = main([*words, "--folder", str(person)])
    said = capsys.readouterr()
    assert says in said.out + said.err
    return status


@pytest.mark.slow
def test_token_guide_works_from_scratch(office, collector, tmp_path, monkeypatch, capsys):
    issuer, folder = office
    study = study_with(folder, issuer)
    (tmp_path / "study.json").write_text(study.to_json())
    (line,) = guide_block("ldpkit publish")
    assert "digest" in run(f"{line} --collector {collector.url}", tmp_path)
    noon = 21_000 * DAY + DAY / 2
    monkeypatch.setattr(outbox, "now", lambda: noon)
    rows = list(csv.DictReader((folder / "codes.csv").open()))
    assert [row["name"] for row in rows] == ["Ada", "Bo", "Cy"]
    people = [tmp_path / row["name"] for row in rows]
    for person, row in zip(people, rows):
        assert answer(collector, person, row["ticket"], capsys, "1 report leaves") == 0
    thief = tmp_path / "thief"
    assert answer(collector, thief, rows[0]["ticket"], capsys, "gives no second token") == 5
    monkeypatch.setattr(outbox, "now", lambda: noon + 1.5 * DAY)
    for person in people:
        assert answer(collector, person, "", capsys, "1 report sent") != 5
    assert answer(collector, thief, rows[0]["ticket"], capsys, "0 reports sent") != 0
    out = tmp_path / "reports.ndjson"
    assert ldpkit("export", "habits", "--collector", collector.url, "--out", out).returncode == 0
    assert len([Report.from_json(line) for line in out.read_text().splitlines()[:-1]]) == 3
    theirs, here = guide_block("ldpkit tickets status")
    assert "3 of 3 tickets got a token" in issuer.operate(theirs)
    assert f"of {issuer.url}, one a report" in run(f"{here} --collector {collector.url}", tmp_path)
    issuer.process.terminate()
    issuer.process.wait()
    # Whoever takes the one file has every token.
    assert not (folder / "ldpkit.sqlite3-wal").exists()


@pytest.mark.slow
def test_a_report_with_a_token_survives_restarts_on_both_sides(
    office, collector, tmp_path, monkeypatch, capsys
):
    issuer, folder = office
    study = study_with(folder, issuer)
    assert collector.publish(study) == 201
    codes = [row["ticket"] for row in csv.DictReader((folder / "codes.csv").open())]
    monkeypatch.setattr(outbox, "now", lambda: 21_000.5 * DAY)
    monkeypatch.setattr("ldp_client.device.sending.backoff", lambda _: 0.0)
    issuer.kill()
    assert answer(collector, tmp_path / "Ada", codes[0], capsys, "cannot reach the issuer") == 5
    revived = Issuer(folder)
    # It got another port: the device's requests go there.
    plain = Direct.exchange

    def moved(transport, request, *more):
        request.full_url = request.full_url.replace(issuer.url, revived.url)
        return plain(transport, request, *more)

    monkeypatch.setattr(Direct, "exchange", moved)
    answer(collector, tmp_path / "Ada", "", capsys, "1 report leaves")
    revived.kill()
    collector.kill()
    collector.start()
    monkeypatch.setattr(outbox, "now", lambda: 21_002.0 * DAY)
    answer(collector, tmp_path / "Ada", "", capsys, "1 report sent")
