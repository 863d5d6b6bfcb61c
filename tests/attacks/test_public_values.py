"""Learn a public value from a report's size on the wire, or slip an answer into its clear part.

Defence: The device: reports are padded to the longest values, nothing but the listed values is taken, and a
private question's id is no public field's; the repository's tests make whole reports of every public value
by every path, and compare the clear part and the size over answers (`test_clear_parts_that_tell.py`). Known
limit: a small cell tells who took part, and links a person's reports over rounds.
"""

import pytest

from ldp_client.answering import perturb_answers, public_values, quantise_answers
from ldp_client.documents.errors import AnswerError, StudyError
from ldp_client.files.batch import perturb_people
from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from tests import studies
from tests.kit.errors import raises

PUBLIC = [
    {"id": "region", "choices": ["n", 'a "quoted" name', "größer als alle anderen", "𝄞"]},
    {"id": "offset", "bounds": ["-10.5", "1000"], "step": "0.5"},
]
ANSWERS = {"ever": True, "hours": 3}


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_report_size_does_not_reveal_public_value(sample_one_question):
    """Each report is padded to the size of the longest values."""
    study = Study(
        studies.document(
            studies.YES_NO, studies.NUMBER, public=PUBLIC, sample_one_question=sample_one_question
        )
    )
    mechanisms = mechanisms_of(study)
    sizes, bare = set(), set()
    people = [
        {**ANSWERS, "region": region, "offset": offset}
        for region in PUBLIC[0]["choices"]
        for offset in (-10.5, -1, 0, 0.5, 999.5, 1000)
    ]
    quantised = [quantise_answers(study, mechanisms, person) for person in people]
    public = [public_values(study, person) for person in people]
    reports = [perturb_answers(study, mechanisms, person) for person in people]
    for report in [*reports, *perturb_people(study, mechanisms, quantised, public=public)]:
        sizes.add(len(report.to_json().encode()))
        bare.add(len(report.to_json().rstrip().encode()))
    assert len(sizes) == 1
    assert len(bare) > 10


def test_public_field_with_name_of_private_question_is_rejected():
    """With one key for both, a form or a row that has the answer once would send it without noise."""
    for name in ("ever", "rating.age", "rating.rate"):
        public = [{"id": name, "choices": ["no", "yes"]}]
        with raises(StudyError, "study.public_id_invalid", repr(name), field="public[0].id"):
            Study(studies.document(studies.YES_NO, studies.LINEAR, public=public))


def test_error_does_not_repeat_rejected_value():
    study = Study(studies.document(studies.YES_NO, public=PUBLIC))
    for wrong in ({"region": "secret"}, {"offset": "secret"}, {"region": "n", "offset": 31337}):
        with pytest.raises(AnswerError) as caught:
            perturb_answers(study, mechanisms_of(study), {"ever": True, "region": "n", "offset": 0, **wrong})
        assert "secret" not in str(caught.value)
        assert "31337" not in str(caught.value)
