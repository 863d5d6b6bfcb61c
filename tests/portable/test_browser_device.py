"""The browser's device and its IndexedDB ledger, in headless Chromium."""

import base64
import json
import re
from collections import Counter

import pytest

from ldp_client import mechanism_for
from schemas import Report, Study
from tests import studies
from tests.portable import chromium
from tests.portable.chromium import attempt, run
from tests.portable.make_vectors import FOLDER
from tests.portable.platforms import JAVASCRIPT
from tests.portable.run_vectors import stream_of
from tests.statistics import share_is

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


def test_delta_is_a_budget_too(page):
    """A loose one lets nearly every answer through, however small epsilon is."""
    script = """
    const [documents, answers, options] = args;
    const outcomes = [];
    for (const document of documents) {
      const study = await parseStudy(JSON.stringify(document));
      const device = await openDevice({ maxEpsilon: "64", ...options });
      outcomes.push(await device.answer(study, answers).then(() => "written", (error) => error.code));
    }
    return outcomes;
    """

    def costing(name, *deltas, **fields):
        parts = [
            {**studies.LINEAR, "id": f"q{place}", "mechanism": {**studies.GAUSSIAN, "delta": delta}}
            for place, delta in enumerate(deltas)
        ]
        return studies.document(*parts, id=name, **fields)

    record = studies.ANSWERS["rating"]
    one = [costing(*pair) for pair in (("a", "0.5"), ("b", "6e-5"), ("c", "6e-5"), ("d", "4e-5"))]
    assert run(page, script, one, {"q0": record}) == ["budget", "written", "budget", "written"]
    two = {"q0": record, "q1": record}
    both = [
        costing("e", "6e-5", "5e-5"),
        costing("f", "6e-5", "5e-5", ask_one=True),
        costing("g", "6e-5", "0.5"),
    ]
    options = {"name": "other"}
    assert run(page, script, both, two, options) == ["budget", "written", "budget"]
    assert run(page, script, both[:1], two, {**options, "maxDelta": "0.01"}) == ["written"]


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


def test_a_report_goes_to_its_own_collector_only(page, site):
    """Another one would answer that it knows of no such report: it would be lost, or taken for deleted."""
    script = """
    const [document, answers, elsewhere] = args;
    const study = await parseStudy(JSON.stringify(document));
    const other = await openDevice({ maxEpsilon: "4", collector: elsewhere });
    const device = await openDevice({ maxEpsilon: "4" });
    await device.answer(study, answers);
    await device.consent(study);
    const states = [];
    const note = async () => states.push((await device.status(study)).report?.state ?? "gone");
    for (const one of [other, device]) { await one.flush(); await note(); }
    await device.withdraw(study.id);
    for (const one of [other, device]) { await one.flush(); await note(); }
    return states;
    """
    elsewhere = f"{site.url}/elsewhere"
    assert run(page, script, DOCUMENT, ANSWERS, elsewhere) == ["queued", "sent", "withdrawn", "gone"]
    assert [method for method, _, _ in site.requests] == ["PUT", "DELETE"]
    assert not any("elsewhere" in path for _, path, _ in site.requests)


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
    # The transaction and its reading; noise of the number, bits and coin of the choice, permanent answer and
    # its flips, and the id; and the writing of it all.
    assert outcomes == ["stopped"] * (2 + 6 + 1) + ["answered"]


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


@pytest.mark.parametrize("layout", [1, 99])
def test_a_ledger_of_another_layout_is_left_alone(page, layout):
    """Of an older one too: to forget it would be to answer again."""
    other = """
    await new Promise((resolve) => {
      const request = indexedDB.open("ldpkit", args[0]);
      request.onsuccess = () => { request.result.close(); resolve(); };
    });
    const code = await openDevice({ maxEpsilon: "4" }).then(() => "opened", (error) => error.code);
    const found = (await indexedDB.databases()).find(({ name }) => name === "ldpkit").version;
    return [code, found];
    """
    assert run(page, other, layout) == ["ledger", layout]


@pytest.mark.parametrize(
    "damage",
    [
        [{"spent": [{"study": "x", "question": "y", "epsilon": "1"}]}],
        [{"spent": "lost"}],
        [{"reports": 1}],
        [None],
    ],
)
def test_a_corrupt_ledger_answers_nothing(page, damage):
    corrupt = """
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
    run(page, corrupt, *damage)
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, DOCUMENT, ANSWERS)["error"] == "ledger"


ROUNDS = """
const [documents, answers] = args;
const outcomes = [];
for (const document of documents) {
  const study = await parseStudy(JSON.stringify(document));
  const device = await openDevice({ maxEpsilon: "4" });
  const answer = device.answer(study, answers);
  const outcome = await answer.then(({ body }) => JSON.parse(body), ({ code }) => code);
  outcomes.push([outcome, (await device.status(study)).answered, await device.epsilonLeft()]);
}
return outcomes;
"""


def rounds(*versions, question=studies.MEMOIZED_BITS):
    return [{**studies.document(question), "version": version} for version in versions]


def kept_answers(page):
    script = """
    await openDevice({ maxEpsilon: "4" });
    return new Promise((resolve) => {
      indexedDB.open("ldpkit").onsuccess = ({ target: { result: database } }) => {
        database.transaction("ledger").objectStore("ledger").get(0).onsuccess = ({ target: { result } }) => {
          database.close();
          resolve(result.permanent.map(({ question, answer }) => [question, [...answer]]));
        };
      };
    });
    """
    return run(page, script)


def test_a_memoized_answer_is_drawn_once_and_paid_once(page):
    """The permanent answer stays, whatever is answered later; each version has one report."""
    first, again, second = run(page, ROUNDS, rounds(1, 1, 2), {"brand": "worker"})
    assert again == ["answered", True, 2]
    assert [outcome[0]["version"] for outcome in (first, second)] == [1, 2]
    assert [outcome[1:] for outcome in (first, second)] == [[True, 2], [True, 2]]
    ((question, answer),) = kept_answers(page)
    assert (question, len(answer)) == ("brand", 1)
    ((_, older, _),) = run(page, ROUNDS, rounds(1), {"brand": "worker"})
    assert older
    run(page, ROUNDS, rounds(3, 4), {"brand": "student"})
    assert kept_answers(page) == [[question, answer]]


def test_a_memoized_report_follows_the_permanent_answer_and_not_the_true_one(page):
    """500 rounds whose true answer changes: one law, that of the permanent bits flipped again."""
    study = Study(studies.document(studies.MEMOIZED_BITS))
    mechanism = mechanism_for(study.questions[0])
    script = """
    const [document, versions] = args;
    const device = await openDevice({ maxEpsilon: "4" });
    const study = await parseStudy(JSON.stringify(document));
    const payloads = [];
    for (let version = 1; version <= versions; version++) {
      const brand = version % 2 ? "worker" : "teacher";
      const { body } = await device.answer({ ...study, version }, { brand });
      payloads.push(JSON.parse(body).payloads.brand);
    }
    return payloads;
    """
    count = 500
    payloads = [base64.b64decode(text)[0] for text in run(page, script, study.document, count)]
    ((_, (permanent,)),) = kept_answers(page)
    share = mechanism.again / 2**32
    for bit in range(3):
        flips = sum((payload ^ permanent) >> bit & 1 for payload in payloads)
        assert share_is(flips, count, share)
        assert not share_is(flips, count, share + 0.25)


@pytest.mark.parametrize(
    "change", [{"choices": ["a", "b", "worker"]}, {"mechanism": studies.CHOICE["mechanism"]}]
)
def test_another_question_of_the_same_name_is_not_answered_with_the_old_answer(page, change):
    changed = rounds(2, question={**studies.MEMOIZED_BITS, **change})
    *_, (refused, _, left) = run(page, ROUNDS, rounds(1) + changed, {"brand": "worker"})
    assert (refused, left) == ("answered", 2)


def test_what_was_answered_without_a_permanent_answer_is_not_asked_again_as_memoized(page):
    """Its noise would be drawn twice, and only the second time paid for."""
    once = {**studies.MEMOIZED_BITS, "mechanism": studies.CHOICE["mechanism"]}
    documents = [studies.document(once), *rounds(2)]
    *_, (refused, was_answered, left) = run(page, ROUNDS, documents, {"brand": "worker"})
    assert (refused, was_answered, left) == ("answered", True, 3)


def test_withdrawal_wipes_the_permanent_answer_for_good(page):
    (document,) = rounds(1)
    answered(page, document, {"brand": "worker"})
    assert withdraw(page, document) == 0
    assert kept_answers(page) == [["brand", []]]
    ((refused, was_answered, _),) = run(page, ROUNDS, rounds(2), {"brand": "worker"})
    assert (refused, was_answered) == ("answered", True)


def test_two_versions_race_for_one_permanent_answer(page):
    script = """
    const [documents, answers] = args;
    const studies = await Promise.all(documents.map((document) => parseStudy(JSON.stringify(document))));
    for (let round = 0; round < 10; round++) {
      const name = `two-${round}`;
      const devices = await Promise.all(studies.map(() => openDevice({ maxEpsilon: "4", name })));
      await Promise.all(studies.map((study, index) => devices[index].answer(study, answers)));
    }
    return Promise.all(Array.from({ length: 10 }, async (_, round) => {
      const device = await openDevice({ maxEpsilon: "4", name: `two-${round}` });
      return device.epsilonLeft();
    }));
    """
    assert run(page, script, rounds(1, 2), {"brand": "worker"}) == [2] * 10


ONE = studies.document(studies.NUMBER, studies.CHOICE, studies.LINEAR, ask_one=True)
ONE_ANSWERS = {**ANSWERS, "rating": studies.ANSWERS["rating"]}
ASK_ONE = """
const [document, answers, count] = args;
const study = await parseStudy(JSON.stringify(document));
const found = [];
for (let number = 0; number < count; number++) {
  const device = await openDevice({ maxEpsilon: "4", name: `one-${number}` });
  const { body } = await device.answer(study, answers);
  found.push([Object.keys(JSON.parse(body).payloads).join(), body.length, await device.epsilonLeft()]);
}
return found;
"""


def test_one_question_is_drawn_evenly_in_reports_of_one_size(page):
    count = 300
    found = run(page, ASK_ONE, ONE, ONE_ANSWERS, count)
    drawn = Counter(name for name, _, _ in found)
    assert set(drawn) == {"hours", "occupation", "rating"}
    assert all(share_is(times, count, 1 / 3) for times in drawn.values())
    assert not share_is(drawn["hours"], count, 0.6)
    assert len({size for _, size, _ in found}) == 1
    assert {left for *_, left in found} == {3}


def test_of_a_study_that_asks_one_question_all_count_as_asked(page):
    answered(page, ONE, ONE_ANSWERS)
    for question in (studies.NUMBER, studies.CHOICE, studies.LINEAR):
        script = OPEN + "return device.answer(study, answers);"
        document = {**studies.document(question), "version": 2}
        assert (
            attempt(page, script, document, {question["id"]: ONE_ANSWERS[question["id"]]})["error"]
            == "answered"
        )


def test_an_invitation_goes_beside_the_report_and_is_forgotten(page, site):
    script = OPEN + "return device.answer(study, answers, 'first');"
    report = run(page, script, DOCUMENT, ANSWERS)
    assert report["invitation"] == "first"
    assert "first" not in report["body"]
    consent(page)
    site.statuses = [403]
    assert flush(page, attempts=5)["state"] == "uninvited"
    assert len(site.requests) == 1
    run(page, OPEN + "return device.invite(study.id, 'second');", DOCUMENT, None)
    assert flush(page) == {**report, "state": "sent", "invitation": ""}
    assert site.invitations == ["first", "second"]
    assert site.bodies() == [report["body"]] * 2


def test_without_an_invitation_none_is_sent(page, site):
    answered(page)
    consent(page)
    flush(page)
    assert site.invitations == [None]


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
    script = "return openDevice({ maxEpsilon: '1', maxDelta: args[0] });"
    assert attempt(page, script, budget) == {"error": "input", "field": "maxDelta"}
