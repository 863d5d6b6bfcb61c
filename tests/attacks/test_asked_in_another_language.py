"""To send in clear, in one language, what was asked behind noise in the same words of another."""

import pytest

from ldp_client import Device
from ldp_client.documents.errors import RefusedError
from ldp_client.study_warnings import warnings_of
from schemas import Study
from tests import studies

SAME = "Haben Sie je betrogen?"
PRIVATE = {**studies.YES_NO, "text": {"en": "Have you ever cheated?", "de": SAME}}
OTHER = {**studies.YES_NO, "id": "other", "text": {"en": "Is it warm?", "de": "Ist es warm?"}}
CLEAR = {"id": "asked", "text": {"en": "Did it happen?", "de": SAME}, "choices": ["no", "yes"]}
LANGUAGES = {"languages": ["en", "de"]}


def test_a_device_knows_a_question_in_every_language_it_was_asked_in(tmp_path):
    device = Device(tmp_path, max_epsilon="8", require_consent=False)
    device.answer(Study(studies.document(PRIVATE, **LANGUAGES)), {"ever": True})
    later = Study(studies.document(OTHER, version=2, public=[CLEAR], **LANGUAGES))
    with pytest.raises(RefusedError, match="behind noise before"):
        device.answer(later, {"other": True}, public={"asked": "yes"})
    innocent = {**CLEAR, "text": {"en": "Did it happen?", "de": "Ist es geschehen?"}}
    fine = Study(studies.document(OTHER, version=2, public=[innocent], **LANGUAGES))
    device.answer(fine, {"other": True}, public={"asked": "yes"})


def test_its_author_is_warned_of_what_one_language_alone_shows():
    both = Study(studies.document(PRIVATE, public=[CLEAR], **LANGUAGES))
    assert [line for line in warnings_of(both) if "asks in clear what ever asks" in line]


def test_a_study_that_is_only_shown_is_another_one(tmp_path):
    """Its labels are of a language; a device that knows the study refuses it, and so does every collector."""
    study = Study(studies.document(PRIVATE, **LANGUAGES))
    shown = study.shown_in("de")
    assert shown.questions[0].text == SAME
    assert shown.digest != study.digest
    device = Device(tmp_path, max_epsilon="8")
    device.consent(study)
    with pytest.raises(RefusedError):
        device.answer(shown, {"ever": True})
