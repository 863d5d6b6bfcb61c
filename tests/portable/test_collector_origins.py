"""In JavaScript a study is its id and the collector's origin; an app bounds what one collector learns."""

import json

from tests import studies
from tests.portable import npm
from tests.portable.make_vectors import FOLDER
from tests.portable.platforms import JAVASCRIPT

READ = """
const { originOf, safeBaseOf } = await import("%s/address.js");
function read(url) {
  try {
    return [originOf(url), new URL(url).origin, originOf(safeBaseOf(url))];
  } catch ({ code }) {
    return code;
  }
}
console.log(JSON.stringify(%s.map(({ url }) => read(url))));
"""


def run(script, *values):
    text = script % (JAVASCRIPT, *map(json.dumps, values))
    return json.loads(npm.node("--input-type=module", "-e", text))


def test_origins_match_the_vectors_and_the_url_standard():
    entries = json.loads((FOLDER / "origins.json").read_text(encoding="utf-8"))["origins"]
    assert len(entries) > 10
    for entry, found in zip(entries, run(READ, entries), strict=True):
        assert found == ([entry["origin"]] * 3 if entry["origin"] else "input"), entry


# Runs each step, {"at": origin, "ask": a study's place, …options}, on one ledger.
STEPS = """
const library = "%s";
const { openDevice, parseStudy } = await import(`${library}/index.js`);
const ledger = (await import(`${library}/ledgers/memory.js`)).memoryLedger();
const studies = await Promise.all(%s.map((document) => parseStudy(JSON.stringify(document))));
const found = [];
for (const { at: collector, ask, answers, withdraw, ...options } of %s) {
  try {
    const device = await openDevice({ maxEpsilon: "10", collector, ledger, ...options });
    if (ask === undefined) found.push(await device.withdraw(withdraw));
    else await device.answer(studies[ask], answers).then(() => found.push("done"));
  } catch ({ code, field, problem }) {
    found.push(`${code} ${field} ${problem}`);
  }
}
const device = await openDevice({ maxEpsilon: "10", collector: "https://other.example", ledger });
const told = (await device.told()).studies.map(({ study, origin, epsilon }) => [study, origin, epsilon]);
console.log(JSON.stringify([found, told, await device.epsilonLeft()]));
"""
A, B = "https://a.example", "https://b.example"
EVER = {"ever": "yes"}
ONCE = studies.document(studies.YES_NO)
ANSWERED = "answered ever was answered before"


def test_same_question_at_another_origin_is_another_question():
    steps = [{"at": at, "ask": 0, "answers": EVER} for at in (f"{A}/one", f"{A}/two", B)]
    found, told, left = run(STEPS, [ONCE], steps)
    assert found == ["done", ANSWERED, "done"]
    assert told == [["survey", A, 1], ["survey", B, 1]]
    assert left == 8


def test_permanent_answer_belongs_to_one_origin():
    rounds = [{**studies.document(studies.MEMOIZED), "version": version} for version in (1, 2, 3)]
    answers = {studies.MEMOIZED["id"]: "yes"}
    steps = [{"at": at, "ask": ask, "answers": answers} for at, ask in ((A, 0), (B, 0), (A, 1))]
    steps += [{"at": B, "withdraw": "survey"}, *[{"at": at, "ask": 2, "answers": answers} for at in (A, B)]]
    found, told, _ = run(STEPS, rounds, steps)
    assert found == ["done", "done", "done", 0, "done", f"answered {studies.MEMOIZED['id']} was withdrawn"]
    (_, _, first), (_, _, second) = told
    assert first == second > 0


def test_app_that_names_the_former_origin_asks_nothing_again():
    """Nor does a later app that does not name the former origin any more."""
    moved = {"at": B, "answers": EVER, "formerly": [f"{A}/old/"]}
    steps = [{"at": A, "ask": 0, "answers": EVER}, {**moved, "ask": 0}, {"at": B, "ask": 0, "answers": EVER}]
    found, _, _ = run(STEPS, [ONCE], steps)
    assert found == ["done", ANSWERED, ANSWERED]


def test_memoized_question_goes_on_at_the_new_origin():
    """The permanent answer moves, is paid once, and lower versions stay refused."""
    rounds = [{**studies.document(studies.MEMOIZED), "version": version} for version in (1, 2, 3)]
    answers = {studies.MEMOIZED["id"]: "yes"}
    moved = {"at": B, "formerly": [A], "answers": answers}
    steps = [{"at": A, "ask": 0, "answers": answers}, {**moved, "ask": 2}, {**moved, "ask": 1}]
    found, told, left = run(STEPS, rounds, steps)
    assert found == ["done", "done", f"answered {studies.MEMOIZED['id']} is not newer"]
    assert [origin for _, origin, _ in told] == [B]
    assert 10 - left == told[0][2] > 0


def test_former_origin_that_is_no_https_url_is_rejected():
    steps = [
        {"at": B, "ask": 0, "answers": EVER, "formerly": [A, url]} for url in ("http://a.example", "", "a")
    ]
    found, told, _ = run(STEPS, [ONCE], steps)
    assert found == ["input formerly must be an https URL"] * 3
    assert told == []


def test_budget_of_one_collector_counts_all_its_studies_and_former_origins():
    documents = [{**ONCE, "id": name} for name in ("one", "two", "three")]
    options = {"answers": EVER, "maxEpsilonPerCollector": "1.5"}
    steps = [
        {"at": A, "ask": 0},
        {"at": f"{A}/two", "ask": 1},
        {"at": B, "ask": 1, "formerly": [A]},
    ]
    steps.append({"at": B, "ask": 2, "maxEpsilonPerCollector": "2"})
    found, _, left = run(STEPS, documents, [{**options, **step} for step in steps])
    over = "budget  costs epsilon 1, left for this collector is 0.5"
    assert found == ["done", over, over, "done"]
    assert left == 8


def test_budget_of_one_collector_is_a_decimal_above_zero():
    steps = [
        {"at": A, "ask": 0, "answers": EVER, "maxEpsilonPerCollector": limit}
        for limit in ("0", "-1", "many", None)
    ]
    found, _, _ = run(STEPS, [ONCE], steps)
    assert found == ["input maxEpsilonPerCollector must be above 0"] * 4


SENT = """
const library = "%s";
const { openDevice, parseStudy } = await import(`${library}/index.js`);
const ledger = (await import(`${library}/ledgers/memory.js`)).memoryLedger();
const study = await parseStudy(JSON.stringify(%s));
const asked = [];
globalThis.fetch = async (url) => {
  asked.push(String(url));
  return new Response(study.canonical, { headers: { "LDPKit-Collector": "c" } });
};
const at = (collector, ...formerly) => openDevice({ maxEpsilon: "4", collector, formerly, ledger });
const device = await at("https://a.example/old");
await device.answer(study, { ever: true });
await device.consent(study);
const [a, b] = ["https://a.example", "https://b.example"];
for (const places of [[b], [a], [b, a]]) {
  asked.push("");
  await (await at(...places)).flush({ attempts: 1 });
}
console.log(JSON.stringify(asked.map((url) => url.split("/v1/")[0])));
"""


def test_waiting_report_is_sent_to_its_own_path_or_where_the_collector_moved():
    """A collector of another origin gets no request."""
    asked = run(SENT, ONCE)
    assert asked == ["", "", "https://a.example/old", "https://a.example/old", "", B]
