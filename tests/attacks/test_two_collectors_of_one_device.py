"""By the same study id, have another collector's answers dropped, hidden, told as one's own, or repeated.

Defence: The device: what is held, shown, told, withdrawn and called newer goes by study and the collector's
origin, and each origin's answers are paid for.
"""

import json

from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

SMOKES = {**studies.YES_NO, "id": "smokes", "text": "Do you smoke?"}
DRINKS = {**studies.YES_NO, "id": "drinks", "text": "Do you drink?"}
SCRIPT = """
const from = (name) => import("%s/" + name);
const { openDevice, parseStudy } = await from("index.js");
const ledger = (await from("ledgers/memory.js")).memoryLedger();
const [mine, other, round, next] = await Promise.all(%s.map((one) => parseStudy(JSON.stringify(one))));
const at = (collector) => openDevice({ maxEpsilon: "9", collector, ledger });
const [a, b] = [await at("https://a.example"), await at("https://b.example/")];
const { id } = await a.answer(mine, { smokes: true });
await b.answer(other, { drinks: true });
const shown = async (device, study) => (await device.status(study)).report?.id === id;
const found = { shown: await shown(a, mine), its: !(await shown(b, other)) };
found.agreed = (await a.consent(mine))?.state;
const { studies } = await b.told();
found.told = studies.map(({ origin, questions, states }) => [origin, questions, states]);
found.withdrawn = [await a.withdraw(mine.id), (await b.status(other)).report?.state];
await a.answer(round, { habit: true });
found.isAnswered = (await b.status(next)).answered;
await b.answer(next, { habit: true });
await b.withdraw(next.id);
found.kept = (await ledger.read(({ permanent }) => permanent.map(({ answer }) => answer.length > 0)));
found.whose = (await b.told()).studies.map(({ origin, questions }) => [origin, questions.length]);
console.log(JSON.stringify(found));
"""


def test_javascript_keeps_answers_by_collector():
    documents = [
        studies.document(SMOKES, id="habits"),
        studies.document(DRINKS, id="habits", version=2),
        studies.document(studies.MEMOIZED, id="habits", version=3),
        studies.document(studies.MEMOIZED, id="habits", version=4),
    ]
    script = SCRIPT % (JAVASCRIPT, json.dumps(documents))
    found = json.loads(npm.node("--input-type=module", "-e", script))
    assert found == {
        "shown": True,
        "its": True,
        "agreed": "queued",
        "told": [
            ["https://a.example", ["Do you smoke?"], ["queued"]],
            ["https://b.example", ["Do you drink?"], ["held"]],
        ],
        "withdrawn": [0, "held"],
        "isAnswered": False,
        "kept": [True, False],
        "whose": [["https://a.example", 2], ["https://b.example", 2]],
    }


OLDER = """
const from = (name) => import("%s/" + name);
const { openDevice, parseStudy } = await from("index.js");
const ledger = (await from("ledgers/memory.js")).memoryLedger();
const [theirs, mine, changed] = await Promise.all(%s.map((one) => parseStudy(JSON.stringify(one))));
const at = (collector) => openDevice({ maxEpsilon: "4", collector, ledger });
const [a, b] = [await at("https://a.example"), await at("https://b.example")];
const answered = (device, study, answers) =>
  device.answer(study, answers).then(() => "yes", ({ message }) => message);
console.log(JSON.stringify([
  await answered(a, theirs, { smokes: true }),
  (await b.status(mine)).answered,
  await answered(b, mine, { drinks: true }),
  await answered(b, changed, { eats: true }),
  await answered(a, changed, { eats: true }),
]));
"""


def test_javascript_counts_versions_by_collector():
    """Each collector has its own version count, as in Python; its own older versions stay refused."""
    documents = [
        studies.document(SMOKES, id="habits", version=2),
        studies.document(DRINKS, id="habits"),
        studies.document({**studies.YES_NO, "id": "eats", "text": "Do you eat?"}, id="habits"),
    ]
    found = json.loads(npm.node("--input-type=module", "-e", OLDER % (JAVASCRIPT, json.dumps(documents))))
    refused = "answered: eats: is not newer"
    assert found == ["yes", False, "yes", refused, refused]
