"""A study in several languages has labels or questions that are alike in one of them.

Defence: The device accepts labels of the study itself only; `ldpkit check` warns of questions that are alike
in one language.
"""

import pytest

from ldp_client import Device
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises

SAME = "Haben Sie je betrogen?"
PRIVATE = {**studies.YES_NO, "text": {"en": "Have you ever cheated?", "de": SAME}}
OTHER = {**studies.YES_NO, "id": "other", "text": {"en": "Is it warm?", "de": "Ist es warm?"}}
CLEAR = {"id": "asked", "text": {"en": "Did it happen?", "de": SAME}, "choices": ["no", "yes"]}
LANGUAGES = {"languages": ["en", "de"]}


def test_check_warns_of_clear_question_in_one_language():
    both = Study(studies.document(PRIVATE, public=[CLEAR], **LANGUAGES))
    assert [line for line in warnings_of(both) if "asks without noise what ever asks" in line]


def test_translated_view_of_a_study_has_another_digest(tmp_path):
    """Its labels are in one language, and no collector has published it."""
    study = Study(studies.document(PRIVATE, **LANGUAGES))
    shown = study.shown_in("de")
    assert shown.questions[0].text == SAME
    assert shown.digest != study.digest
    device = Device(tmp_path, max_epsilon="8")
    device.consent(study)
    with pytest.raises(InputError):
        device.answer(shown, {"ever": True})


def test_ordered_flag_does_not_make_a_new_question(tmp_path):
    device = Device(tmp_path, max_epsilon="8", require_consent=False)
    left = []
    for version, order in enumerate(({}, {"ordered": True}, {"ordered": False}), 1):
        asked = {**studies.MEMOIZED_BITS, **order}
        device.answer(Study(studies.document(asked, version=version)), {"brand": "worker"})
        left.append(device.epsilon_left)
    assert len(set(left)) == 1


@pytest.mark.parametrize("how", ["consent", "answer", "accept"])
def test_unknown_device_rejects_translated_view_of_study(tmp_path, how):
    """No collector has its digest, so the report would be lost and the real study then be refused."""
    study = Study(studies.document(PRIVATE, **LANGUAGES))
    device = Device(tmp_path, max_epsilon="8", require_consent=False)
    with raises(InputError, "device.only_shown"):
        getattr(device, how)(study.shown_in("de"), *([{"ever": True}] if how == "answer" else []))
    device.answer(study, {"ever": True})


def test_label_shared_by_two_choices_across_languages_is_rejected():
    """An app that sends the label that a person read would tell the other choice, in silence."""
    once = {"en": "once", "es": "una vez"}
    eleven = {"en": "eleven times", "es": "once"}
    with raises(StudyError, "study.invalid", "in es", "choices[0] in en", field="questions[0].choices[1]"):
        Study(studies.document({**studies.CHOICE, "choices": [once, eleven]}, languages=["en", "es"]))


class Compared(str):
    """A label that counts how often it is compared."""

    __slots__ = ()
    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


def test_label_lookup_in_several_languages_is_not_quadratic():
    """A study's author decides how many labels a device reads; 10,000 in three languages took 3.5 seconds."""
    labels = [{tag: Compared(f"{tag}{number}") for tag in ("en", "de", "fr")} for number in range(500)]
    asked = {**studies.CHOICE, "choices": labels}
    Study(studies.document(asked, languages=["en", "de", "fr"]))
    assert Compared.times < 50 * len(labels)
