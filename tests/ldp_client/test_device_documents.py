"""Which document a device answers: the one that it was given, as its digest says, and no other."""

import json
from contextlib import contextmanager

import pytest

from ldp_client import Device
from ldp_client.documents.errors import InputError, RefusedError
from ldpkit import Report, ask
from ldpkit import study as study_of
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.kit.work import counted
from tests.ldp_client.devices import consenting, problem

BOTH = {"en": "Have you ever cheated?", "de": "Haben Sie je betrogen?"}
TRANSLATED = Study(studies.document({**studies.YES_NO, "text": BOTH}, languages=["en", "de"]))
PUBLIC = [{"id": "region", "choices": ["n", "s"]}, {"id": "age", "bounds": ["1", "99"], "step": "1"}]
PLACED = Study(studies.document(studies.YES_NO, public=PUBLIC))
CODE = "-a_B9-xyz_-"


@pytest.mark.attack(16)
@pytest.mark.parametrize("how", ["consent", "answer", "accept"])
def test_translated_view_of_a_study_is_refused(tmp_path, how):
    """Give a device the view in one language: no collector has its digest, so the report would be lost."""
    shown = TRANSLATED.shown_in("de")
    assert (shown.questions[0].text, shown.digest != TRANSLATED.digest) == (BOTH["de"], True)
    device = consenting(tmp_path, "8")
    with raises(InputError, "device.only_shown"):
        getattr(device, how)(shown, *([{"ever": True}] if how == "answer" else []))
    device.answer(TRANSLATED, {"ever": True})


@pytest.mark.attack(16)
def test_personalised_document_is_rejected_by_digest(tmp_path):
    """Publish another document for each person, so that a report's digest tells whose it is."""
    published = Study(studies.document(studies.YES_NO))
    personal = Study(studies.document(studies.YES_NO, title="A survey "))
    device = consenting(tmp_path, "4", known_digests=[published.digest.upper() + "\n"])
    for refuse in (device.accept, lambda study: device.answer(study, {"ever": True})):
        with raises(RefusedError, "device.unpublished", personal.digest):
            refuse(personal)
    assert device.ledger.spent() == []
    device.answer(device.accept(published), {"ever": True})
    with pytest.raises(RefusedError):
        Device(tmp_path / "none", "4", known_digests=[]).accept(published)


KEPT = {"name": "memoized", "epsilon": "2", "instantaneous_epsilon": "1.9", "of": "randomized_response"}


@pytest.mark.attack(16)
def test_each_version_is_answered_as_it_was_built(tmp_path):
    """Edit the document or question that a study was built from: a report states what was answered."""
    template = studies.document({**studies.YES_NO, "mechanism": KEPT}, id="template")
    rest = {name: value for name, value in KEPT.items() if name != "epsilon"}
    question = ask.yes_no("ever", epsilon=2, mechanism=rest)
    built = []
    for version, text in enumerate(["Did you cheat?", "Did you ever cheat?"], 1):
        template["version"], template["questions"][0]["text"], question["text"] = version, text, text
        built += [Study(template), study_of("built", "Built", [question], version=version)]
    device = consenting(tmp_path, "4")
    for study in built:
        device.answer(study, {"ever": True})
    digests = {Report.from_json(queued.body).digest for queued in device.ledger.queued()}
    assert digests == {study.digest for study in built}
    assert len(digests) == 4


def test_refusal_of_another_groups_ticket_explains_itself(tmp_path, server):
    """Advice to give an unused code would make the person ask for another one of the same group."""
    server.content = PLACED.canonical()
    device = consenting(tmp_path, "2", server.url)
    device.answer(device.fetch("survey"), {"ever": True}, CODE, public={"region": "n", "age": 5})
    media_type, text = problem("ticket-needed")
    document = {**json.loads(text), "field": "public.region", "detail": "is another value"}
    server.statuses, server.refusals = [403], {403: (media_type, json.dumps(document))}
    flushed = device.flush(attempts=1)
    assert "public.region: HTTP status 403, ticket-needed: is another value" in flushed.reason
    assert "a ticket that carries the report's value" in flushed.reason
    assert flushed.waiting == 1


@pytest.mark.attack(15)
def test_many_languages_neither_slow_a_device_nor_hold_its_ledger(tmp_path):
    """Publish thousands of labels in many languages: devices would be busy for minutes, ledgers locked."""
    tags = [first + second for first in "abcd" for second in "abcde"]
    labels = [f"{place:04}-{'x' * 80}" for place in range(500)]
    asked = {**studies.MEMOIZED, "ask": "choice", "choices": labels, "model": {"name": "multinomial"}}
    asked["text"] = {tag: f"In {tag}" for tag in tags}
    text = json.dumps(studies.document(asked, languages=tags))
    locked = []

    @contextmanager
    def counting():
        before = calls.made
        with writing() as connection:
            yield connection
        locked.append(calls.made - before)

    with counted() as calls:
        study = Study.from_json(text)
        device = Device(tmp_path, max_epsilon="100")
        device.accept(study)
        device.consent(study)
        writing, device.ledger.writing = device.ledger.writing, counting
        device.answer(study, {"habit": labels[3]})
    # Each label in each language is read some twenty times.
    assert calls.made < 60 * len(labels) * len(tags)
    assert len(locked) == 1
    assert locked[0] < 10 * len(labels)
