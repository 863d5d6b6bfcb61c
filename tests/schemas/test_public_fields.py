"""Public fields: which documents have them, which values reports may have, and what people are told."""

import pytest

from ldp_client.documents.errors import AnswerError, StudyError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.schemas.channels import channel

REGION = {"id": "region", "choices": ["north", "south"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "1"}
OFFSET = {"id": "offset", "bounds": ["-0.75", "1.50"], "step": "25e-2"}
STRATUM = {**REGION, "id": "stratum", "source": "ticket"}
VALUES = {"region": "north", "age": "42", "stratum": "south"}


def study_of(*fields, questions=(studies.YES_NO,), **more):
    return Study(studies.document(*questions, public=list(fields), **more))


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ([], "public", "1 to 16 entries"),
        ([REGION, REGION], "public[1].id", "twice"),
        ([{**REGION, "id": "ever"}], "public[0].id", "private question"),
        ([{**REGION, "id": "rating.rate"}], "public[0].id", "private question"),
        ([{**REGION, "choices": ["one", "one"]}], "public[0].choices[1]", "twice"),
        ([{**REGION, "choices": {"count": 5}}], "public[0].choices", "list"),
        ([{**REGION, "source": "collector"}], "public[0].source", "ticket"),
        ([{**REGION, "bounds": ["0", "1"], "step": "1"}], "public[0].choices", "unknown field"),
        ([{**AGE, "bounds": ["18", "1e60"]}], "public[0].bounds[1]", "decimals"),
        ([{**AGE, "bounds": ["18", "18"]}], "public[0].bounds", "below"),
        ([{**AGE, "step": "0"}], "public[0].step", "above 0"),
        ([{**AGE, "step": "2"}], "public[0].step", "whole number of steps"),
        ([{**AGE, "step": "1e-7"}], "public[0].step", "at most 1000000 values"),
        ([{"id": "age", "bounds": ["18", "99"]}], "public[0].step", "missing"),
    ],
)
def test_a_bad_field_is_named(fields, field, says):
    with pytest.raises(StudyError) as caught:
        study_of(*fields, questions=(studies.YES_NO, studies.LINEAR))
    assert caught.value.field == field
    assert says in caught.value.problem


def test_data_holders_and_secure_sums_reject_fields_for_people():
    holder = studies.document(studies.TABLE, public=[REGION], **studies.HOLDER)
    nodes = [f"https://{name}.example#{name[-1] * 128}" for name in ("node-a", "node-b")]
    protocol = {"name": "secure_sum", "nodes": nodes, "devices": 20, "max_faulty": 5}
    summed = {**studies.YES_NO, "mechanism": {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}}
    for document, code in (
        (holder, "study.not_for_holders"),
        (studies.document(summed, public=[REGION], protocol=protocol), "study.not_for_secure_sums"),
    ):
        with raises(StudyError, code, field="public"):
            Study(document)
    with raises(StudyError, "study.not_for_holders", field="channel"):
        Study(studies.document(studies.TABLE, channel=channel(), **studies.HOLDER))
    assert Study(studies.document(summed, protocol=protocol, channel=channel())).channel.tickets


def test_numbers_have_one_spelling_on_their_grid():
    (field,) = study_of(OFFSET).public
    values = [field.value(place) for place in range(field.size)]
    assert values == ["-0.75", "-0.5", "-0.25", "0", "0.25", "0.5", "0.75", "1", "1.25", "1.5"]
    assert [field.place(value) for value in values] == list(range(10))
    for other in ("1.0", "-0", "+1", "01", "1e0", " 1", "1.6", "1.75", "-1", "", "NaN"):
        assert field.place(other) is None
    assert [field.value_of(answer) for answer in (1, 1.0, "1.00", -0.5, "-5e-1")] == ["1"] * 3 + ["-0.5"] * 2


@pytest.mark.parametrize(
    ("field", "code", "answers"),
    [
        (OFFSET, "core.public_number", [None, True, "", " 1", float("nan"), 1.1, "2", -1, [1], "1_0"]),
        (REGION, "core.public_choice", [None, True, 0, "", "North", "north ", "secret"]),
    ],
)
def test_invalid_public_answer_is_rejected_without_repeating_it(field, code, answers):
    (read,) = study_of(field).public
    for answer in answers:
        with raises(AnswerError, code, field=field["id"]) as caught:
            read.value_of(answer)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (VALUES, None),
        ({}, "region"),
        ({**VALUES, "age": "42.0"}, "age"),
        ({**VALUES, "age": "17"}, "age"),
        ({**VALUES, "region": "east"}, "region"),
        ({**VALUES, "ever": "yes"}, "ever"),
        ({"region": "north", "age": "42"}, "stratum"),
    ],
)
def test_report_must_have_exactly_the_listed_public_values(values, wrong):
    study = study_of(REGION, AGE, STRATUM)
    found = study.wrong_public(values)
    assert (found and found[0]) == wrong
    # A ticket adds its values, and no others.
    found = study.wrong_public(values, invited=True)
    assert (found and found[0]) == (None if wrong == "stratum" else wrong)
