"""The npm package through a relay: the RFC's bytes, node and both browsers, with a real collector."""

import json
import re
import subprocess
import threading
from base64 import b64encode
from contextlib import contextmanager

import pytest

from collector.oblivious.keys import GatewayKeys
from schemas import Study
from tests import studies
from tests.browser.visiting import visit
from tests.collector.conftest import Server
from tests.ldp_client.issuers import channel_of
from tests.oblivious.relay_example import relaying
from tests.oblivious.test_vectors import POINT, WRONG_CONFIGURATIONS
from tests.portable import npm
from tests.portable.folder_site import served
from tests.portable.platforms import JAVASCRIPT
from tests.portable.test_ledgers import INDEX
from tests.portable.vector_texts import GOLDEN

ASKED = {**studies.YES_NO, "text": "Have you ever?"}
ANSWERED = [["fetched"], ["answer", {"ever": "yes"}], ["consent"]]
BATCHES = {"batches": {"hours": 1}}
MODULE = JAVASCRIPT / "oblivious.js"
# Bytes of an encapsulated request or answer besides the padded content.
OVERHEAD = 55
ANSWER_OVERHEAD = 32
PAGE = """<!doctype html><html lang="en"><title>Relayed</title>
<main><h1>Relayed</h1><p id="said" hidden></p></main>
<script type="module" src="page.js"></script></html>"""
SCRIPT = """
const { fetchStudy, oblivious, openDevice } = await import("%(library)s");
const said = async () => {
  const transport = oblivious(%(relay)s);
  const device = await openDevice({ maxEpsilon: "4", collector: "%(collector)s", transport });
  const study = await fetchStudy(device, "%(study)s");
  const state = async () => (await device.status(study)).report?.state ?? "gone";
  await device.answer(study, { ever: "yes" });
  await device.consent(study);
  await device.flush({ attempts: 1 });
  const states = [await state()];
  await device.withdraw(study.id);
  await device.flush({ attempts: 1 });
  states.push(await state());
  return states.join(" ");
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
        "sizes": [4, 4, 16, 16, 64, 256],
        "none": [True] * 5,
    }


def base64_of(digits):
    return b64encode(bytes.fromhex(digits)).decode()


GOOD = base64_of(f"010020{POINT}000400010001")
RELAY = "https://relay.example"
OPTIONS = [
    ({"relay": "https://relay.example/x/", "keys": GOOD}, "https://relay.example/x"),
    (
        {"relay": "http://127.0.0.1:8080", "keys": base64_of(f"000020{POINT}000800010003" + "00010001")},
        "http://127.0.0.1:8080",
    ),
    ({"relay": "http://relay.example", "keys": GOOD}, "input relay"),
    ({"relay": "https://relay.example?a", "keys": GOOD}, "input relay"),
    ({"relay": "", "keys": GOOD}, "input relay"),
    ({"relay": RELAY}, "input keys"),
    *[({"relay": RELAY, "keys": text}, "input keys") for text in (f"{GOOD}\n", f"?{GOOD}", f"{GOOD} ")],
    *[
        ({"relay": RELAY, "keys": base64_of(digits)}, "input keys")
        for digits in WRONG_CONFIGURATIONS.values()
    ],
]


def test_wrong_relays_and_keys_are_rejected():
    script = f"""
    const {{ oblivious }} = await import("{MODULE}");
    const opened = ({{ relay }}) => relay;
    const refused = ({{ code, field }}) => `${{code}} ${{field}}`;
    const options = {json.dumps([option for option, _ in OPTIONS])};
    const results = options.map((given) => oblivious(given).then(opened, refused));
    console.log(JSON.stringify(await Promise.all(results)));
    """
    said = json.loads(npm.node("--input-type=module", "-e", script))
    assert said == [expected for _, expected in OPTIONS]


def test_platform_without_x25519_is_rejected_at_once():
    script = f"""
    const {{ openDevice }} = await import("{INDEX}");
    const {{ oblivious }} = await import("{MODULE}");
    crypto.subtle.generateKey = async () => {{ throw new DOMException("no", "NotSupportedError"); }};
    const transport = oblivious({json.dumps({"relay": RELAY, "keys": GOOD})});
    const device = openDevice({{ maxEpsilon: "4", collector: "http://localhost:1", transport }});
    console.log(await device.catch(({{ message }}) => message));
    """
    assert npm.node("--input-type=module", "-e", script).strip() == "input: needs X25519"


def test_request_for_another_host_is_not_relayed():
    """A token request carries an invitation, which the collector must not see."""
    script = f"""
    const {{ oblivious }} = await import("{MODULE}");
    globalThis.fetch = () => console.log("relayed");
    const transport = await oblivious({json.dumps({"relay": RELAY, "keys": GOOD})});
    await transport("https://issuer.example/v1/tokens", {{}}).catch(({{ message }}) => console.log(message));
    """
    assert npm.node("--input-type=module", "-e", script).strip() == "input: url: is beyond the relay"


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
    """A collector that takes no direct report."""
    folder = tmp_path_factory.mktemp("collector")
    keys.save(folder / "ohttp.keys")
    environment = {"LDPKIT_OHTTP_KEYS": "ohttp.keys", "LDPKIT_CORS_ORIGINS": origin[1]}
    started = Server(folder, "--require-ohttp", environment=environment)
    yield started
    started.kill()


@pytest.fixture
def passed(monkeypatch):
    """The sizes of the relay's requests and answers."""
    sizes = []
    plain = relaying.forwarded

    def forwarded(gateway, body):
        answer = plain(gateway, body)
        sizes.append((len(body), len(answer[1]) if len(answer) > 1 else None))
        return answer

    monkeypatch.setattr(relaying, "forwarded", forwarded)
    return sizes


@pytest.fixture
def relay(collector, keys):
    """The options of `oblivious` for a relay before the collector."""
    relay = relaying.Relay(f"{collector.url}/ohttp", "127.0.0.1", 0)
    thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield {"relay": f"{relay.url}/ldpkit", "keys": b64encode(keys.keys[0].configuration).decode()}
    relay.shutdown()
    thread.join()
    relay.server_close()


@pytest.fixture
def publish(request, collector):
    """Publishes a study of this test."""

    def publish(**changes):
        name = re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")[-60:].strip("-")
        study = Study(studies.document(ASKED, id=name, title="Habits", **changes))
        assert collector.request("POST", "/v1/studies", study.document) == 201
        return study

    return publish


def take(study, collector, relay, steps, folder, kind="memory"):
    """Return the result of each step of a device behind the relay. `collector`: its base URL."""
    arguments = [INDEX, kind, folder / "kept.db", collector, study.canonical().decode()]
    arguments += [json.dumps(steps), json.dumps(relay)]
    command = [npm.newer_node(), "channel.mjs", *map(str, arguments)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def exported(collector, study):
    lines = collector.read(f"/v1/studies/{study.id}/export").splitlines()[:-1]
    return [json.loads(line)["id"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "node"])
@pytest.mark.parametrize("changes", [{}, {"channel": BATCHES}], ids=["at-once", "batches"])
def test_every_request_goes_through_the_relay(changes, kind, publish, collector, relay, passed, tmp_path):
    """The fetch, the report and its deletion; nothing listens at the address that the device has."""
    study = publish(**changes)
    nowhere = "http://localhost:9"
    turn = [["flush"], ["due"]] if changes else []
    sent = take(study, nowhere, relay, [*ANSWERED, *turn, ["flush"], ["report"]], tmp_path, kind)
    assert (sent[0], sent[-2]) == (study.id, "sent")
    assert exported(collector, study) == [sent[-1]["id"]]
    if kind == "node":
        # As another process has it, which has the ledger alone.
        gone = take(study, nowhere, relay, [["withdraw"], *turn, ["flush"]], tmp_path, kind)
        assert (gone[0], gone[-1]) == (1, "gone")
        assert exported(collector, study) == []
    # The study twice, before the answer and before the report; the report; its deletion.
    small = (4096 + OVERHEAD, 4096 + ANSWER_OVERHEAD)
    fetch = (4096 + OVERHEAD, 65536 + ANSWER_OVERHEAD)
    assert passed == [fetch, fetch, small, *([small] if kind == "node" else [])]


def test_report_waits_if_the_relay_returns_nothing(publish, collector, relay, passed, tmp_path, monkeypatch):
    study = publish()
    monkeypatch.setattr(relaying, "forwarded", lambda *_: (502,))
    *_, state, report = take(study, collector.url, relay, [*ANSWERED[1:], ["flush"], ["report"]], tmp_path)
    assert (state, report["reason"]) == ("queued", "unserved foreign 502")
    assert exported(collector, study) == passed == []


def test_answer_forged_by_a_relay_is_ignored(publish, collector, relay, tmp_path, monkeypatch):
    study = publish()
    genuine = relaying.forwarded
    kept = []

    def other(gateway, body):
        """The answer to the request before, as a relay could bring it."""
        kept.append(genuine(gateway, body))
        return kept[-2] if len(kept) > 1 else kept[-1]

    monkeypatch.setattr(relaying, "forwarded", other)
    *_, state, report = take(study, collector.url, relay, [*ANSWERED[1:], ["flush"], ["report"]], tmp_path)
    assert (state, report["reason"]) == ("queued", "unreachable")
    # The report is stored, its receipt was lost, and it is sent again.
    assert exported(collector, study) == [report["id"]]


REFUSED = """
const {{ openDevice, parseStudy }} = await import("{index}");
const {{ memoryLedger }} = await import("{memory}");
const study = await parseStudy({text});
const transport = Object.assign(async () => {{}}, {{ relay: "https://relay.example" }});
const options = {{ maxEpsilon: "9", collector: "https://collector.example" }};
const tried = [transport, undefined].map(async (transport) => {{
  const device = await openDevice({{ ...options, ledger: memoryLedger(), transport }});
  const refusal = ({{ code, field }}) => `${{code}} ${{field}}`;
  const found = await device.answer(study, {answers}).then(() => "", refusal);
  return [found, await device.epsilonLeft()];
}});
console.log(JSON.stringify(await Promise.all(tried)));
"""


def refused(study, answers):
    """Return the error and the epsilon left of an answer with a relay, then without."""
    script = REFUSED.format(
        index=INDEX,
        memory=JAVASCRIPT / "ledgers" / "memory.js",
        text=json.dumps(study.canonical().decode()),
        answers=json.dumps(answers),
    )
    return json.loads(npm.node("--input-type=module", "-e", script))


def test_study_with_tokens_is_rejected_before_answering():
    """The relay reaches one collector, and no issuer."""
    study = Study(studies.document(ASKED, channel=channel_of("https://issuer.example", hours=1)))
    with_relay, without = refused(study, {"ever": "yes"})
    assert with_relay == ["study channel.tokens", 9]
    assert without[0] == ""


def test_report_too_large_for_a_relay_is_rejected_before_answering():
    study = studies.of_large_choices(24)
    with_relay, without = refused(study, {f"q{number}": 7 for number in range(24)})
    assert with_relay == ["study ", 9]
    assert without[0] == ""


@contextmanager
def page_of(folder, **values):
    (folder / "index.html").write_text(PAGE)
    (folder / "page.js").write_text(SCRIPT % values)
    yield
    (folder / "page.js").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("browser", ["chrome", "firefox"])
def test_foreign_page_sends_and_withdraws_in_both_browsers(
    browser, publish, collector, relay, origin, passed
):
    """Its page has the library from elsewhere, and never contacts the collector."""
    folder, site = origin
    study = publish()
    values = {"library": f"{collector.url}/assets/ldpkit.js", "relay": json.dumps(relay)}
    with page_of(folder, collector="https://localhost:9", study=study.id, **values):
        steps = [["wait", "#said"], ["look", "end"]]
        found = visit(browser, [{"url": f"{site}/index.html", "steps": steps}], "light", 390)
    states = found["looks"]["end"]["text"].split("\n")[-1]
    assert states == "sent gone"
    assert exported(collector, study) == []
    assert len(passed) == 4


KEY_GONE = """
const {{ fetchStudy, oblivious, openDevice, parseStudy }} = await import("{index}");
const {{ memoryLedger }} = await import("{memory}");
const problem = {{ type: "https://iana.org/assignments/http-problem-types#ohttp-key" }};
let requests = 0;
globalThis.fetch = async () => {{
  requests++;
  return new Response(JSON.stringify(problem), {{ status: 400 }});
}};
const study = await parseStudy({text});
const ledger = memoryLedger();
const collector = "https://collector.example";
const device = await openDevice({{ maxEpsilon: "9", collector, ledger, transport: oblivious({relay}) }});
const found = [await fetchStudy(device, study.id).catch(({{ code }}) => code)];
await device.answer(study, {{ ever: "yes" }});
await device.consent(study);
const flushed = async () => {{
  requests = 0;
  await device.flush({{ attempts: 3 }});
  const {{ state, reason }} = (await device.status(study)).report;
  found.push([state, reason, requests]);
}};
await flushed();
// As if an earlier attempt had reached the collector.
await ledger.write(({{ reports }}) => (reports[0].publisher = "c"));
await device.withdraw(study.id);
await flushed();
await flushed();
console.log(JSON.stringify(found));
"""


def test_key_gone_answer_is_named_and_retried_at_next_flush():
    """Only the relay says so: nothing is dropped, and a deletion is requested at each flush."""
    study = Study(studies.document(ASKED))
    script = KEY_GONE.format(
        index=INDEX,
        memory=JAVASCRIPT / "ledgers" / "memory.js",
        text=json.dumps(study.canonical().decode()),
        relay=json.dumps({"relay": RELAY, "keys": GOOD}),
    )
    said = json.loads(npm.node("--input-type=module", "-e", script))
    assert said == ["key", ["queued", "unserved key", 1], *[["withdrawn", "key", 1]] * 2]
