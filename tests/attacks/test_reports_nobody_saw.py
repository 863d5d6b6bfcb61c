"""A device in JavaScript lets a report go that its person did not see, to somebody else, or in clear."""

import json

import pytest

from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

FIRST = studies.document(studies.YES_NO)
SECOND = {**FIRST, "version": 2, "questions": [{**studies.YES_NO, "id": "another"}]}
BEGIN = """
const { openDevice, parseStudy } = await import("%s/index.js");
const { memoryLedger } = await import("%s/ledgers/memory.js");
const [first, second] = await Promise.all(%s.map((one) => parseStudy(JSON.stringify(one))));
const ledger = memoryLedger();
const at = (collector) => openDevice({ maxEpsilon: "9", collector, ledger });
const refused = ({ code, field, problem }) => `${code} ${field} ${problem}`;
const states = () => ledger.read(({ reports }) => reports.map(({ version, state }) => `${version} ${state}`).join());
"""


@pytest.fixture(scope="module")
def said():
    """What a script says, line by line."""
    npm.install()
    begin = BEGIN % (JAVASCRIPT, JAVASCRIPT, json.dumps([FIRST, SECOND]))

    def said(script):
        return npm.node("--input-type=module", "-e", begin + script).splitlines()

    return said


def test_who_agrees_to_one_version_agrees_to_no_other(said):
    """Another tab drew the second's report meanwhile."""
    script = """
    const [one, other] = [await at("http://127.0.0.1:9"), await at("http://127.0.0.1:9")];
    const shown = await one.answer(first, { ever: true });
    await other.answer(second, { another: true });
    console.log(await one.consent(first), await states());
    console.log(await one.consent(shown), await states());
    console.log((await other.consent(second)).version, await states());
    console.log((await other.consent(second)).state);
    """
    assert said(script) == ["undefined 2 held", "undefined 2 held", "2 2 queued", "queued"]


def test_the_report_of_an_earlier_version_is_the_persons_to_send(said):
    script = """
    const device = await at("http://127.0.0.1:9");
    await device.answer(first, { ever: true });
    console.log((await device.consent((await device.status(second)).report)).state);
    """
    assert said(script) == ["queued"]
