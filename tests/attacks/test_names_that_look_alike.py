"""One name for two things: a question named as a record's field, a study where a mechanism belongs."""

import numpy as np
import pytest

from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from tests import studies

RECORD = {**studies.LINEAR, "id": "rec"}


def test_no_question_is_named_as_a_field_of_a_record():
    """Where answers stand side by side, as in a table's columns, nobody could tell whose they are."""
    for name in ("rec.rate", "rec.other"):
        asked = [RECORD, {**studies.YES_NO, "id": name}]
        with pytest.raises(StudyError, match=r"questions\[1\]\.id: looks like the name of a field of rec"):
            Study(studies.document(*asked))
    assert len(Study(studies.document(RECORD, {**studies.YES_NO, "id": "recent"})).questions) == 2
    assert (
        len(Study(studies.document({**studies.AGE, "id": "a"}, {**studies.YES_NO, "id": "a.b"})).questions)
        == 2
    )


def test_a_study_is_no_mechanism():
    with pytest.raises(InputError, match=r"mechanism_for\(study.questions\[0\]\), not a Study"):
        perturb_many(Study(studies.document(studies.YES_NO)), np.ones(3, bool))
