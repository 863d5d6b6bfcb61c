"""A withdrawn report is still readable in an app's ledger, or a loss of power restores it.

Defence: The device: SQLite overwrites deleted content with zeros, and a transaction counts once its
journal's removal is on disk, in Python, Node and Expo. Known limit: old blocks that file systems and
flash chips keep, and a browser's own files until it rewrites them.
"""

import json
import os
import re
import subprocess

import pytest

from tests import studies
from tests.collector.failing_disk import FailingDisk
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

KINDS = ["node", "expo"]
# More than a page of the file holds.
OTHERS = [{**studies.YES_NO, "id": f"q{number}", "text": f"Question {number}"} for number in range(20)]
OTHERS = [{**one, "mechanism": {**one["mechanism"], "epsilon": "0.1"}} for one in OTHERS]
STUDY = studies.document(studies.MEMOIZED, *OTHERS)
INVITATION = "INVITATION-OF-ANNA"
ANSWER = ["answer", {"habit": "yes", **{one["id"]: "no" for one in OTHERS}}, INVITATION]


def live(kind, file, *steps, **environment):
    """What each step of channel.mjs gave, on the ledger in that file."""
    arguments = (JAVASCRIPT / "index.js", kind, file, "http://127.0.0.1:9", *map(json.dumps, (STUDY, steps)))
    command = [npm.newer_node(), "channel.mjs", *map(str, arguments)]
    surroundings = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=npm.FOLDER, env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def left_of(report, file):
    """Which traces of a withdrawn report and its answer the file still has."""
    text = file.read_bytes().decode("latin-1")
    traces = {"body": report["body"][:40].replace('"', '\\"'), "secret": report["secret"], "code": INVITATION}
    found = [name for name, trace in traces.items() if trace in text]
    return found + re.findall(r'"answer":"\\u0000bytes \d', text)


@pytest.mark.parametrize(
    ("status", "said", "state", "invitation"),
    [
        (201, {"result": "stored"}, "sent", ""),
        (422, {"type": "urn:ldpkit:problem:report-invalid", "digest": "d"}, "refused", ""),
        (409, {"type": "urn:ldpkit:problem:study-closed", "digest": "d"}, "refused", ""),
        (503, {"type": "urn:ldpkit:problem:unavailable"}, "queued", INVITATION),
    ],
)
def test_concluded_report_no_longer_holds_its_invitation(status, said, state, invitation):
    """The invitation shows whose report it is; the report's id and text stay on the device."""
    kind = "application/json" if status == 201 else "application/problem+json"
    headers = {"Content-Type": kind, "LDPKit-Collector": "c"}
    report = {"id": "r", "body": "{}", "invitation": INVITATION, "digest": "d", "closes": "2000-01-01"}
    script = f"""
    const {{ put }} = await import("{JAVASCRIPT / "upload.js"}");
    const answer = ['{json.dumps({**said, "id": "r"})}', {{ status: {status}, headers: {headers} }}];
    const transport = async () => new Response(...answer);
    const kept = {json.dumps({**report, "publisher": "c"})};
    const {{ changes }} = await put(transport, "https://collector.example", kept);
    console.log(JSON.stringify({{ ...kept, ...changes }}));
    """
    kept = json.loads(npm.node("--input-type=module", "-e", script))
    assert (kept["state"], kept["invitation"]) == (state, invitation)


@pytest.mark.parametrize("kind", KINDS)
def test_withdrawn_report_is_wiped_from_the_file(kind, tmp_path):
    """SQLite leaves deleted content in free pages unless told otherwise."""
    file = tmp_path / "kept.db"
    _, report = live(kind, file, ANSWER, ["report"])
    assert len(left_of(report, file)) == 4
    assert live(kind, file, ["consent"], ["withdraw"]) == ["queued", 0]
    assert left_of(report, file) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_withdrawal_survives_a_loss_of_power(kind, tmp_path):
    """SQLite's journal holds the previous state, which is restored if the journal reappears."""
    disk = FailingDisk(tmp_path, forgets_removals=True)
    file = disk.root / "kept.db"
    live(kind, file, ANSWER, ["consent"])
    disk.keep()
    assert live(kind, file, ["withdraw"], **disk.environment) == [0]
    disk.lose_power()
    assert live(kind, file, ["report"]) == [None]
