"""One stream of random bytes gives one report, on every platform."""

import json

import pytest

import ldp_client
from schemas import Study, StudyError
from tests.portable import vectors
from tests.portable.vectors import FILES, FOLDER, OUTCOMES, load, render

PLATFORMS = {"python": vectors.failures, "javascript": vectors.javascript}


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_matches_the_vectors_and_finds_changed_ones(platform, tmp_path):
    found = PLATFORMS[platform](FOLDER)
    assert found == {name: [] for name in found}
    assert set(FILES) - set(found) <= vectors.NOT_IN_JAVASCRIPT
    for name in FILES:
        document = load(name)
        entry = next(entries for key, entries in document.items() if isinstance(entries, list))[0]
        entry[next(field for field in OUTCOMES if field in entry)] = "wrong"
        (tmp_path / f"{name}.json").write_text(render(document), encoding="utf-8")
    changed = PLATFORMS[platform](tmp_path)
    assert {name: len(differences) for name, differences in changed.items()} == dict.fromkeys(found, 1)


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
