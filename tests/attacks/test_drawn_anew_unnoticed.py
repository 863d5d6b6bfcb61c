"""A panel's next version swaps a language, and everybody pays for the same question again: nobody is told."""

import random
from itertools import combinations

import pytest

from collector.remote.operating import RemoteCollector
from ldp_client import Device
from ldp_client.device.asking import asked_anew
from schemas import Study
from tests import studies
from tests.collector.test_operating import asked, at

__all__ = ["asked"]
TEXTS = {"en": "Have you ever?", "de": "Haben Sie je?", "es": "¿Alguna vez?"}


def version_of(version, *languages, text=TEXTS, **asked):
    """A version that asks the memoized question in these languages."""
    question = {**studies.MEMOIZED, "text": {one: text[one] for one in languages}, **asked}
    return Study(studies.document(question, version=version, languages=list(languages)))


SWAPPED = [version_of(1, "en", "de"), version_of(2, "en"), version_of(3, "en", "es")]
GRADUAL = [version_of(1, "en", "de"), version_of(2, "en", "de", "es"), version_of(3, "en", "es")]


def test_the_collector_says_so(empty):
    found = [empty.publish(one).get_json().get("notes", []) for one in SWAPPED]
    assert found[:2] == [[], []]
    (line,) = found[2]
    assert "memoized question habit asks another thing than in version 1" in line
    assert "spends epsilon again" in line
    # What is published already asks nobody anew.
    again = empty.publish(SWAPPED[2])
    assert (again.status_code, "notes" in again.get_json()) == (200, False)


def test_one_language_after_the_other_needs_no_word(empty):
    assert not any("notes" in empty.publish(one).get_json() for one in GRADUAL)


def test_other_words_and_choices_are_told_with_the_last_version_that_had_others(empty):
    other = {**TEXTS, "en": "Did you ever?"}
    for version, words in ((1, TEXTS), (2, TEXTS), (3, other)):
        notes = empty.publish(version_of(version, "en", text=words)).get_json().get("notes", [])
    assert "than in version 2" in notes[0]
    # The old words come back: whoever answered them keeps that answer.
    assert "notes" not in empty.publish(version_of(4, "en")).get_json()


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_so_does_the_command(asked, empty, tmp_path, capsys, more):
    asked(empty)
    for one in SWAPPED[:-1]:
        assert empty.publish(one).status_code == 201
    file = tmp_path / "study.json"
    file.write_bytes(SWAPPED[-1].canonical())
    at("publish", str(file), *more)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "memoized" in line]
    assert "than in version 1" in line
    at("publish", str(file))
    capsys.readouterr()
    at("publish", str(file), "--dry-run")
    assert "memoized" not in capsys.readouterr().err


def test_without_a_key_the_command_knows_the_version_of_now(asked, empty, tmp_path, capsys, monkeypatch):
    asked(empty)
    assert empty.publish(SWAPPED[0]).status_code == 201
    monkeypatch.setattr(RemoteCollector, "has_key", False)
    file = tmp_path / "study.json"
    file.write_bytes(SWAPPED[-1].canonical())
    at("publish", str(file), "--dry-run")
    assert "than in version 1" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_a_device_pays_that_answered_all(tmp_path, seed):
    chance = random.Random(seed)
    some = [one for size in (1, 2, 3) for one in combinations(TEXTS, size)]
    versions = [version_of(number, *chance.choice(some)) for number in range(1, 6)]
    device = Device(tmp_path, "50", require_consent=False)
    left = [device.epsilon_left]
    for one in versions:
        device.answer(one, {"habit": True})
        left.append(device.epsilon_left)
    paid = [before > after for before, after in zip(left[1:], left[2:])]
    assert paid == [bool(asked_anew(one, versions[: one.version - 1])) for one in versions[1:]]
