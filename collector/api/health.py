"""Routes for load balancers, supervisors, Prometheus, and programs that read the API's description."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify
from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector import metrics
from collector.api import exports, operator, retaining, studies
from collector.api.auth import requires
from collector.api.openapi import JSON, KEY, TEXT, Operation, json_of, openapi_document
from collector.context import current_collector
from collector.db import problem_of
from collector.keys import Role
from collector.models import CollectorRow
from collector.operator.measures import database_up, measures_of
from collector.problems import UNAVAILABLE, ProblemError
from collector.views import gateway, reports, shares

health = Blueprint("health", __name__)
READY_SECONDS = 2.0


@health.get("/healthz")
def alive() -> Response:
    """200 while the process answers, whatever the database does."""
    return jsonify(status="ok")


@health.get("/readyz")
def ready() -> Response:
    """200 while the database answers in time and takes what is written, 503 otherwise."""
    collector = current_collector()
    collector.writer.require_moving()
    collector.database.require_answer(READY_SECONDS)
    if collector.writer.is_failing:
        # Nothing else might be written before this answers: a load balancer sends nothing until then.
        collector.writer.act(_write_nothing_new)
    return jsonify(status="ok")


def _write_nothing_new(session: Session) -> None:
    """Write a row as it is, which fails as every other commit does."""
    session.execute(update(CollectorRow).values(identity=CollectorRow.identity))


@health.get("/metrics")
def render_metrics() -> Response:
    """Return the metrics. They need a key, because frequent readings would show when each report arrives.

    If no key can be looked up, return only whether the database answers, which `/readyz` also shows to
    anyone.
    """
    try:
        text = _all_metrics()
    except (SQLAlchemyError, ProblemError) as error:
        if problem_of(error).kind is not UNAVAILABLE:
            raise
        text = metrics.rendered([database_up(False)])
    return Response(text, content_type=metrics.MEDIA_TYPE)


@requires(Role.READ)
def _all_metrics() -> bytes:
    collector = current_collector()
    return collector.metrics.render(measures_of(collector))


@health.get("/openapi.json")
def describe() -> Response:
    """Return the OpenAPI document of this kind of server."""
    is_node = current_collector().node is not None
    return jsonify(openapi_document(NODE_OPERATIONS if is_node else OPERATIONS))


HEALTH = (
    Operation(
        "get", "/healthz", "isAlive", "Whether the process answers.", {200: ("Alive", json_of("Health"))}
    ),
    Operation(
        "get", "/readyz", "isReady", "Whether the database answers.", {200: ("Ready", json_of("Health"))}
    ),
    Operation(
        "get",
        "/metrics",
        "readMetrics",
        "Counts of reports and commits for Prometheus.",
        {200: ("Prometheus' text format", {metrics.MEDIA_TYPE: TEXT})},
        KEY,
    ),
    Operation(
        "get",
        "/openapi.json",
        "readApi",
        "This document.",
        {200: ("OpenAPI", {JSON: {"type": "object"}})},
    ),
)
OPERATIONS = (
    *studies.OPERATIONS,
    *operator.OPERATIONS,
    *retaining.OPERATIONS,
    *reports.OPERATIONS,
    *exports.OPERATIONS,
    *gateway.OPERATIONS,
    *HEALTH,
)
NODE_OPERATIONS = (
    *studies.OPERATIONS,
    *operator.OPERATIONS,
    *retaining.OPERATIONS,
    *shares.OPERATIONS,
    *HEALTH,
)
