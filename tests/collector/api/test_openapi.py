"""The OpenAPI document is true of the routes and of every answer; problems advise what devices do."""

import re
from functools import partial

import pytest
from jsonschema import Draft202012Validator

from collector import problems
from collector.api.health import OPERATIONS
from collector.issuer import app as issuer
from collector.nodes import app as nodes
from collector.nodes.keys import NodeKeys
from collector.oblivious import GatewayKeys
from ldp_client.device.requests import FINAL
from tests.kit.collectors import REPOSITORY, TOKEN, build_report, ensure_database


@pytest.mark.parametrize(
    ("kind", "operations"),
    [("collector", OPERATIONS), ("node", nodes.OPERATIONS), ("issuer", issuer.OPERATIONS)],
)
def test_openapi_describes_exactly_the_routes_and_who_needs_a_key(habits, tmp_path, kind, operations):
    app, routes = habits.app, set()
    settings = {"database": f"sqlite:///{tmp_path / kind}", "token": TOKEN}
    if kind != "collector":
        ensure_database(settings["database"])
        NodeKeys.generate().save(tmp_path / "node.key")
        node = partial(nodes.create_node_app, key_file=tmp_path / "node.key")
        app = (node if kind == "node" else issuer.create_issuer_app)(settings)
    for rule in app.url_map.iter_rules():
        if not rule.endpoint.startswith(("page.", "participant.")):
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
            routes |= {(method.lower(), path) for method in rule.methods - {"HEAD", "OPTIONS"}}
    document = app.test_client().get("/openapi.json").get_json()
    described = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert routes == described == {(operation.method, operation.path) for operation in operations}
    assert len({operation.name for operation in operations}) == len(operations)
    for operation in operations:
        path = operation.path.format(study_id="habits", report_id="0" * 32, name="ann")
        response = app.test_client().open(path, method=operation.method.upper())
        assert (response.status_code == 401) == operation.needs_key, operation.name
    open_to_all = {operation.name for operation in issuer.OPERATIONS if not operation.needs_key}
    assert open_to_all == {"giveToken", "listPublicKeys", "isAlive", "isReady", "readApi"}
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.slow
@pytest.mark.needs("schemathesis")
def test_generated_requests_get_documented_answers(make_harness, study, tmp_path):
    # It takes a second, and a package that `make test-all` alone installs.
    from tests.kit.contract import run_cases

    GatewayKeys.generate().save(tmp_path / "ohttp.keys")
    harness = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"), published=[study])
    answered = run_cases(harness, [build_report(study) for _ in range(5)], 12)
    assert answered.total() >= 5 * 12


def test_problems_match_their_table_and_device_behaviour():
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")
    for status in {kind.status for kind in kinds if kind.retry_after is not None} - {425}:
        assert f"| {status}, `Retry-After` |" in text
    final = [kind for kind in kinds if "drop" in kind.advice.lower()]
    assert {kind.name for kind in final} == set(FINAL)
    assert all("if `digest` is" in kind.advice for kind in final)
