"""The library in a browser: its ledger in IndexedDB, raced for, killed, damaged; modules that do not load."""

import pytest

from tests import studies
from tests.portable.chromium import attempt, run, set_offline

pytestmark = pytest.mark.slow
DOCUMENT = studies.document(studies.NUMBER, studies.CHOICE)
ANSWERS = {"hours": 3.5, "occupation": "worker"}
OPEN = """
const [document, answers] = args;
const study = await parseStudy(JSON.stringify(document));
const device = await openDevice({ maxEpsilon: "4" });
"""


RACING = """
window.outcomes = (async () => {
  const { openDevice, parseStudy } = await import("/js/index.js");
  const study = await parseStudy(JSON.stringify(arguments[0]));
  const devices = [];
  for (let round = 0; round < arguments[1]; round++) {
    devices.push(await openDevice({ maxEpsilon: "4", name: `race-${round}` }));
  }
  window.ready = true;
  const answered = (device) => device.answer(study, { hours: 3, occupation: "worker" });
  const raced = (device) => answered(device).then(({ body }) => body, ({ code }) => code);
  return navigator.locks.request("start", { mode: "shared" }, () => Promise.all(devices.map(raced)));
})();
"""
KEPT = """
const study = await parseStudy(JSON.stringify(args[0]));
const bodyOf = async (_, round) => {
  const device = await openDevice({ maxEpsilon: "4", name: `race-${round}` });
  return (await device.status(study)).report.body;
};
return Promise.all(Array.from({ length: args[1] }, bodyOf));
"""


@pytest.mark.attack(4)
def test_two_tabs_race_for_one_report(page, site):
    """Both tabs answer when a lock is released; for every ledger exactly one tab wins."""
    rounds = 10
    hold = "navigator.locks.request('start', () => new Promise((go) => { window.go = go; done({}) }));"
    assert "error" not in attempt(page, hold + "return new Promise(() => {});")
    first, tabs, found = page.current_window_handle, [], []
    for _ in range(2):
        page.switch_to.new_window("tab")
        page.get(f"{site.url}/pages/blank.html")
        page.execute_script(RACING, DOCUMENT, rounds)
        tabs.append(page.current_window_handle)
    for tab in tabs:
        page.switch_to.window(tab)
        run(page, "while (!window.ready) await new Promise((resolve) => setTimeout(resolve, 5));")
    page.switch_to.window(first)
    page.execute_script("window.go()")
    for tab in tabs:
        page.switch_to.window(tab)
        found.append(run(page, "return window.outcomes;"))
        page.close()
    page.switch_to.window(first)
    for *outcomes, kept in zip(*found, run(page, KEPT, DOCUMENT, rounds), strict=True):
        assert sorted(outcomes) == sorted(["answered", kept])


KILLED = """
const [document, answers, steps] = args;
const study = await parseStudy(JSON.stringify(document));

async function killed(left) {
  const name = `killed-${left}`;
  const worker = new Worker("/pages/killed.js", { type: "module" });
  worker.postMessage({ text: JSON.stringify(document), answers, steps: left, name });
  const outcome = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
  });
  worker.terminate();
  const device = await openDevice({ maxEpsilon: "64", name });
  const { answered, report } = await device.status(study);
  const again = await device.answer(study, answers).then(() => "written", ({ code }) => code);
  const after = await device.status(study);
  return [outcome, answered, Boolean(report), report?.body === after.report.body, again];
}
// At once: a browser takes seconds to end a worker that is busy.
return Promise.all(Array.from({ length: steps }, (_, step) => killed(step + 1)));
"""


def test_killed_worker_stores_spend_and_report_or_neither(page):
    """A worker is terminated at each of its steps: random bytes, transaction, reads and writes."""
    document = studies.document(studies.NUMBER, studies.CHOICE, studies.MEMOIZED_BITS)
    # The transaction and its reading; noise of the number, bits and coin of the choice, permanent answer and
    # its flips, and the id; and the writing of it all.
    steps = 2 + 6 + 1
    *stopped, whole = run(page, KILLED, document, {**ANSWERS, "brand": "worker"}, steps + 1)
    for outcome, answered, reported, same, again in stopped:
        assert (outcome, answered, again) in {("stopped", True, "answered"), ("stopped", False, "written")}
        assert answered == reported == same
    assert len(stopped) == steps
    assert whole == ["answered", True, True, True, "answered"]


CORRUPT = """
await openDevice({ maxEpsilon: "4" });
const database = await new Promise((resolve) => {
  const request = indexedDB.open("ldpkit");
  request.onsuccess = () => resolve(request.result);
});
const transaction = database.transaction("ledger", "readwrite");
const store = transaction.objectStore("ledger");
const write = (memory) => (args[0] === null ? store.delete(0) : store.put(memory, 0));
write({ spent: [], reports: [], permanent: [], ...args[0] });
await new Promise((resolve) => { transaction.oncomplete = resolve; });
database.close();
"""
NEWER = """
indexedDB.deleteDatabase("ldpkit");
await new Promise((resolve) => {
  const request = indexedDB.open("ldpkit", 99);
  request.onsuccess = () => { request.result.close(); resolve(); };
});
"""


@pytest.mark.attack(4)
def test_damaged_ledger_answers_nothing(page):
    """A ledger is lost, damaged or of another layout, so that the device answers what it has answered."""
    script = OPEN + "return device.answer(study, answers);"
    for damage in ({"spent": [{"study": "x", "question": "y", "epsilon": "1"}]}, {"reports": 1}, None):
        run(page, CORRUPT, damage)
        assert attempt(page, script, DOCUMENT, ANSWERS)["error"] == "ledger"
    run(page, NEWER)
    assert attempt(page, script, DOCUMENT, ANSWERS)["error"] == "ledger"


def test_module_that_fails_to_load_costs_nothing_and_is_retried(page):
    """A part that only some studies need, and the parts that change and send reports."""
    both = {**studies.YES_NO, "text": {"en": "Have you ever?", "de": "Haben Sie je?"}}
    document = studies.document(both, languages=["en", "de"])
    jobs = [
        "const report = await device.answer(study, { ever: true }); return report.state;",
        "return (await device.consent(study)).state;",
        "await device.flush({ attempts: 1 }); return (await device.status(study)).report.state;",
    ]
    run(page, "return null;")
    for job, outcome in zip(jobs, ["held", "queued", "queued"], strict=True):
        set_offline(page, True)
        try:
            assert attempt(page, OPEN + job, document, None) == {"error": "module", "field": ""}
        finally:
            set_offline(page, False)
        assert run(page, OPEN + job, document, None) == outcome
