import json
import re
from pathlib import Path

import pytest

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import StudyError
from schemas import Rational, Study
from schemas.study import STUDY, _decimal_fields, read_study
from tests import studies
from tests.kit.errors import raises

GOLDEN = Path(__file__).parent.parent / "golden" / "studies"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*-*.json")), ids=lambda path: path.stem)
def test_spaces_and_order_of_members_change_no_byte_of_a_study(path):
    text = path.read_bytes()
    study, document = Study.from_json(text), json.loads(text)
    turned = {name: document[name] for name in reversed(document)}
    again = Study.from_json(json.dumps(turned, indent=3))
    assert again == study == Study.from_json(study.to_json())
    assert again.canonical() == study.canonical()
    assert json.loads(study.to_json()) == document
    assert Study({**document, "version": document["version"] + 1}).digest != study.digest


def test_epsilon_is_the_exact_sum():
    parts = [studies.with_epsilon(studies.NUMBER, "0.1"), studies.with_epsilon(studies.YES_NO, "0.2")]
    assert Study(studies.document(*parts)).epsilon == Rational(3, 10)


def test_golden_documents_keep_their_digests():
    digests = json.loads((GOLDEN / "digests.json").read_text())
    assert digests
    for name, digest in digests.items():
        assert Study.from_json((GOLDEN / name).read_bytes()).digest == digest


@pytest.mark.parametrize("path", sorted((GOLDEN / "bad").glob("*.json")), ids=lambda path: path.stem)
def test_bad_golden_documents_name_their_field(path):
    """Each bad document is a good document with one change; the file names the wrong field."""
    case = json.loads(path.read_text())
    with pytest.raises(StudyError) as caught:
        Study(case["document"])
    assert caught.value.field == case["field"]
    assert case["says"] in caught.value.problem
    assert str(caught.value).count("\n") == 0


HOSTILE = "a\n\x1b[2Jb\x9b\u202e\ud800" * 1000
NORMAL = {"distribution": "normal", "loc": "0", "scale": "1"}


@pytest.mark.parametrize(
    "change",
    [
        {HOSTILE: 1},
        {"mechanism": {**studies.LINEAR["mechanism"], "name": HOSTILE}},
        {"model": {"name": "linear_regression", "prior": {"coefficients": {HOSTILE: 1}}}},
        {"model": {"name": "linear_regression", "prior": {"coefficients": {HOSTILE: NORMAL}}}},
    ],
    ids=["field", "mechanism", "prior", "feature"],
)
def test_a_foreign_name_in_an_error_stays_on_one_short_line(change):
    with pytest.raises(StudyError) as caught:
        Study(studies.document({**studies.LINEAR, **change}))
    said = str(caught.value)
    assert said.isascii()
    assert said.isprintable()
    assert len(said) < 600


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff", "UTF-8"),
        (b"{", "well-formed"),
        (b"[" * 100_000, "well-formed"),
        (b"[]", "object"),
        (b'{"id": "a", "id": "b"}', "twice"),
        (b" " * ((1 << 20) + 1), "larger"),
    ],
)
def test_text_that_is_not_a_document_is_rejected(text, says):
    with pytest.raises(StudyError, match=says):
        Study.from_json(text)


def test_canonical_json_matches_json_stringify():
    value = {"b": ["ä\u2028€", True, False], "a": '\x00\x1f"\\/\b\f\n\r\t\x7f', "c": 10**20}
    assert canonical_json(value) == (
        '{"a":"\\u0000\\u001f\\"\\\\/\\b\\f\\n\\r\\t\x7f","b":["ä\u2028€",true,false],"c":100000000000000000000}'
    )


@pytest.mark.parametrize("value", [1.5, None, {"a": 0.1}])
def test_floats_and_null_have_no_canonical_form(value):
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.attack(16)
def test_editing_documents_does_not_change_a_study():
    """Edit the document that a study was built from, or a copy of it: another's digest would be sent."""
    document = studies.document(studies.YES_NO)
    study = Study(document)
    before = study.to_json()
    document["questions"][0]["id"] = "other"
    study.document["questions"][0]["id"] = "other"
    assert json.loads(before) == study.document
    assert Study(study.document) == study
    assert study.to_json() == before


@pytest.mark.parametrize("place", ["question", "public", "title"])
def test_text_with_null_character_is_rejected(place):
    """For NumPy a label with a zero byte at its end is the one without: it would be reported as that."""
    labels = ["a", "a\0", "b"]
    documents = {
        "question": studies.document({**studies.ONE_OF, "choices": labels}),
        "public": studies.document(studies.YES_NO, public=[{"id": "region", "choices": labels}]),
        "title": studies.document(studies.YES_NO, title="a\0b"),
    }
    with raises(StudyError, "study.invalid", "U+0000"):
        Study.from_json(json.dumps(documents[place]))


def test_question_id_that_looks_like_a_record_field_is_rejected():
    """In the columns of a table, such a question could not be told from a field of the record."""
    record = {**studies.LINEAR, "id": "rec"}
    with raises(StudyError, "study.id_like_record_field", "field of rec", field="questions[1].id"):
        Study(studies.document(record, {**studies.YES_NO, "id": "rec.other"}))
    for first, second in ((record, "recent"), ({**studies.AGE, "id": "a"}, "a.b")):
        assert len(Study(studies.document(first, {**studies.YES_NO, "id": second})).questions) == 2


def test_label_shared_by_two_choices_across_languages_is_rejected():
    """An app that sends the label that a person read would tell the other choice, in silence."""
    once = {"en": "once", "es": "una vez"}
    eleven = {"en": "eleven times", "es": "once"}
    with raises(StudyError, "study.invalid", "in es", "choices[0] in en", field="questions[0].choices[1]"):
        Study(studies.document({**studies.CHOICE, "choices": [once, eleven]}, languages=["en", "es"]))


@pytest.mark.parametrize("name", ["public", "channel"])
def test_a_device_refuses_a_field_that_it_does_not_know(name, monkeypatch):
    """An earlier release would send a report without public values, or at once and without a ticket."""
    field = {
        "public": [{"id": "region", "choices": ["north", "south"]}],
        "channel": {"batches": {"hours": 24}},
    }
    monkeypatch.delitem(STUDY.optional, name)
    with raises(StudyError, "study.invalid", "unknown field", field=name):
        Study(studies.document(studies.YES_NO, **{name: field[name]}))


class Compared(str):
    """A label that counts how often it is compared."""

    __slots__ = ()
    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


@pytest.mark.attack(15)
def test_label_lookup_in_several_languages_is_not_quadratic():
    """Publish many labels in several languages: 10,000 in three took 3.5 seconds on each device."""
    labels = [{tag: Compared(f"{tag}{number}") for tag in ("en", "de", "fr")} for number in range(200)]
    Study(studies.document({**studies.CHOICE, "choices": labels}, languages=["en", "de", "fr"]))
    assert Compared.times < 50 * len(labels)


def test_deeply_nested_document_is_refused():
    nested = {"languages": ["en"], "questions": json.loads("[" * 900 + "]" * 900)}
    with raises(StudyError, "study.too_deep"):
        Study(nested)


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        ('"epsilon": 1', '"epsilon": "1"'),
        ('"epsilon": 0.1', '"epsilon": "0.1"'),
        # No float has this many digits.
        ('"epsilon": 0.10000000000000000000000001', '"epsilon": "0.10000000000000000000000001"'),
    ],
)
def test_plain_numbers_of_an_author_are_read_as_decimals(plain, written):
    text = json.dumps(studies.document(studies.YES_NO))
    (stated,) = re.findall(r'"epsilon": "[^"]*"', text)
    assert read_study(text.replace(stated, plain).encode()) == Study.from_json(text.replace(stated, written))
    with pytest.raises(StudyError):
        Study.from_json(text.replace(stated, plain))


def test_bounds_and_priors_may_be_plain_numbers_too():
    question = {
        "id": "age",
        "ask": "number",
        "bounds": [15, 45.5],
        "mechanism": {"name": "laplace", "epsilon": 1},
    }
    prior = {"mean": {"distribution": "normal", "loc": 30, "scale": 5}}
    document = studies.document({**question, "model": {"name": "normal", "prior": prior}})
    study = read_study(json.dumps(document).encode())
    assert study.document["questions"][0]["bounds"] == ["15", "45.5"]
    assert study.document["questions"][0]["model"]["prior"]["mean"]["loc"] == "30"
    assert study.version == 1


def test_no_field_is_a_whole_number_in_one_place_and_a_decimal_in_another():
    """Else a plain 1 would be read as a text where a whole number is due."""
    integers = set()

    def look(schema, name=""):
        if isinstance(schema, dict):
            integers.update({name} if schema.get("type") == "integer" else ())
            for field, part in schema.get("properties", {}).items():
                look(part, field)
            for part in (schema.get("items"), *schema.get("oneOf", ()), schema.get("additionalProperties")):
                look(part, name)

    look(STUDY.json_schema())
    assert {"version", "days", "products"} <= integers
    assert not integers & _decimal_fields()
