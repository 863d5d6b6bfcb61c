"""One name for two things: a question named as a record's field, a study where a mechanism belongs."""

import numpy as np

from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

RECORD = {**studies.LINEAR, "id": "rec"}


def test_question_id_that_looks_like_record_field_is_rejected():
    """In the columns of a table, such a question could not be told from a field of the record."""
    for name in ("rec.rate", "rec.other"):
        asked = [RECORD, {**studies.YES_NO, "id": name}]
        with raises(StudyError, "study.id_like_record_field", "field of rec", field="questions[1].id"):
            Study(studies.document(*asked))
    assert len(Study(studies.document(RECORD, {**studies.YES_NO, "id": "recent"})).questions) == 2
    assert (
        len(Study(studies.document({**studies.AGE, "id": "a"}, {**studies.YES_NO, "id": "a.b"})).questions)
        == 2
    )


def test_perturb_many_rejects_study_given_as_mechanism():
    with raises(InputError, "files.one_mechanism", "mechanism_for(study.questions[0])"):
        perturb_many(Study(studies.document(studies.YES_NO)), np.ones(3, bool))
