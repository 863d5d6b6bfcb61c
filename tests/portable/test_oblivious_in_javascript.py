"""The npm package through a relay: the RFC's bytes, node and both browsers, with a real collector."""

import json
import re
import subprocess
import threading
import time
from base64 import b64encode
from contextlib import contextmanager

import pytest

from collector.oblivious.keys import GatewayKeys
from schemas import Study
from tests import studies
from tests.browser.visiting import visit
from tests.collector.conftest import Server
from tests.oblivious.relay_example import relaying
from tests.portable import npm
from tests.portable.folder_site import served
from tests.portable.participant import Participant
from tests.portable.platforms import JAVASCRIPT
from tests.portable.test_leaving_later import until
from tests.portable.test_ledgers import INDEX
from tests.portable.vector_texts import GOLDEN

ASKED = {**studies.YES_NO, "text": "Have you ever?"}
ANSWERED = [["answer", {"ever": "yes"}], ["consent"], ["flush"], ["due"]]
DELETED = [["withdraw"], ["flush"], ["due"], ["flush"]]
HOUR_MS = 3_600_000
MODULE = JAVASCRIPT / "oblivious.js"
SHIFTED = "const now = Date.now; Date.now = () => now() + {shift};"
PAGE = """<!doctype html><html lang="en"><title>Relayed</title>
<main><h1>Relayed</h1><p id="said" hidden></p></main>
<script type="module" src="page.js"></script></html>"""
SCRIPT = """
const { openDevice, parseStudy } = await import("%(collector)s/assets/ldpkit/index.js");
const said = async () => {
  const text = await (await fetch("%(collector)s/v1/studies/%(study)s")).text();
  const study = await parseStudy(text);
  const device = await openDevice({ maxEpsilon: "4", collector: "%(collector)s" });
  const state = async () => (await device.status(study)).report?.state ?? "gone";
  await device.answer(study, { ever: "yes" });
  await device.consent(study);
  await device.flush({ attempts: 1 });
  const states = [await state()];
  // The parts that it has just loaded came from the collector.
  const { report: { id, due }, apart } = await device.status(study);
  Date.now = () => Math.max(due, apart);
  await device.flush({ attempts: 1 });
  states.push(await state());
  if (states[1] === "sent" && %(withdraws)s) {
    await device.withdraw(study.id);
    await device.flush({ attempts: 1 });
    states.push(await state());
    const { due: deleted } = (await device.status(study)).report;
    Date.now = () => deleted;
    await device.flush({ attempts: 1 });
    states.push(await state());
  }
  return [id, ...states].join(" ");
};
const place = document.querySelector("#said");
place.textContent = await said().catch((error) => `failed ${error.stack}`);
place.hidden = false;
"""


def test_rfc_appendix_matches_and_damaged_messages_are_rejected():
    said = npm.node("oblivious_vectors.mjs", MODULE, GOLDEN / "rfc" / "rfc9458_appendix_a.json")
    assert json.loads(said) == {
        "request": True,
        "answer": True,
        "status": 200,
        "changed": "refused",
        "other": "refused",
        "read": [200, "b", "hi"],
        "padded": [40, True],
        "long": True,
        "none": [True] * 5,
    }


@pytest.fixture(scope="module")
def keys():
    return GatewayKeys.generate()


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A site of other people, whose page has a device."""
    folder = tmp_path_factory.mktemp("site")
    with served(folder) as origin:
        yield folder, origin


@pytest.fixture(scope="module")
def collector(tmp_path_factory, keys, origin):
    """One that takes nothing in the clear."""
    folder = tmp_path_factory.mktemp("collector")
    keys.save(folder / "ohttp.keys")
    environment = {"LDPKIT_OHTTP_KEYS": "ohttp.keys", "LDPKIT_CORS_ORIGINS": origin[1]}
    started = Server(folder, "--require-ohttp", environment=environment)
    yield started
    started.kill()


@pytest.fixture
def passed(monkeypatch):
    """The sizes of what went through relays of this process, there and back."""
    sizes = []
    plain = relaying.forwarded

    def forwarded(gateway, body):
        answer = plain(gateway, body)
        sizes.append((len(body), len(answer[1]) if len(answer) > 1 else None))
        return answer

    monkeypatch.setattr(relaying, "forwarded", forwarded)
    return sizes


@pytest.fixture
def study(request, collector, keys):
    """A study of this test's, published, whose reports go through a relay."""
    relay = relaying.Relay(f"{collector.url}/ohttp", "127.0.0.1", 0)
    thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    stated = {"relay": f"{relay.url}/ldpkit", "keys": b64encode(keys.keys[0].configuration).decode()}
    channel = {"batches": {"hours": 1}, "oblivious": stated}
    name = re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")[-60:].strip("-")
    study = Study(studies.document(ASKED, channel=channel, id=name, title="Habits"))
    assert collector.request("POST", "/v1/studies", study.document) == 201
    yield study
    relay.shutdown()
    thread.join()
    relay.server_close()


def take(study, collector, steps, folder, kind="memory"):
    """Return the result of each step of a device."""
    arguments = [
        INDEX,
        kind,
        folder / "kept.db",
        collector.url,
        study.canonical().decode(),
        json.dumps(steps),
    ]
    command = [npm.newer_node(), "channel.mjs", *map(str, arguments)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def exported(collector, study):
    lines = collector.read(f"/v1/studies/{study.id}/export").splitlines()[:-1]
    return [json.loads(line)["id"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "node"])
def test_a_report_is_sent_and_withdrawn_through_the_relay_alone(kind, study, collector, passed, tmp_path):
    sent = take(study, collector, [*ANSWERED, ["flush"], ["report"]], tmp_path, kind)
    assert sent[-2] == "sent"
    assert exported(collector, study) == [sent[-1]["id"]]
    if kind == "node":
        # As another process has it, which has the ledger alone.
        gone = take(study, collector, DELETED, tmp_path, kind)
        assert gone[:2] == [1, "withdrawn"]
        assert gone[-1] == "gone"
        assert exported(collector, study) == []
    # Who serves the study, the report, and its deletion.
    assert len(passed) == (3 if kind == "node" else 2)
    ((asked, answered),) = set(passed)
    assert (asked % 512, answered) == (55, 4128)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "node"])
def test_relay_is_not_used_for_an_hour_after_a_direct_visit(kind, study, collector, passed, tmp_path):
    """A page that is opened again comes from the collector; its report is overdue."""
    late = [["due", HOUR_MS // 2], ["visited"], ["apart"], ["flush"]]
    sent = take(study, collector, [*ANSWERED, *late, ["report"]], tmp_path, kind)
    apart, state, report = sent[-3:]
    assert HOUR_MS <= apart <= 2 * HOUR_MS
    assert (state, passed) == ("queued", [])
    if kind == "memory":
        return
    # Each opens the ledger anew.
    begun = report["due"]
    steps = [["at", begun + HOUR_MS - 1000], ["flush"], ["at", begun + 2 * HOUR_MS], ["flush"]]
    assert take(study, collector, steps, tmp_path, kind)[1::2] == ["queued", "sent"]
    gone = take(study, collector, [["withdraw"], ["flush"], ["due"], ["visited"], ["flush"]], tmp_path, kind)
    assert gone[-1] == "withdrawn"
    # Unless the person wants it at once.
    assert take(study, collector, [["flush", 1, True]], tmp_path, kind) == ["gone"]


@pytest.mark.parametrize("kind", ["memory", "node"])
def test_send_time_is_deleted_from_the_ledger(kind, study, collector, tmp_path):
    """The ledger stores the time only while other requests must keep a delay from it."""
    left = [
        *ANSWERED,
        ["flush"],
        ["moments"],
        ["at", int(time.time() * 1000) + 9000 * HOUR_MS],
        ["flush"],
        ["moments"],
    ]
    *_, sent, (unseen,), _, again, moments = take(study, collector, left, tmp_path, kind)
    assert (sent, again, moments) == ("sent", "sent", [])
    assert unseen > time.time() * 1000


def test_delay_after_a_visit_is_random(study, collector, tmp_path):
    steps = [["answer", {"ever": "yes"}], *[["visited"], ["apart"]] * 12]
    drawn = take(study, collector, steps, tmp_path)[2::2]
    assert all(HOUR_MS <= apart <= 2 * HOUR_MS for apart in drawn)
    assert len(set(drawn)) > 6


def test_clock_ahead_at_a_visit_does_not_block_the_report(study, collector, tmp_path):
    now = int(time.time() * 1000) + 5 * HOUR_MS
    ahead = [["at", now + 9000 * HOUR_MS], ["visited"], ["at", now], ["flush"]]
    later = [["at", now + 2 * HOUR_MS - 1000], ["flush"], ["at", now + 2 * HOUR_MS], ["flush"]]
    *_, waits, _, still, _, sent = take(study, collector, [*ANSWERED, *ahead, *later], tmp_path)
    assert (waits, still, sent) == ("queued", "queued", "sent")


def test_report_waits_if_the_relay_returns_nothing(study, collector, passed, tmp_path, monkeypatch):
    monkeypatch.setattr(relaying, "forwarded", lambda *_: (502,))
    *_, state, report = take(study, collector, [*ANSWERED, ["flush"], ["report"]], tmp_path)
    assert (state, report["reason"]) == ("queued", "unserved foreign 502")
    assert exported(collector, study) == passed == []


def test_answer_forged_by_a_relay_is_ignored(study, collector, tmp_path, monkeypatch):
    genuine = relaying.forwarded
    kept = []

    def other(gateway, body):
        """The answer to the request before, as a relay could bring it."""
        kept.append(genuine(gateway, body))
        return kept[-2] if len(kept) > 1 else kept[-1]

    monkeypatch.setattr(relaying, "forwarded", other)
    *_, state, report = take(study, collector, [*ANSWERED, ["flush"], ["report"]], tmp_path)
    assert (state, report["reason"]) == ("queued", "unreachable")
    # Its receipt was lost: it is there, and asked for again.
    assert exported(collector, study) == [report["id"]]


def test_browser_without_x25519_is_rejected_before_answering(study):
    script = f"""
    const {{ openDevice, parseStudy }} = await import("{INDEX}");
    const {{ memoryLedger }} = await import("{JAVASCRIPT / "ledgers" / "memory.js"}");
    const study = await parseStudy({json.dumps(study.canonical().decode())});
    crypto.subtle.generateKey = async () => {{ throw new DOMException("no", "NotSupportedError"); }};
    const options = {{ maxEpsilon: "4", collector: "http://localhost:1", ledger: memoryLedger() }};
    const device = await openDevice(options);
    const {{ message }} = await device.answer(study, {{ ever: "yes" }}).catch((error) => error);
    console.log(JSON.stringify([message, await device.epsilonLeft()]));
    """
    said = json.loads(npm.node("--input-type=module", "-e", script))
    assert said == ["input: channel.oblivious: needs X25519", 4]


@contextmanager
def page_of(folder, **values):
    (folder / "index.html").write_text(PAGE)
    (folder / "page.js").write_text(SCRIPT % values)
    yield
    (folder / "page.js").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("browser", ["chrome", "firefox"])
def test_foreign_page_sends_and_withdraws_in_both_browsers(browser, study, collector, origin, passed):
    folder, site = origin
    withdraws = "true" if browser == "firefox" else "false"
    with page_of(folder, collector=collector.url, study=study.id, withdraws=withdraws):
        steps = [["wait", "#said"], ["look", "end"]]
        found = visit(browser, [{"url": f"{site}/index.html", "steps": steps}], "light", 390)
    report_id, *states = found["looks"]["end"]["text"].split("\n")[-1].split(" ")
    assert states == ["queued", "sent", *(["withdrawn", "gone"] if browser == "firefox" else [])]
    assert exported(collector, study) == ([] if browser == "firefox" else [report_id])
    assert len({*passed}) == 1


@pytest.mark.slow
def test_participants_page_sends_through_the_relay(study, collector, browser, passed):
    """Under its Content-Security-Policy."""
    person = Participant(browser, collector, study)
    person.answer(ever="yes")
    person.until("report")
    person.send()
    until(lambda: person.ledger()[1][0].get("due"))
    assert passed == []
    script = SHIFTED.format(shift=3 * HOUR_MS)
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        # It is overdue, and the collector sees who opens the page.
        browser.refresh()
        person.until_says("the collector saw this page being opened")
        assert not person.find("#again").is_displayed()
        assert (passed, person.ledger()[1][0]["state"]) == ([], "queued")
        browser.refresh()
        person.until_says("the collector saw this page being opened")
        assert passed == []
        # As a page that stayed open for two hours.
        browser.execute_script("const now = Date.now; Date.now = () => now() + 7200000;")
        browser.execute_script("dispatchEvent(new Event('online'));")
        person.until_says("This was sent. Thank you.")
        assert len(exported(collector, study)) == 1
        # Under a pointer the button may move, as the page tells more.
        browser.execute_script("document.querySelector('#withdraw').click();")
        person.until_says("The deletion is asked for at a moment drawn by chance between")
        assert (len(passed), len(exported(collector, study))) == (2, 1)
        person.click("#now button")
        person.until("gone")
        assert exported(collector, study) == []
    finally:
        browser.execute_cdp_cmd(
            "Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]}
        )
    assert len(passed) == 3
    addresses = [url for _, url in person.requests()]
    assert not [url for url in addresses if "/reports/" in url]
    assert study.channel.oblivious.relay in addresses
