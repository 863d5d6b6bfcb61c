"""A record has as many fields as are asked, but one of them under another name."""

from collections import defaultdict

import pytest

from ldp_client import mechanism_for
from ldp_client.documents.errors import AnswerError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

NUMBERS = {key: value for key, value in studies.LINEAR.items() if key != "norm"}
RECORDS = {
    "sums": studies.LINEAR,
    "a noisy record": studies.RECORD,
    "signs": {**NUMBERS, "mechanism": {"name": "sampled_products", "epsilon": "1"}},
    "signs of other kinds": studies.PRODUCTS,
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_error_names_missing_field_and_no_value(record):
    mechanism = mechanism_for(Study(studies.document(record)).questions[0])
    names = [field["id"] for field in (*record["features"], record["response"])]
    for missing in names:
        answer = {name: 20.125 for name in names if name != missing}
        for given in ({**answer, "misspelt": 20.125}, answer, defaultdict(float, answer)):
            with raises(AnswerError, "core.missing", field=f"{record['id']}.{missing}") as told:
                mechanism.perturb(given)
            assert "20.125" not in str(told.value)
    whole = dict.fromkeys(names, 20.125)
    with raises(AnswerError, "core.unasked_field"):
        mechanism.perturb({**whole, "more": 20.125})
