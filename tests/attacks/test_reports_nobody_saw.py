"""A device in JavaScript sends a report that its person did not see, or to another collector, or in clear."""

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
const stateOf = ({ version, state }) => `${version} ${state}`;
const states = () => ledger.read(({ reports }) => reports.map(stateOf).join());
"""


@pytest.fixture(scope="module")
def said():
    """What a script says, line by line."""
    npm.install()
    begin = BEGIN % (JAVASCRIPT, JAVASCRIPT, json.dumps([FIRST, SECOND]))

    def said(script):
        return npm.node("--input-type=module", "-e", begin + script).splitlines()

    return said


def test_consent_to_one_version_does_not_cover_other_version(said):
    """Another tab drew the report of the second version meanwhile."""
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


def test_held_report_of_earlier_version_can_be_sent(said):
    script = """
    const device = await at("http://127.0.0.1:9");
    await device.answer(first, { ever: true });
    console.log((await device.consent((await device.status(second)).report)).state);
    """
    assert said(script) == ["queued"]


ADDRESSES = {
    "https://collect.example.org": "https://collect.example.org",
    "HTTPS://Collect.Example.org:443//": "https://collect.example.org",
    "https://collect.example.org/a/": "https://collect.example.org/a",
    "https://[2001:db8::1]:8443/": "https://[2001:db8::1]:8443",
    "HTTP://LocalHost:80/": "http://localhost",
    "http://127.0.0.1:9": "http://127.0.0.1:9",
    "http://[::1]:9": "http://[::1]:9",
    "http://collect.example.org": "input collector must be an https URL",
    "http://10.0.0.7:8000": "input collector must be an https URL",
    "http://localhost.example.org": "input collector must be an https URL",
    "http://127.0.0.1.example.org": "input collector must be an https URL",
    "https://collect.example.org/?to=there": "input collector must be an https URL",
    "https://collect.example.org/#there": "input collector must be an https URL",
    "https://name:word@collect.example.org": "input collector must be an https URL",
    "http://localhost:9@collect.example.org": "input collector must be an https URL",
    "ftp://collect.example.org": "input collector must be an https URL",
    "data:,there": "input collector must be an https URL",
    "127.0.0.1:80": "input collector must be an https URL",
}


def test_plain_http_to_other_machine_is_refused(said):
    """As in Python: the withdrawal's secret and the invitation would be sent in clear too."""
    script = f"""
    for (const address of {json.dumps(list(ADDRESSES))}) {{
      const options = {{ maxEpsilon: "9", collector: address, ledger: memoryLedger() }};
      const answering = (device) => device.answer(first, {{ ever: true }});
      console.log(await openDevice(options).then(answering).then((made) => made.collector, refused));
    }}
    """
    assert dict(zip(ADDRESSES, said(script), strict=True)) == ADDRESSES


def test_device_cannot_change_reports_of_other_collector(said):
    """Both collectors have a study with the same id."""
    script = """
    const [one, other] = [await at("http://127.0.0.1:9/a/"), await at("http://127.0.0.1:8/a")];
    await one.answer(first, { ever: true }, "CODE");
    console.log(await other.withdraw("survey").catch(refused));
    console.log(await other.invite("survey", "OTHER").catch(refused));
    console.log(await other.consent(first), (await one.status(first)).report.invitation, await states());
    await one.consent(first);
    await ledger.write(({ reports }) => { reports[0].publisher = "a"; });
    await other.answer(second, { another: true });
    console.log(await other.withdraw("survey"), await states());
    console.log(await one.withdraw("survey"), await states());
    """
    refused = "input study was never answered"
    assert said(script) == [refused, refused, "undefined CODE 1 held", "0 1 queued", "1 1 withdrawn"]
