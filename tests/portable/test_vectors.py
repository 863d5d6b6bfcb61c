"""One stream of random bytes gives one report, on every platform, and the page for ports says how."""

import json
import re
import sys
from io import BytesIO

import pytest

import ldp_client
from conformance.run import judged
from ldp_client import mechanism_for
from ldp_client.core.public_keys import PublicKey, is_signed_by_rsa
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.device import http, requests
from ldp_client.documents.catalogue import MECHANISMS
from schemas import Study, StudyError
from tests import studies
from tests.portable.npm import REPOSITORY
from tests.portable.vectors import FILES, FOLDER, OUTCOMES, differences, load


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_library_makes_the_vectors_and_finds_a_changed_one(name):
    """tests/js/vectors.test.mjs has JavaScript."""
    document = load(name)
    assert differences(document) == []
    entry = next(entries for entries in document.values() if isinstance(entries, list))[0]
    entry[next(field for field in OUTCOMES if field in entry)] = "wrong"
    assert len(differences(document)) == 1


def test_bad_studies_are_rejected_with_the_stated_field():
    refused = {entry["name"]: entry.get("refused") for entry in load("studies")["studies"]}
    refused |= {entry["name"]: entry.get("author_refused") for entry in load("authors")["authors"]}
    files = sorted((FOLDER.parent / "studies" / "bad").glob("*.json"))
    bad = {file.stem: json.loads(file.read_text()) for file in files}
    of_devices = {name: case for name, case in bad.items() if case["document"].get("respondent") != "holder"}
    assert len(of_devices) > 40
    assert {name: refused.get(name) for name in of_devices} == {
        name: case["field"] for name, case in of_devices.items()
    }


def test_devices_read_studies_that_only_authors_refuse():
    entries = load("authors")["authors"]
    assert len([entry for entry in entries if "author_refused" in entry]) > 20
    for entry in entries:
        device = ldp_client.Study.from_json(entry["text"])
        if "author_refused" in entry:
            with pytest.raises(StudyError) as caught:
                Study.from_json(entry["text"])
            assert caught.value.field == entry["author_refused"]
        else:
            assert Study.from_json(entry["text"]) == device


PAGE = (REPOSITORY / "docs" / "payloads.md").read_text("utf-8")


@pytest.mark.slow
def test_javascript_port_passes_the_kit():
    """tests/native has the port in C, with forty faults that the kit finds."""
    found = judged(["node", str(REPOSITORY / "conformance" / "javascript.mjs")])
    assert found["failed"] == []
    assert {case.split()[0] for case in found["unsupported"]} == {"summed_gaussian", "pieces"}


@pytest.mark.processes
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


def test_rsa_accepts_only_valid_signatures():
    """One of the 258 is "acceptable", an encoding without its NULL: it is rejected too."""
    count = 0
    text = (FOLDER.parent / "wycheproof" / "rsa_pkcs1_3072_sha256.json").read_text()
    for group in json.loads(text)["groups"]:
        key = PublicKey.from_pem(group["pem"])
        for number, message, signature, result in group["tests"]:
            count += 1
            taken = is_signed_by_rsa(bytes.fromhex(message), bytes.fromhex(signature), key.value)
            assert taken == (result == "valid"), number
    assert count == 258
