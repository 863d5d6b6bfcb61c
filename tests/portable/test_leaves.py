"""The participant's page states when a report is sent, in states that take hours to reach."""

import json

import pytest

from tests.portable import npm
from tests.portable.platforms import REPOSITORY

SAYS = """
const [leaves, words, report, apart] = process.argv.slice(2);
globalThis.document = { documentElement: { lang: "en" }, getElementById: () => ({ textContent: words }) };
const { howItLeaves } = await import(leaves);
console.log(howItLeaves(JSON.parse(report), Number(apart)));
"""
# Of a moment that no clock has reached.
DUE_MS = 4e12
HOUR_MS = 36e5
TOKENS = {
    "issuer": "https://issuer.example",
    "keys": [{"key": "a", "public": {"region": "north"}}, {"key": "b", "public": {"region": "south"}}],
}
CHANNEL = {"batches": {"hours": 1}, "tokens": TOKENS, "oblivious": {"relay": "https://relay.example/ldpkit"}}


@pytest.fixture
def said(tmp_path):
    """Return the sentence about a report that waits with its token."""
    script = tmp_path / "says.mjs"
    script.write_text(SAYS)
    leaves = REPOSITORY / "collector" / "assets" / "leaves.js"

    def said(apart, **more):
        report = {"state": "queued", "channel": CHANNEL, "token": "T", "due": DUE_MS, **more}
        words = (REPOSITORY / "collector" / "words" / "en.json").read_text("utf-8")
        return npm.node(script, leaves.as_uri(), words, json.dumps(report), str(apart))

    return said


@pytest.mark.parametrize(
    ("apart", "begins"),
    [(DUE_MS + HOUR_MS, "Nothing leaves through relay.example before"), (0, "It leaves by itself")],
)
def test_waiting_report_shows_the_persons_stratum(said, apart, begins):
    sentence = said(apart, asked={"place": 1})
    assert sentence.startswith(begins)
    assert "issuer.example says that you are of region: south" in sentence
