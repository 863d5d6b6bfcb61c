import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from schemas import Report, javascript, json_schema
from tests import studies

STUDIES = Draft202012Validator(json_schema.schema("study.schema.json"))
GOLDEN = Path(__file__).parent.parent / "golden" / "studies"
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


@pytest.mark.parametrize("path", sorted((GOLDEN / "bad").glob("*.json")), ids=lambda path: path.stem)
def test_bad_documents_fail_unless_json_schema_cannot_express_it(path):
    fits = STUDIES.is_valid(json.loads(path.read_text())["document"])
    assert fits == (path.stem in BEYOND_JSON_SCHEMA)


def test_generated_javascript_file_is_up_to_date():
    """`make schemas` writes it."""
    assert (javascript.FOLDER / javascript.FILE).read_text(encoding="utf-8") == javascript.loaders()
