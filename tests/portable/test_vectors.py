"""One stream of random bytes gives one report, on every platform."""

import json

import pytest

import ldp_client
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study, StudyError
from tests import studies
from tests.portable import make_vectors
from tests.portable.platforms import javascript
from tests.portable.run_vectors import MECHANISMS, failures
from tests.portable.stream import Stream

# Written by hand; the tests of addresses read it.
BY_HAND = {"origins"}
FILES = {path.stem for path in make_vectors.FOLDER.iterdir()} - BY_HAND
# Shares are sealed with what browsers do not offer: JavaScript refuses `protocol` by name.
NOT_IN_JAVASCRIPT = {"summed_gaussian"}
PLATFORMS = {
    "python": lambda folder: failures(str(folder)),
    "javascript": javascript,
}


def vectors(name):
    return json.loads((make_vectors.FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_vector_files_match_their_generator():
    built = {name: make_vectors.render(document) for name, document in make_vectors.build().items()}
    assert built == {name: (make_vectors.FOLDER / f"{name}.json").read_text("utf-8") for name in FILES}


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_matches_the_vectors_and_finds_changed_ones(platform, tmp_path):
    names = FILES - NOT_IN_JAVASCRIPT if platform == "javascript" else FILES
    assert PLATFORMS[platform](make_vectors.FOLDER) == {name: [] for name in names}
    for name in FILES:
        document = vectors(name)
        entry = document.get("draws", document.get(name))[0]
        entry[next(field for field in ("bytes", "digest", "id") if field in entry)] = "wrong"
        (tmp_path / f"{name}.json").write_text(make_vectors.render(document), encoding="utf-8")
    found = PLATFORMS[platform](tmp_path)
    assert {name: len(differences) for name, differences in found.items()} == dict.fromkeys(names, 1)


def test_bad_studies_are_rejected_with_the_stated_field():
    refused = {entry["name"]: entry.get("refused") for entry in vectors("studies")["studies"]}
    refused |= {entry["name"]: entry.get("author_refused") for entry in vectors("authors")["authors"]}
    files = sorted((make_vectors.GOLDEN / "studies" / "bad").glob("*.json"))
    bad = {file.stem: json.loads(file.read_text()) for file in files}
    of_devices = {name: case for name, case in bad.items() if case["document"].get("respondent") != "holder"}
    assert len(of_devices) > 40
    assert {name: refused[name] for name in of_devices} == {
        name: case["field"] for name, case in of_devices.items()
    }


def test_devices_read_studies_that_only_authors_refuse():
    entries = vectors("authors")["authors"]
    assert len([entry for entry in entries if "author_refused" in entry]) > 20
    for entry in entries:
        device = ldp_client.Study.from_json(entry["text"])
        assert device.digest == entry["digest"]
        if "author_refused" in entry:
            with pytest.raises(StudyError) as caught:
                Study.from_json(entry["text"])
            assert caught.value.field == entry["author_refused"]
        else:
            assert Study.from_json(entry["text"]) == device


def test_devices_answer_a_study_that_only_authors_refuse():
    document = studies.document({**studies.YES_NO, "model": ["of", {"another": "program"}]})
    study = ldp_client.Study(document)
    random = NotForRealAnswers(Stream(b"", "models").read)
    report = perturb_answers(study, ldp_client.mechanisms_of(study), {"ever": True}, random)
    assert report.digest == study.digest
    assert study.document == document


def test_vector_streams_cover_rare_branches():
    draws = {name: vectors(name)["draws"] for name in MECHANISMS}
    laplace = {draw["bytes"] for draw in draws["laplace"]}
    # 12 bytes a draw: kept at once, after one redraw, undecided three times, and a tail beyond 32 bits.
    assert laplace >= {12, 24, 12 + 4 * 16, 12 * 130}
    assert {"7fffffff", "80000001"} <= {draw.get("payload") for draw in draws["laplace"]}
    gaussian = {draw["bytes"] for draw in draws["gaussian_statistics"] if draw["study"] == "linear"}
    assert gaussian >= {0, 108, 108 + 4 * 16}
    # 4 bytes for the coin and 4 for the other choice; a redraw of the latter is 4 more.
    assert {draw["bytes"] for draw in draws["randomized_response"]} >= {0, 8, 12}
    for name in ("oue", "sue", "subset_selection"):
        assert {draw["study"] for draw in draws[name]} == {"three", "thirteen", "many"}
    normal = {draw["bytes"] for draw in draws["gaussian"]}
    assert normal >= {0, 12, 24, 12 + 4 * 16}
    # Seed 12, coin 4, value 4; and redraws.
    assert {draw["bytes"] for draw in draws["olh"]} >= {0, 20, 28}
    # Coin 4, half 4, column 4; the half redrawn.
    assert {draw["bytes"] for draw in draws["hadamard"]} >= {0, 12, 16}
    # Coin 4, five others of 4, and redraws.
    subset = {draw["bytes"] for draw in draws["subset_selection"] if draw["study"] == "thirteen"}
    assert subset >= {0, 24}
    assert max(subset) > 24
