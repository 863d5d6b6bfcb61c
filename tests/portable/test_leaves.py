"""The participant's page shows the person's stratum while a report waits, which takes hours to reach."""

import json

from tests.portable import npm
from tests.portable.platforms import REPOSITORY

SAYS = """
const [leaves, words, report] = process.argv.slice(2);
globalThis.document = { documentElement: { lang: "en" }, getElementById: () => ({ textContent: words }) };
const { howItLeaves } = await import(leaves);
console.log(howItLeaves(JSON.parse(report)));
"""
# Of a moment that no clock has reached.
DUE_MS = 4e12
TOKENS = {
    "issuer": "https://issuer.example",
    "keys": [{"key": "a", "public": {"region": "north"}}, {"key": "b", "public": {"region": "south"}}],
}
CHANNEL = {"batches": {"hours": 1}, "tokens": TOKENS}


def test_waiting_report_shows_the_persons_stratum(tmp_path):
    script = tmp_path / "says.mjs"
    script.write_text(SAYS)
    leaves = REPOSITORY / "collector" / "assets" / "leaves.js"
    words = (REPOSITORY / "collector" / "words" / "en.json").read_text("utf-8")
    report = {"state": "queued", "channel": CHANNEL, "token": "T", "due": DUE_MS, "asked": {"place": 1}}
    sentence = npm.node(script, leaves.as_uri(), words, json.dumps(report))
    assert sentence.startswith("It leaves by itself")
    assert "issuer.example says that you are of region: south" in sentence
