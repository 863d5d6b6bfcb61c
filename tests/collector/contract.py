"""Schemathesis over the OpenAPI document of a collector in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from schemas import Report

if TYPE_CHECKING:
    from tests.collector.conftest import Harness

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SEED = 20260615


def run_cases(harness: Harness, reports: list[Report], most: int) -> int:
    """Send up to `most` generated requests, wrong and right, to each operation; returns how many in all.

    Raises where one is answered in a way that the document does not describe.

    Real study and report ids are among the generated ones, so that requests get beyond the first check.
    """
    for report in reports:
        assert harness.put(report).status_code == 201
    schema = schemathesis.openapi.from_wsgi("/openapi.json", harness.app)
    sent = 0
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
        def send(case: schemathesis.Case) -> None:
            nonlocal sent
            sent += 1
            _make_real(case, reports[sent % len(reports)], sent)
            case.call_and_validate(headers=harness.operator, checks=CHECKS)

        send()
    return sent


def _make_real(case: schemathesis.Case, report: Report, number: int) -> None:
    """Name what is stored, in two cases of three; and in some send what a device would."""
    if number % 3 == 0:
        return
    if "study_id" in case.path_parameters:
        case.path_parameters["study_id"] = report.study
    if "report_id" in case.path_parameters:
        case.path_parameters["report_id"] = report.id
    if number % 6 == 1 and case.operation.definition.raw["operationId"] == "uploadReport":
        case.body = report.to_document()
