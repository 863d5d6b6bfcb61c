"""The conformance kit: the port in JavaScript passes, and the page for ports states what devices do."""

import re
import sys
from io import BytesIO

import pytest

from conformance.run import judged
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.device import http, requests
from ldp_client.documents.catalogue import MECHANISMS
from schemas import Study
from tests import studies
from tests.portable.platforms import REPOSITORY

PAGE = (REPOSITORY / "docs" / "payloads.md").read_text("utf-8")


@pytest.mark.slow
def test_javascript_port_passes_the_kit():
    """tests/native has the port in C, with forty faults that the kit finds."""
    found = judged(["node", str(REPOSITORY / "conformance" / "javascript.mjs")])
    assert found["failed"] == []
    assert {case.split()[0] for case in found["unsupported"]} == {"summed_gaussian", "pieces"}


def test_port_that_stops_is_detected():
    with pytest.raises(SystemExit, match="after 0 of"):
        judged([sys.executable, "-c", ""])


def test_page_covers_every_name_a_study_may_use():
    named = set(re.findall(r"`(\w+)`", PAGE))
    of_people = {name for name in MECHANISMS if not name.startswith("table_")}
    assert of_people - named == set()
    assert not re.search(r"ldp_client/\S+\.py", PAGE)


def test_page_states_the_sending_rules_of_devices():
    """Problem types, numbers for sending and the worked example."""
    for name in (*requests.FINAL, *requests.STORED, *requests.WITHDRAWN, "ticket-needed"):
        assert f"`{name}`" in PAGE, name
    for said in (
        f"once {requests.GRACE_DAYS} days have passed since the study's last day",
        f"{http.DEADLINE_SECONDS:g} seconds at most",
        f"up to {http.FIRST_DELAY_SECONDS:g} s · 2ⁱ, {http.LONGEST_DELAY_SECONDS:g} s at most",
        "5xx, " + ", ".join(map(str, requests.TEMPORARY)),
    ):
        assert said in " ".join(PAGE.split())
    threshold, drawn, payload = re.search(
        r"has T = (\d+)\. .*?`([0-9a-f ]+)` gives the payload `(\w+)`", PAGE, re.S
    ).groups()
    mechanism = mechanism_for(Study(studies.document(studies.YES_NO)).questions[0])
    assert mechanism.threshold == int(threshold)
    source = NotForRealAnswers(BytesIO(bytes.fromhex(drawn)).read)
    assert mechanism.randomise(mechanism.quantise("no"), source) == bytes.fromhex(payload)
