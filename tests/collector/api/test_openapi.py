"""The OpenAPI document is true: of the routes, and of every answer to generated requests."""

import re

import pytest
from jsonschema import Draft202012Validator

from collector.api.health import OPERATIONS
from collector.api.openapi import SCHEMAS
from collector.issuer.app import OPERATIONS as ISSUER_OPERATIONS
from collector.nodes.app import OPERATIONS as NODE_OPERATIONS
from collector.oblivious import GatewayKeys
from collector.reports.uploads import MOST_REPORTS
from tests.kit.programs import need


def test_openapi_describes_exactly_the_api_routes(empty):
    routes = set()
    for rule in empty.app.url_map.iter_rules():
        if rule.endpoint.startswith(("page.", "participant.")):
            continue
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        routes |= {(method.lower(), path) for method in rule.methods - {"HEAD", "OPTIONS"}}
    assert routes == {(operation.method, operation.path) for operation in OPERATIONS}


def test_the_document_is_served(empty):
    response = empty.client.get("/openapi.json")
    assert response.status_code == 200
    document = response.get_json()
    assert document["openapi"] == "3.1.0"
    for operations in (OPERATIONS, NODE_OPERATIONS, ISSUER_OPERATIONS):
        assert len({operation.name for operation in operations}) == len(operations)
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
    assert SCHEMAS["Batch"]["properties"]["reports"]["maxItems"] == MOST_REPORTS


def test_only_operations_that_need_a_key_answer_401(habits):
    for operation in OPERATIONS:
        path = operation.path.format(study_id="habits", report_id="0" * 32, name="ann")
        response = habits.client.open(path, method=operation.method.upper())
        assert (response.status_code == 401) == operation.needs_key, operation.name


CASES_EACH = 12


@pytest.fixture
def run_cases():
    """Imported here: it takes a second, and a package that `make test-all` alone installs."""
    need("schemathesis")
    from tests.kit.contract import run_cases

    return run_cases


@pytest.fixture
def with_gateway(make_harness, study, tmp_path):
    """A collector with a study, which takes requests from relays too."""
    GatewayKeys.generate().save(tmp_path / "ohttp.keys")
    harness = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"))
    assert harness.publish(study).status_code == 201
    return harness


@pytest.mark.slow
def test_generated_requests_get_documented_answers(run_cases, with_gateway, study, make_report):
    answered = run_cases(with_gateway, [make_report(study) for _ in range(5)], CASES_EACH)
    assert answered.total() >= 5 * CASES_EACH
    # Some get through a gateway, and some are not for its key.
    assert {("askObliviously", 200), ("askObliviously", 400)} <= set(answered)


def test_undocumented_answer_is_detected(run_cases, with_gateway, study, make_report):
    from schemathesis.core.failures import FailureGroup

    with_gateway.app.view_functions["health.is_alive"] = lambda: ("", 418)
    with pytest.raises(FailureGroup, match="418"):
        run_cases(with_gateway, [make_report(study)], 1, "/healthz")
