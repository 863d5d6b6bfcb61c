"""The OpenAPI document is true: of the routes, and of every answer to generated requests."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator
from schemathesis.core.failures import FailureGroup

from collector.views.health import NODE_OPERATIONS, OPERATIONS
from collector.views.openapi import SCHEMAS
from tests.collector.contract import run_cases

CASES_EACH = 50


def test_every_route_for_programs_is_described_and_nothing_else(empty):
    routes = set()
    for rule in empty.app.url_map.iter_rules():
        if rule.endpoint.startswith(("page.", "changing.", "participant.")):
            continue
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        routes |= {(method.lower(), path) for method in rule.methods - {"HEAD", "OPTIONS"}}
    assert routes == {(operation.method, operation.path) for operation in OPERATIONS}


def test_the_document_is_served(empty):
    response = empty.client.get("/openapi.json")
    assert response.status_code == 200
    document = response.get_json()
    assert document["openapi"] == "3.1.0"
    for operations in (OPERATIONS, NODE_OPERATIONS):
        assert len({operation.name for operation in operations}) == len(operations)
    assert json.dumps(document)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_a_schema(name):
    Draft202012Validator.check_schema(SCHEMAS[name])


def test_operations_that_need_a_key_say_so(habits):
    for operation in OPERATIONS:
        path = operation.path.format(study_id="habits", report_id="0" * 32, name="ann")
        response = habits.client.open(path, method=operation.method.upper())
        assert (response.status_code == 401) == operation.needs_key, operation.name


@pytest.mark.slow
def test_generated_requests_get_documented_answers(habits, study, make_report):
    sent = run_cases(habits, [make_report(study) for _ in range(5)], CASES_EACH)
    assert sent >= 5 * CASES_EACH


def test_an_undocumented_answer_would_be_noticed(habits, study, make_report):
    habits.app.view_functions["health.alive"] = lambda: ("", 418)
    with pytest.raises(FailureGroup, match="418"):
        run_cases(habits, [make_report(study)], 1)
