"""The conformance kit: ports pass, one of them by docs/payloads.md; faults are found; the page is true."""

import re
import sys
from io import BytesIO

import pytest

from conformance.run import judged
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.device import exchange, upload
from schemas import Study
from tests import studies
from tests.portable.platforms import REPOSITORY

PAGE = (REPOSITORY / "docs" / "payloads.md").read_text("utf-8")

PORT = REPOSITORY / "tests" / "portable" / "port_from_page.py"
MECHANISMS = {"randomized_response", "oue", "sue", "olh", "subset_selection", "hadamard", "id", "digest"}
FAULTS = {
    "draws again": ("truthful = random.word()", "truthful = (random.word() and 0) or random.word()"),
    "one too far": ("choices.index(answer), len", "(choices.index(answer) + 1) % len(choices), len"),
    "another digest": ("sort_keys=True", "sort_keys=False"),
    "another id": ("report-id/1", "report-id/2"),
    "no rejection": ("if word < WORD - WORD % limit:", "if True:"),
}


def names(cases):
    return {case.split()[0] for case in cases}


def test_the_laws_of_the_page_are_those_of_the_vectors():
    found = judged([sys.executable, str(PORT)])
    assert found["failed"] == []
    assert names(found["passed"]) == MECHANISMS
    assert not names(found["unsupported"]) & MECHANISMS


def test_the_page_says_what_devices_go_by():
    """Names and numbers of sending, in its words; and its example."""
    for name in (*upload.FINAL, *upload.STORED, *upload.WITHDRAWN, "invitation-needed", upload.IDENTITY):
        assert f"`{name}`" in PAGE, name
    for said in (
        f"once {upload.GRACE_DAYS} days have passed since the study's last day",
        f"{exchange.DEADLINE_SECONDS:g} seconds at most",
        f"up to {exchange.FIRST_DELAY_SECONDS:g} s · 2ⁱ, {exchange.LONGEST_DELAY_SECONDS:g} s at most",
        "5xx, " + ", ".join(map(str, upload.TEMPORARY)),
    ):
        assert said in " ".join(PAGE.split())
    threshold, drawn, payload = re.search(
        r"has T = (\d+)\. .*?`([0-9a-f ]+)` gives the payload `(\w+)`", PAGE, re.S
    ).groups()
    mechanism = mechanism_for(Study(studies.document(studies.YES_NO)).questions[0])
    assert mechanism.threshold == int(threshold)
    assert mechanism.randomise(
        mechanism.quantise("no"), NotForRealAnswers(BytesIO(bytes.fromhex(drawn)).read)
    ) == bytes.fromhex(payload)


def test_javascript_passes():
    found = judged(["node", str(REPOSITORY / "conformance" / "javascript.mjs")])
    assert (found["failed"], found["unsupported"]) == ([], [])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(tmp_path, fault):
    text, wrong = PORT.read_text(), FAULTS[fault]
    assert wrong[0] in text
    (tmp_path / "port.py").write_text(text.replace(*wrong))
    assert judged([sys.executable, str(tmp_path / "port.py")])["failed"]


def test_a_port_that_stops_is_found():
    with pytest.raises(SystemExit, match="after 0 of"):
        judged([sys.executable, "-c", ""])
