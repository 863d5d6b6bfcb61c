import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from ldp_client.documents import errors as errors_module
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.catalogue import MECHANISMS
from ldp_client.documents.errors import StudyError
from schemas import Rational, Study
from schemas.models import MODELS
from tests import studies
from tests.kit.errors import raises

GOLDEN = Path(__file__).parent.parent / "golden" / "studies"

identifiers = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}\Z")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
decimals = st.decimals(min_value="0.001", max_value=64, places=3).map(str)


@st.composite
def bounds(draw):
    low = draw(st.integers(-1000, 1000))
    return [str(low), str(low + draw(st.integers(1, 1000)))]


@st.composite
def questions(draw, name):
    template = draw(st.sampled_from(studies.ALL))
    question = studies.with_epsilon(template, draw(decimals)) | {"id": name, "text": draw(texts)}
    if "bounds" in question:
        question["bounds"] = draw(bounds())
    if "choices" in question:
        question["choices"] = draw(st.lists(texts, min_size=2, max_size=6, unique=True))
    return question


def name_no_field(names):
    """No id looks like the name of a field of another question, which a record may be."""
    return not any(name.startswith(f"{other}.") for name in names for other in names)


@st.composite
def documents(draw):
    names = draw(st.lists(identifiers, min_size=1, max_size=4, unique=True).filter(name_no_field))
    return studies.document(
        *[draw(questions(name)) for name in names], title=draw(texts), purpose=draw(texts)
    )


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(documents())
def test_round_trip_keeps_bytes_and_digest(document):
    study = Study(document)
    again = Study.from_json(study.to_json())
    spaced = Study.from_json(json.dumps(document, indent=3, sort_keys=False))
    assert again == spaced == study
    assert again.canonical() == spaced.canonical() == study.canonical()
    assert json.loads(study.to_json()) == document


@settings(max_examples=100, deadline=None)
@given(documents(), st.data())
def test_a_changed_document_has_another_digest(document, data):
    changed = {**document, "title": data.draw(texts.filter(lambda text: text != document["title"]))}
    assert Study(changed).digest != Study(document).digest


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


def test_every_question_kind_has_a_mechanism_and_a_model():
    for ask in ("number", "choice", "yes_no", "record"):
        assert any(ask in entry.asks for entry in MECHANISMS.values())
        assert any(ask in entry.asks for entry in MODELS.values())


def test_schemas_exports_every_error_and_document():
    """Every error, and the documents: named one by one."""
    errors = {name for name in vars(errors_module) if name.endswith("Error")}
    assert {*schemas.__all__} == errors | {"Question", "Rational", "Report", "Study"}


def test_deeply_nested_document_is_refused():
    nested = {"languages": ["en"], "questions": json.loads("[" * 900 + "]" * 900)}
    with raises(StudyError, "study.too_deep"):
        Study(nested)
