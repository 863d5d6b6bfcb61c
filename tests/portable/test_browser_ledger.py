"""The browser's ledger in IndexedDB: raced for by two tabs, killed, corrupt, of another layout."""

import pytest

from tests import studies
from tests.portable.browser_device import ANSWERS, DOCUMENT, OPEN
from tests.portable.chromium import attempt, run


def test_two_tabs_race_for_one_report(page, site):
    """Both tabs answer when the lock is released; for every ledger exactly one tab wins."""
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


@pytest.mark.slow
def test_killed_worker_stores_spend_and_report_or_neither(page):
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


def test_ledger_of_another_layout_is_not_changed(page):
    """To forget it would be to answer again."""
    other = """
    await new Promise((resolve) => {
      const request = indexedDB.open("ldpkit", args[0]);
      request.onsuccess = () => { request.result.close(); resolve(); };
    });
    const code = await openDevice({ maxEpsilon: "4" }).then(() => "opened", (error) => error.code);
    const found = (await indexedDB.databases()).find(({ name }) => name === "ldpkit").version;
    return [code, found];
    """
    assert run(page, other, 99) == ["ledger", 99]


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
