"""A panel's next version swaps a language: all devices pay again for the same question, without a warning.

Defence: `ldpkit publish` and the collector: name the question and the version in a note, the command
before it publishes. The device draws again, within its budget, because the other language may ask
something else.
"""

import json
import random
from itertools import combinations

import pytest

from collector.remote.operating import RemoteCollector
from ldp_client import Device
from ldp_client.commands.repeated_questions import _draws, asked_anew
from ldp_client.commands.study_warnings import anew_in_words
from ldp_client.device.fingerprint import told_in
from ldp_client.documents.spoken import in_each_plain
from schemas import Study
from tests import studies
from tests.collector.test_operating import asked, at

__all__ = ["asked"]
TEXTS = {"en": "Have you ever?", "de": "Haben Sie je?", "es": "¿Alguna vez?"}
FOUR = {**TEXTS, "fr": "Jamais ?"}


def version_of(version, *languages, text=TEXTS, **asked):
    """A version that asks the memoized question in these languages."""
    question = {**studies.MEMOIZED, "text": {one: text[one] for one in languages}, **asked}
    return Study(studies.document(question, version=version, languages=list(languages)))


SWAPPED = [version_of(1, "en", "de"), version_of(2, "en"), version_of(3, "en", "es")]
GRADUAL = [version_of(1, "en", "de"), version_of(2, "en", "de", "es"), version_of(3, "en", "es")]


def test_collector_notes_that_question_is_asked_again(empty):
    found = [empty.publish(one).get_json().get("notes", []) for one in SWAPPED]
    assert found[:2] == [[], []]
    (line,) = found[2]
    assert "memoized question habit differs from version 1" in line
    assert "spend epsilon again" in line
    # Publishing the same version again draws no new answers.
    again = empty.publish(SWAPPED[2])
    assert (again.status_code, "notes" in again.get_json()) == (200, False)


def test_gradual_language_swap_is_noted_for_skipped_version(empty):
    found = [empty.publish(one).get_json().get("notes", []) for one in GRADUAL]
    assert found[:2] == [[], []]
    (line,) = found[2]
    assert "Participants who answered version 1 and not version 2 draw a new permanent answer" in line


def test_note_names_all_intermediate_versions():
    last = version_of(4, "en", "es")
    between = [version_of(number, "en", "de", "es") for number in (2, 3)]
    (line,) = anew_in_words(last, [GRADUAL[0], *between])
    assert "Participants who answered version 1 and not version 2 or 3 draw" in line


def test_changed_words_are_noted_with_last_differing_version(empty):
    other = {**TEXTS, "en": "Did you ever?"}
    for version, words in ((1, TEXTS), (2, TEXTS), (3, other)):
        notes = empty.publish(version_of(version, "en", text=words)).get_json().get("notes", [])
    assert "differs from version 2" in notes[0]
    # The old words come back: devices that answered them keep that answer.
    (line,) = empty.publish(version_of(4, "en")).get_json()["notes"]
    assert "Participants who answered version 3 and not version 1 or 2 draw" in line


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_publish_command_notes_that_question_is_asked_again(asked, empty, tmp_path, capsys, more):
    asked(empty)
    for one in SWAPPED[:-1]:
        assert empty.publish(one).status_code == 201
    file = tmp_path / "study.json"
    file.write_bytes(SWAPPED[-1].canonical())
    at("publish", str(file), "--json", *more)
    said = capsys.readouterr()
    (line,) = [line for line in said.err.splitlines() if "memoized" in line]
    assert "differs from version 1" in line
    assert json.loads(said.out)["notes"] == [line]
    at("publish", str(file))
    capsys.readouterr()
    at("publish", str(file), "--dry-run")
    assert "memoized" not in capsys.readouterr().err


@pytest.mark.parametrize("is_known", [True, False])
def test_publish_prints_the_note_before_publishing(asked, empty, tmp_path, capsys, monkeypatch, is_known):
    asked(empty)
    assert empty.publish(SWAPPED[0]).status_code == 201
    file = tmp_path / "study.json"
    file.write_bytes(SWAPPED[-1].canonical())
    said = []

    def publish(_collector, _document, _study):
        said.append(capsys.readouterr().err)
        # Its other notes are printed too.
        return [*anew_in_words(SWAPPED[-1], SWAPPED[:1]), "note: another\u001b"]

    monkeypatch.setattr(RemoteCollector, "publish", publish)
    monkeypatch.setattr(RemoteCollector, "has_key", is_known)
    at("publish", str(file), "--json")
    assert "differs from version 1" in said[0]
    after = capsys.readouterr()
    assert "memoized" not in after.err
    assert "note: another\\x1b" in after.err
    assert len(json.loads(after.out)["notes"]) == 2


def test_command_without_key_compares_all_versions(asked, empty, tmp_path, capsys, monkeypatch):
    """The command used to know only the current version, and printed this note only after publishing."""
    asked(empty)
    for one in GRADUAL[:-1]:
        assert empty.publish(one).status_code == 201
    monkeypatch.setattr(RemoteCollector, "has_key", False)
    file = tmp_path / "study.json"
    file.write_bytes(GRADUAL[-1].canonical())
    at("publish", str(file), "--dry-run")
    assert "Participants who answered version 1 and not version 2 draw" in capsys.readouterr().err


def test_command_without_key_compares_current_version(asked, empty, tmp_path, capsys, monkeypatch):
    asked(empty)
    assert empty.publish(SWAPPED[0]).status_code == 201
    monkeypatch.setattr(RemoteCollector, "has_key", False)
    file = tmp_path / "study.json"
    file.write_bytes(SWAPPED[-1].canonical())
    at("publish", str(file), "--dry-run")
    assert "differs from version 1" in capsys.readouterr().err


def test_version_numbers_are_not_probed_one_by_one(asked, empty, tmp_path, capsys, monkeypatch):
    """There are 261,000 numbers before the first version; the collector knows which exist."""
    asked(empty)
    days = [version_of(261001, "en", "de"), version_of(261101, "en"), version_of(261201, "en", "es")]
    for one in days[:-1]:
        assert empty.publish(one).status_code == 201
    genuine, seen = RemoteCollector.published, []

    def published(self, study_id, version=None):
        seen.append(version)
        return genuine(self, study_id, version)

    monkeypatch.setattr(RemoteCollector, "published", published)
    file = tmp_path / "study.json"
    file.write_bytes(days[-1].canonical())
    at("publish", str(file))
    assert 261001 in seen
    assert len(seen) < 200
    assert "differs from version 261001" in capsys.readouterr().err


SOME = [one for size in (1, 2, 3, 4) for one in combinations(FOUR, size)]


def pays(folder, before, last):
    """Whether a device that answered these versions pays for the last one."""
    device = Device(folder, "50", require_consent=False)
    for one in before:
        device.answer(one, {"habit": True})
    left = device.epsilon_left
    device.answer(last, {"habit": True})
    return device.epsilon_left < left


@pytest.mark.parametrize("seed", range(12))
def test_forecast_matches_what_devices_pay_for_skipped_versions(tmp_path, seed):
    chance = random.Random(seed)
    *earlier, last = [version_of(number, *chance.choice(SOME), text=FOUR) for number in range(1, 5)]
    paying = []
    for size in (1, 2, 3):
        for place, before in enumerate(combinations(earlier, size)):
            if pays(tmp_path / f"{size}-{place}", before, last):
                paying.append([one.version for one in before])
    found = asked_anew(last, earlier)
    assert bool(found) == bool(paying)
    if found:
        version, unless = found["habit"].version, found["habit"].unless
        others = {one.version for one in earlier} - {version}
        assert {other for other in others if sorted((version, other)) not in paying} == set(unless)
        assert [version] in paying


@pytest.mark.parametrize("seed", range(40))
def test_forecast_matches_answers_kept_in_a_ledger(tmp_path, seed):
    """Also for words for which one permanent answer could replace several."""
    chance = random.Random(seed)
    *earlier, last = [version_of(number, *chance.choice(SOME), text=FOUR) for number in range(1, 8)]
    words = [set(told_in(in_each_plain(one), "habit")) for one in (*earlier, last)]
    assert _draws(words[-1], words[:-1]) == pays(tmp_path, earlier, last)
