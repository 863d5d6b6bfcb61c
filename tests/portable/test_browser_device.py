"""The browser's device and its IndexedDB ledger, in headless Chromium."""

import json
import re

import pytest

from schemas import Report, Study
from tests import studies
from tests.portable import chromium
from tests.portable.chromium import attempt, run
from tests.portable.make_vectors import FOLDER
from tests.portable.platforms import JAVASCRIPT
from tests.portable.run_vectors import stream_of

DOCUMENT = studies.document(studies.NUMBER, studies.CHOICE)
ANSWERS = {"hours": 3.5, "occupation": "worker"}
OPEN = """
const [document, answers] = args;
const study = await parseStudy(JSON.stringify(document));
const device = await openDevice({ maxEpsilon: "4" });
"""


def answered(page, document=DOCUMENT, answers=ANSWERS):
    return run(page, OPEN + "return device.answer(study, answers);", document, answers)


def status(page, document=DOCUMENT):
    return run(page, OPEN + "return device.status(study);", document, None)


def consent(page, document=DOCUMENT):
    return run(page, OPEN + "return device.consent(study);", document, None)


def flush(page, attempts=1, document=DOCUMENT):
    run(page, OPEN + f"return device.flush({{ attempts: {attempts} }});", document, None)
    return status(page, document)["report"]


def withdraw(page, document=DOCUMENT):
    return run(page, OPEN + "return device.withdraw(study.id);", document, None)


def path_of(report):
    return f"/v1/studies/survey/reports/{report['id']}"


def test_a_report_is_written_before_it_may_leave(page, site):
    report = answered(page)
    assert report["state"] == "held"
    parsed = Report.from_json(report["body"])
    assert (parsed.id, parsed.digest) == (report["id"], Study(DOCUMENT).digest)
    assert flush(page) == report
    assert site.requests == []


def test_a_reload_finds_the_same_report(page):
    report = answered(page)
    page.refresh()
    assert status(page) == {"answered": True, "report": report}


def test_the_device_reads_the_vectors_streams(page):
    vectors = json.loads((FOLDER / "reports.json").read_text(encoding="utf-8"))
    for number, entry in enumerate(vectors["reports"]):
        script = """
        const [document, answers, bytes, name] = args;
        const random = (size) => Uint8Array.from(bytes.splice(0, size));
        const study = await parseStudy(JSON.stringify({ ...document, opens: undefined, closes: undefined }));
        const dated = { ...study, digest: (await parseStudy(JSON.stringify(document))).digest };
        const device = await openDevice({ maxEpsilon: "64", name, random });
        return (await device.answer(dated, answers)).body;
        """
        stream = list(stream_of(entry).read(entry["bytes"]))
        found = run(page, script, entry["study"], entry["answers"], stream, f"vector-{number}")
        # Where one question is asked, spaces hide which.
        assert found.rstrip(" ") == entry["report"]


def test_a_question_is_answered_once(page):
    report = answered(page)
    again = attempt(page, OPEN + "return device.answer(study, answers);", DOCUMENT, ANSWERS)
    assert again == {"error": "answered", "field": "hours"}
    later = {**studies.document(studies.CHOICE), "version": 2}
    script = OPEN + "return device.answer(study, { occupation: 'student' });"
    assert attempt(page, script, later, None) == {"error": "answered", "field": "occupation"}
    assert status(page)["report"] == report


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ({"hours": 3}, "occupation"),
        ({**ANSWERS, "more": 1}, "more"),
        ({**ANSWERS, "occupation": "queen"}, "occupation"),
        ({**ANSWERS, "hours": "3"}, "hours"),
    ],
)
def test_a_wrong_answer_spends_nothing(page, answers, field):
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, DOCUMENT, answers) == {"error": "answer", "field": field}
    assert status(page) == {"answered": False, "report": None}


def test_the_budget_is_exact_and_spans_studies(page):
    """0.1 + 0.2 is all of 0.3, which floats would call too much."""
    script = """
    const device = await openDevice({ maxEpsilon: "0.3" });
    const outcomes = [];
    for (const document of args[0]) {
      const study = await parseStudy(JSON.stringify(document));
      const outcome = device.answer(study, { hours: 3 });
      outcomes.push(await outcome.then(() => "written", (error) => error.code));
      outcomes.push((await device.status(study)).answered);
    }
    return [...outcomes, await device.epsilonLeft()];
    """
    costs = {"a": "0.1", "b": "0.2", "c": "0.000001"}
    documents = [
        studies.document(studies.with_epsilon(studies.NUMBER, cost), id=name) for name, cost in costs.items()
    ]
    assert run(page, script, documents) == ["written", True, "written", True, "budget", False, 0]


@pytest.mark.parametrize("days", [{"opens": "2999-01-01"}, {"closes": "2020-01-01"}])
def test_outside_its_days_a_study_is_not_answered(page, days):
    document = {**DOCUMENT, **days}
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, document, ANSWERS)["error"] == "closed"
    assert not status(page, document)["answered"]


def test_offline_then_online_sends_the_same_bytes(page, site):
    report = answered(page)
    consent(page)
    chromium.set_offline(page, True)
    try:
        assert flush(page)["state"] == "queued"
        assert site.requests == []
    finally:
        chromium.set_offline(page, False)
    assert flush(page) == {**report, "state": "sent"}
    assert site.requests == [("PUT", path_of(report), report["body"])]
    assert flush(page)["state"] == "sent"
    assert len(site.requests) == 1


def test_retries_send_the_same_bytes_with_full_jitter(page, site):
    report = answered(page)
    consent(page)
    site.statuses = [503, 429, 500, 425]
    script = """
    const pauses = [];
    const timeout = window.setTimeout;
    window.setTimeout = (work, delay) => { pauses.push(delay); return timeout(work, 0); };
    Math.random = () => 0.5;
    await device.flush({ attempts: 5 });
    window.setTimeout = timeout;
    return pauses;
    """
    assert run(page, OPEN + script, DOCUMENT, None) == [500, 1000, 2000, 4000]
    assert status(page)["report"]["state"] == "sent"
    assert site.bodies() == [report["body"]] * 5


def test_a_report_refused_for_good_is_not_sent_again(page, site):
    answered(page)
    consent(page)
    site.statuses = [422]
    assert flush(page, attempts=5)["state"] == "refused"
    assert flush(page)["state"] == "refused"
    assert len(site.requests) == 1


def test_withdrawal_before_consent_leaves_nothing_but_the_spend(page, site):
    answered(page)
    assert withdraw(page) == 0
    assert status(page) == {"answered": True, "report": None}
    assert flush(page) is None
    assert site.requests == []
    again = attempt(page, OPEN + "return device.answer(study, answers);", DOCUMENT, ANSWERS)
    assert again["error"] == "answered"


@pytest.mark.parametrize("acknowledgement", [204, 404])
def test_withdrawal_asks_for_deletion_until_it_is_acknowledged(page, site, acknowledgement):
    report = answered(page)
    consent(page)
    flush(page)
    assert withdraw(page) == 1
    assert status(page)["report"] == {**report, "state": "withdrawn", "body": ""}
    site.statuses = [405, 503, acknowledgement]
    assert flush(page)["state"] == flush(page)["state"] == "withdrawn"
    assert flush(page) is None
    assert [(method, path) for method, path, _ in site.requests[1:]] == [("DELETE", path_of(report))] * 3
    assert status(page) == {"answered": True, "report": None}


def test_two_tabs_race_for_one_report(page, site):
    """Both tabs answer when the lock they wait for is let go; for every ledger one of them wins."""
    rounds = 20
    waiting = """
    window.outcomes = (async () => {
      const { openDevice, parseStudy } = await import("/js/index.js");
      const study = await parseStudy(JSON.stringify(arguments[0]));
      const devices = [];
      for (let round = 0; round < arguments[1]; round++) {
        devices.push(await openDevice({ maxEpsilon: "4", name: `race-${round}` }));
      }
      window.ready = true;
      return navigator.locks.request("start", { mode: "shared" }, () =>
        Promise.all(devices.map((device) => device.answer(study, { hours: 3, occupation: "worker" }).then(
          ({ body }) => body,
          ({ code }) => code,
        ))));
    })();
    """
    hold = "navigator.locks.request('start', () => new Promise((go) => { window.go = go; done({}) }));"
    assert "error" not in attempt(page, hold + "return new Promise(() => {});")
    first = page.current_window_handle
    tabs = [first]
    for _ in range(2):
        page.switch_to.new_window("tab")
        page.get(f"{site.url}/pages/blank.html")
        page.execute_script(waiting, DOCUMENT, rounds)
        tabs.append(page.current_window_handle)
    found = []
    try:
        for tab in tabs[1:]:
            page.switch_to.window(tab)
            run(page, "while (!window.ready) await new Promise((resolve) => setTimeout(resolve, 5));")
        page.switch_to.window(first)
        page.execute_script("window.go()")
        for tab in tabs[1:]:
            page.switch_to.window(tab)
            found.append(run(page, "return window.outcomes;"))
    finally:
        for tab in tabs[1:]:
            page.switch_to.window(tab)
            page.close()
        page.switch_to.window(first)
    for number, outcomes in enumerate(zip(*found)):
        assert sorted(outcome == "answered" for outcome in outcomes) == [False, True]
        script = f"""
        const study = await parseStudy(JSON.stringify(args[0]));
        const device = await openDevice({{ maxEpsilon: "4", name: "race-{number}" }});
        return (await device.status(study)).report.body;
        """
        assert run(page, script, DOCUMENT) in outcomes


def test_killed_at_any_step_it_has_spend_and_report_or_neither(page):
    """A worker is terminated at each of its steps: random bytes, transaction, reads and writes."""
    script = """
    const [document, answers, steps, name] = args;
    const worker = new Worker("/pages/killed.js", { type: "module" });
    worker.postMessage({ text: JSON.stringify(document), answers, steps, name });
    const outcome = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
    });
    worker.terminate();
    const study = await parseStudy(JSON.stringify(document));
    const device = await openDevice({ maxEpsilon: "64", name });
    const { answered, report } = await device.status(study);
    const again = await device.answer(study, answers).then(() => "written", ({ code }) => code);
    const after = await device.status(study);
    return { outcome, answered, same: report?.body === after.report.body, again, reported: Boolean(report) };
    """
    outcomes = []
    document = studies.document(studies.NUMBER, studies.CHOICE, studies.MEMOIZED_BITS)
    answers = {**ANSWERS, "brand": "worker"}
    for steps in range(1, 30):
        found = run(page, script, document, answers, steps, f"killed-{steps}")
        outcomes.append(found["outcome"])
        assert found["answered"] == found["reported"] == found["same"]
        assert found["again"] == ("answered" if found["answered"] else "written")
        if found["outcome"] == "answered":
            assert found["answered"]
            break
    # One transaction and three reads; noise of the number, bits and coin of the choice, permanent answer and
    # its flips, and the id; three spends, the permanent answer and the report.
    assert outcomes == ["stopped"] * (1 + 3 + 6 + 5) + ["answered"]


def test_reloads_mid_way_never_give_a_second_report(page):
    """The page is reloaded while it answers, over and over; a report that was once there stays."""
    start = """
    import("/js/index.js").then(async ({ openDevice, parseStudy }) => {
      const study = await parseStudy(JSON.stringify(arguments[0]));
      const device = await openDevice({ maxEpsilon: "4", name: arguments[2] });
      await device.answer(study, arguments[1]);
    });
    """
    look = """
    const study = await parseStudy(JSON.stringify(args[0]));
    return (await openDevice({ maxEpsilon: "4", name: args[1] })).status(study);
    """
    for number in range(5):
        name = f"reloaded-{number}"
        seen = []
        for _ in range(3):
            page.execute_script(start, DOCUMENT, ANSWERS, name)
            page.refresh()
            found = run(page, look, DOCUMENT, name)
            assert found["answered"] == bool(found["report"])
            seen += [found["report"]["body"]] if found["report"] else []
        assert len(set(seen)) <= 1


def test_a_ledger_of_a_later_layout_is_left_alone(page):
    later = """
    await new Promise((resolve) => {
      const request = indexedDB.open("ldpkit", 99);
      request.onsuccess = () => { request.result.close(); resolve(); };
    });
    return openDevice({ maxEpsilon: "4" });
    """
    assert attempt(page, later)["error"] == "ledger"


def test_a_corrupt_ledger_answers_nothing(page):
    corrupt = """
    await openDevice({ maxEpsilon: "4" });
    const database = await new Promise((resolve) => {
      const request = indexedDB.open("ldpkit");
      request.onsuccess = () => resolve(request.result);
    });
    const transaction = database.transaction("spent", "readwrite");
    transaction.objectStore("spent").add({ study: "x", question: "y", epsilon: "1" });
    await new Promise((resolve) => { transaction.oncomplete = resolve; });
    """
    run(page, corrupt)
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, DOCUMENT, ANSWERS)["error"] == "ledger"
    assert status(page) == {"answered": False, "report": None}


def test_its_types_name_what_a_device_can_do(page):
    interface = (
        (JAVASCRIPT / "index.d.ts").read_text().partition("export interface Device {")[2].partition("\n}")[0]
    )
    typed = re.findall(r"^  (\w+)\(", interface, re.M)
    assert sorted(typed) == run(page, "return Object.keys(await openDevice({ maxEpsilon: '1' })).sort();")


@pytest.mark.parametrize("budget", ["0", "-1", "four", "1e99"])
def test_a_bad_budget_is_refused(page, budget):
    script = "return openDevice({ maxEpsilon: args[0] });"
    assert attempt(page, script, budget) == {"error": "input", "field": "maxEpsilon"}
