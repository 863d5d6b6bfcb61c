"""Studies and reports: which documents they are, also by JSON Schema, and that bytes and digests stay."""

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import ReportError, StudyError
from schemas import Rational, Report, Study, javascript, json_schema
from schemas.study import read_study
from tests import studies
from tests.kit.errors import raises

GOLDEN = Path(__file__).parent.parent / "golden" / "studies"
DIGESTS = json.loads((GOLDEN / "digests.json").read_text())
STUDIES = Draft202012Validator(json_schema.schema("study.schema.json"))
# Rules that JSON Schema cannot say: they join fields, compare decimals, or concern strings' insides.
BEYOND_JSON_SCHEMA = """
bounds-equal bounds-too-close bounds-reversed closes-before-opens delta-one delta-zero duplicate-feature
duplicate-question epsilon-huge epsilon-negative epsilon-zero holder-sample-one-question
holder-asked-yes-no holder-with-protocol linear-with-yes-no logistic-with-number
memoized-instantaneous-above memoized-sue-of-yes-no norm-zero opens-not-a-day prior-dirichlet-of-two
prior-of-no-feature prior-scale-zero prior-uniform-above-one prior-uniform-below-zero
prior-uniform-reversed response-is-feature response-share-one table-average-with-count-share
table-centre-without-intercept table-count-share-one table-of-a-person table-prior-of-no-feature
table-response-is-feature table-without-holder title-lone-surrogate version-float
""".split()  # noqa: SIM905


@pytest.mark.parametrize("path", [GOLDEN / name for name in DIGESTS], ids=lambda path: path.stem)
def test_golden_studies_keep_their_digests_and_fields(path):
    study, document = Study.from_json(path.read_bytes()), json.loads(path.read_bytes())
    assert study.digest == DIGESTS[path.name]
    assert json.loads(study.to_json()) == document == study.document


def test_epsilon_is_the_exact_sum():
    parts = [studies.with_epsilon(studies.NUMBER, "0.1"), studies.with_epsilon(studies.YES_NO, "0.2")]
    assert Study(studies.document(*parts)).epsilon == Rational(3, 10)


@pytest.mark.parametrize("path", sorted((GOLDEN / "bad").glob("*.json")), ids=lambda path: path.stem)
def test_bad_golden_documents_name_their_field_and_fit_no_schema(path):
    case = json.loads(path.read_text())
    with pytest.raises(StudyError) as caught:
        Study(case["document"])
    assert caught.value.field == case["field"]
    assert case["says"] in caught.value.problem
    assert str(caught.value).count("\n") == 0
    assert STUDIES.is_valid(case["document"]) == (path.stem in BEYOND_JSON_SCHEMA)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff", "UTF-8"),
        (b"{", "well-formed"),
        (b"[" * 100_000, "well-formed"),
        (b"[]", "object"),
        (b'{"id": "a", "id": "b"}', "twice"),
        (b" " * ((1 << 20) + 1), "larger"),
        (b'{"languages": ["en"], "questions": ' + b"[" * 900 + b"]" * 900 + b"}", "deep"),
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
    for value in (1.5, None, {"a": 0.1}):
        with pytest.raises(TypeError):
            canonical_json(value)


HOSTILE = "a\n\x1b[2Jb\x9b\u202e\ud800" * 1000


@pytest.mark.parametrize(
    "change", [{HOSTILE: 1}, {"mechanism": {**studies.LINEAR["mechanism"], "name": HOSTILE}}]
)
def test_a_foreign_name_in_an_error_stays_on_one_short_line(change):
    with pytest.raises(StudyError) as caught:
        Study(studies.document({**studies.LINEAR, **change}))
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


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


@pytest.mark.attack(15)
def test_label_lookup_in_several_languages_is_not_quadratic():
    """Publish many labels in several languages: 10,000 in three took 3.5 seconds on each device."""
    compared = []

    class Label(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    labels = [{tag: Label(f"{tag}{number}") for tag in ("en", "de", "fr")} for number in range(200)]
    Study(studies.document({**studies.CHOICE, "choices": labels}, languages=["en", "de", "fr"]))
    assert len(compared) < 50 * len(labels)


def test_plain_numbers_of_an_author_are_read_as_decimals():
    prior = {"mean": {"distribution": "normal", "loc": "30", "scale": "5"}}
    stated = {"name": "laplace", "epsilon": "0.10000000000000000000000001"}
    question = {**studies.AGE, "mechanism": stated, "model": {"name": "normal", "prior": prior}}
    strict = json.dumps(studies.document({**question, "bounds": ["15", "45.5"]}))
    # No float has as many digits as this epsilon.
    plain = re.sub(r'"(-?[0-9.]+)"', r"\1", strict)
    assert read_study(plain.encode()) == Study.from_json(strict)
    with pytest.raises(StudyError):
        Study.from_json(plain)


@settings(max_examples=30)
@given(st.integers(-(10**12), 10**12), st.integers(0, 12))
def test_decimals_are_read_and_printed_exactly(digits, places):
    value, text = Rational(digits, 10**places), f"{Decimal(digits).scaleb(-places):f}"
    assert value == Rational.parse(text) == Rational.parse(str(value))


@pytest.mark.parametrize(("text", "value"), [("1e-6", "1/1000000"), ("-2.5E+3", "-2500"), ("007", "7")])
def test_parse_reads_exponents_and_signs(text, value):
    assert Rational.parse(text) == Fraction(value)
    assert str(Rational(-2, 6)) == "-1/3"


def test_parse_rejects_other_notations():
    others = ["+1", "1.", ".5", "1e", "e5", "1e5.0", "0x1", "1_000", "--1", "1e+-5", "nan", "1e61", "½"]
    for text in ["", " 1", *others, "9" * 41, None, 1, 1.5]:
        with pytest.raises(ValueError, match="decimal"):
            Rational.parse(text)


reports = st.builds(
    Report,
    id=st.binary(min_size=16, max_size=16).map(bytes.hex),
    study=st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}\Z"),
    version=st.integers(1, 10**6),
    digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    payloads=st.dictionaries(st.sampled_from(["a", "b-2", "c.x"]), st.binary(max_size=40), min_size=1),
    public=st.dictionaries(st.sampled_from(["age", "region"]), st.sampled_from(["42", "é"])),
)
GOOD = Report("ab" * 16, "survey", 2, "cd" * 32, {"q": b"\x01\x02"}).to_document()


@settings(max_examples=30)
@given(reports)
def test_report_round_trips(report):
    assert Report.from_json(report.to_json()) == report
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "AB" * 16}, "id"),
        ({"id": "ab" * 15}, "id"),
        ({"version": 0}, "version"),
        ({"version": "1"}, "version"),
        ({"digest": "x" * 64}, "digest"),
        ({"format": "ldpkit.report/9"}, "format"),
        ({"payloads": {}}, "payloads"),
        ({"payloads": {"q": "AQ"}}, "payloads.q"),
        ({"payloads": {"q": "AQI=\n"}}, "payloads.q"),
        ({"payloads": {"q": "A*QI="}}, "payloads.q"),
        ({"payloads": {"q": "AR=="}}, "payloads.q"),
        ({"payloads": {"q": 5}}, "payloads.q"),
        ({"payloads": {"Q": "AQI="}}, "payloads.Q"),
        ({"payloads": {"a\n\x1bä": "AQI="}}, "payloads.a???"),
        ({"time": "12:00"}, "time"),
        ({"public": {}}, "public"),
        ({"public": []}, "public"),
        ({"public": None}, "public"),
        ({"public": {"Region": "north"}}, "public.Region"),
        ({"public": {"age": 42}}, "public.age"),
        ({"public": {"age": ""}}, "public.age"),
        ({"public": {"age": "4" * 201}}, "public.age"),
        ({"public": {f"f{n}": "1" for n in range(17)}}, "public"),
    ],
)
def test_bad_reports_name_their_field(change, field):
    with raises(ReportError, "report.invalid", field=field):
        Report.from_json(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("key", sorted(GOOD))
def test_every_field_of_a_report_is_needed(key):
    with raises(ReportError, "report.invalid", field=key):
        Report.from_document({name: value for name, value in GOOD.items() if name != key})


@pytest.mark.attack(16)
def test_editing_payloads_does_not_change_a_report():
    """Use one mapping for many reports, and change it: each report keeps its own."""
    payloads, public = {"ever": b"1"}, {"side": "n"}
    report = Report("0" * 32, "habits", 1, "0" * 64, payloads, public=public)
    payloads["ever"], public["side"] = b"0", "s"
    assert (report.payloads, report.public) == ({"ever": b"1"}, {"side": "n"})


@pytest.mark.parametrize("name", sorted(json_schema.SHAPES))
def test_schema_files_are_up_to_date(name):
    assert (Path(json_schema.FOLDER) / name).read_text() == json_schema.render(name)
    Draft202012Validator.check_schema(json_schema.schema(name))


def test_good_documents_fit_their_schema():
    for path in GOLDEN.glob("*-*.json"):
        STUDIES.validate(json.loads(path.read_text()))
    STUDIES.validate(studies.document())
    report = Report("ab" * 16, "survey", 1, "cd" * 32, {"q": b"\x01"}, public={"age": "42"})
    Draft202012Validator(json_schema.schema("report.schema.json")).validate(report.to_document())


def test_generated_javascript_file_is_up_to_date():
    """`make schemas` writes it."""
    assert (javascript.FOLDER / javascript.FILE).read_text(encoding="utf-8") == javascript.loaders()
