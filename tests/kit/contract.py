"""Schemathesis over the OpenAPI document of a collector in this process."""

from collections import Counter

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from collector.problems import KINDS, MEDIA_TYPE
from ldp_client.oblivious.encapsulation import REQUEST_TYPE

TYPES = {kind.type for kind in KINDS}


def problem_type_conformance(_context, response, _case):
    """A refusal has a documented type, whose status it has. Another check refuses other media types."""
    if response.headers["content-type"] == [MEDIA_TYPE]:
        document = response.json()
        assert document["type"] in TYPES
        assert document["status"] == response.status_code


CHECKS = [
    problem_type_conformance,
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
SEED = 20260615


@schemathesis.serializer(REQUEST_TYPE)
def _as_bytes(_context, value):
    """What is generated for a gateway, as it is: bytes are all that the type promises."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def run_cases(harness, reports, most, only=None):
    """Send up to `most` generated requests, wrong and right, to each operation, or only to one path.

    Returns how often each operation, by its id, answered with which status. Raises where one is answered in a
    way that the document does not describe.

    Real study and report ids are among the generated ones, so that requests get beyond the first check.
    """
    for report in reports:
        assert harness.put(report).status_code == 201
    schema = schemathesis.openapi.from_wsgi("/openapi.json", harness.app)
    schema = schema if only is None else schema.include(path=only)
    answered = Counter()
    for operation in [result.ok() for result in schema.get_all_operations()]:

        @seed(SEED)
        @settings(
            max_examples=most,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy())
        def send(case):
            sent = answered.total()
            _make_real(case, reports[sent % len(reports)], sent)
            response = case.call_and_validate(headers=harness.operator, checks=CHECKS)
            answered[_operation(case), response.status_code] += 1

        send()
    return answered


def _operation(case):
    return str(case.operation.definition.raw["operationId"])


def _make_real(case, report, number):
    """Name what is stored, in two cases of three; and in some send what a device would."""
    if number % 3 == 0:
        return
    if "study_id" in case.path_parameters:
        case.path_parameters["study_id"] = report.study
    if "report_id" in case.path_parameters:
        case.path_parameters["report_id"] = report.id
    if number % 6 == 1 and _operation(case) == "uploadReport":
        case.body = report.to_document()
