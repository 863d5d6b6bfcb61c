"""One stream of random bytes gives one report, on every platform."""

import json

import pytest

import ldp_client
from schemas import Study, StudyError
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
