"""A device in JavaScript: whose answers it keeps apart, what is free, what a withdrawal leaves."""

import json
import os
import re
import subprocess

import pytest

from tests import studies
from tests.kit.failing_disk import FailingDisk
from tests.ldp_client.devices import Server
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

SMOKES = {**studies.YES_NO, "id": "smokes", "text": "Do you smoke?"}
DRINKS = {**studies.YES_NO, "id": "drinks", "text": "Do you drink?"}
PRELUDE = f"""
const from = (name) => import("{JAVASCRIPT}/" + name);
const {{ openDevice, parseStudy }} = await from("index.js");
const ledger = (await from("ledgers/memory.js")).memoryLedger();
const at = (collector) => openDevice({{ maxEpsilon: "9", collector, ledger }});
const studies = await Promise.all(DOCUMENTS.map((one) => parseStudy(JSON.stringify(one))));
"""


def printed(script, *documents):
    """What a script prints as JSON in node; `studies` there are these documents."""
    source = PRELUDE.replace("DOCUMENTS", json.dumps(documents)) + script
    return json.loads(npm.node("--input-type=module", "-e", source))


KEPT_APART = """
const [mine, other, round, next, older] = studies;
const [a, b] = [await at("https://a.example"), await at("https://b.example/")];
const { id } = await a.answer(mine, { smokes: true });
const wasAnswered = (await b.status(other)).answered;
await b.answer(other, { drinks: true });
const shown = async (device, study) => (await device.status(study)).report?.id === id;
const found = { shown: await shown(a, mine), its: !(await shown(b, other)), wasAnswered };
await a.consent(mine);
const { studies: told } = await b.told();
found.told = told.map(({ origin, questions, states }) => [origin, questions, states]);
found.withdrawn = [await a.withdraw(mine.id), (await b.status(other)).report?.state];
await a.answer(round, { habit: true });
found.isAnswered = (await b.status(next)).answered;
await b.answer(next, { habit: true });
await b.withdraw(next.id);
found.kept = (await ledger.read(({ permanent }) => permanent.map(({ answer }) => answer.length > 0)));
found.older = await b.answer(older, { eats: true }).then(() => "taken", ({ code }) => code);
console.log(JSON.stringify(found));
"""


@pytest.mark.attack(4)
def test_answers_are_kept_apart_by_collector():
    """A collector takes another's study id, to have its answers dropped, shown as its own or repeated."""
    found = printed(
        KEPT_APART,
        studies.document(SMOKES, id="habits", version=2),
        studies.document(DRINKS, id="habits", version=1),
        studies.document(studies.MEMOIZED, id="habits", version=3),
        studies.document(studies.MEMOIZED, id="habits", version=4),
        studies.document({**studies.YES_NO, "id": "eats"}, id="habits", version=2),
    )
    assert found == {
        "shown": True,
        "its": True,
        "wasAnswered": False,
        "told": [
            ["https://a.example", ["Do you smoke?"], ["queued"]],
            ["https://b.example", ["Do you drink?"], ["held"]],
        ],
        "withdrawn": [0, "held"],
        "isAnswered": False,
        "kept": [True, False],
        "older": "answered",
    }


COSTS = """
const [study] = studies;
const device = await at("https://a.example");
const answers = Object.fromEntries(study.questions.map(({ id }) => [id, 1]));
const code = await device.answer(study, answers).catch((error) => error.code);
console.log(JSON.stringify([code, await ledger.read(({ spent, reports }) => spent.length + reports.length)]));
"""


@pytest.mark.attack(7)
def test_too_large_report_costs_nothing():
    """A study's report is larger than any device sends, so that devices spend epsilon for nothing."""
    assert printed(COSTS, studies.of_large_choices(97).document) == ["study", 0]


FETCHED = """
const {{ fetchStudy }} = await from("fetching.js");
const device = {{ collector: "{url}", transport: fetch }};
const fetched = (id) => fetchStudy(device, id).then(({{ id }}) => id, ({{ message }}) => message);
console.log(JSON.stringify([await fetched("survey"), await fetched("diary")]));
"""


@pytest.mark.attack(16)
@pytest.mark.parametrize(
    ("state", "found"),
    [("open", ["survey", "input: study: is another: survey"]), ("closed", ["closed: takes no reports"] * 2)],
)
def test_fetch_rejects_a_closed_study_and_another_than_requested(state, found):
    """A collector serves a study that takes no reports, or another than the page asked for."""
    with Server(json.dumps(studies.document(studies.YES_NO)).encode()) as server:
        server.headers = {"LDPKit-Study": state}
        assert printed(FETCHED.format(url=server.url)) == found


KINDS = ["node", "expo"]
# More than a page of the file holds.
OTHERS = [{**studies.YES_NO, "id": f"q{number}", "text": f"Question {number}"} for number in range(20)]
STUDY = studies.document(studies.MEMOIZED, *[studies.with_epsilon(one, "0.1") for one in OTHERS])
TICKET = "TICKET-OF-ANNA"
ANSWER = ["answer", {"habit": "yes", **{one["id"]: "no" for one in OTHERS}}, TICKET]


def live(kind, file, *steps, **environment):
    """What each step of channel.mjs gave, on the ledger in that file."""
    arguments = (JAVASCRIPT / "index.js", kind, file, "http://127.0.0.1:9", *map(json.dumps, (STUDY, steps)))
    command = [npm.newer_node(), "channel.mjs", *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=npm.FOLDER,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def left_of(report, file):
    """Which traces of a withdrawn report and its answer the file still has."""
    text = file.read_bytes().decode("latin-1")
    traces = {"body": report["body"][:40].replace('"', '\\"'), "secret": report["secret"], "code": TICKET}
    found = [name for name, trace in traces.items() if trace in text]
    return found + re.findall(r'"answer":"\\u0000bytes \d', text)


@pytest.mark.slow
@pytest.mark.attack(11)
@pytest.mark.parametrize("kind", KINDS)
def test_withdrawn_report_is_wiped_from_the_file(kind, tmp_path):
    """Someone reads an app's ledger after the withdrawal: SQLite may leave deleted content."""
    file = tmp_path / "kept.db"
    _, report = live(kind, file, ANSWER, ["report"])
    assert len(left_of(report, file)) == 4
    assert live(kind, file, ["consent"], ["withdraw"]) == ["queued", 0]
    assert left_of(report, file) == []


@pytest.mark.slow
@pytest.mark.attack(11)
@pytest.mark.needs("gcc")
def test_withdrawal_survives_a_loss_of_power(tmp_path):
    """The power fails after a withdrawal, and SQLite's journal would restore the report."""
    disk = FailingDisk(tmp_path, forgets_removals=True)
    file = disk.root / "kept.db"
    live("node", file, ANSWER, ["consent"])
    disk.keep()
    assert live("node", file, ["withdraw"], **disk.environment) == [0]
    disk.lose_power()
    assert live("node", file, ["report"]) == [None]


@pytest.mark.attack(12)
@pytest.mark.parametrize(
    ("status", "said", "state", "ticket"),
    [
        (201, {"result": "stored"}, "sent", ""),
        (422, {"type": "urn:ldpkit:problem:report-invalid", "digest": "d"}, "refused", ""),
        (503, {"type": "urn:ldpkit:problem:unavailable"}, "queued", TICKET),
    ],
)
def test_concluded_report_no_longer_holds_its_ticket(status, said, state, ticket):
    """Someone finds in a device's ledger whose report it was."""
    kind = "application/json" if status == 201 else "application/problem+json"
    headers = {"Content-Type": kind}
    report = {"id": "r", "body": "{}", "ticket": TICKET, "digest": "d", "closes": "2000-01-01"}
    script = f"""
    const {{ put }} = await from("upload.js");
    const answer = ['{json.dumps({**said, "id": "r"})}', {{ status: {status}, headers: {headers} }}];
    const kept = {json.dumps(report)};
    const {{ changes }} = await put(async () => new Response(...answer), "https://collector.example", kept);
    console.log(JSON.stringify({{ ...kept, ...changes }}));
    """
    kept = printed(script)
    assert (kept["state"], kept["ticket"]) == (state, ticket)
