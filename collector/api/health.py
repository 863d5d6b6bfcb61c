"""Routes for load balancers, supervisors, Prometheus, and programs that read the API's description."""

from flask import Response, jsonify
from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from collector import metrics
from collector.api.auth import authorize
from collector.api.exports import exports
from collector.api.gateway import gateway
from collector.api.openapi import Api, Operation, serve_document
from collector.api.operator import operator
from collector.api.reports import reports
from collector.api.studies import studies
from collector.context import current_collector
from collector.errors import problem_of
from collector.keys import Role
from collector.models import CollectorRow
from collector.problems import UNAVAILABLE, ProblemError
from collector.status import database_up, measures_of

health = Api("health", __name__)
READY_SECONDS = 2.0


@health.operation("get", "/healthz", "Health")
def is_alive() -> Response:
    """Answer 200 while the process answers, whatever the database does."""
    return jsonify(status="ok")


@health.operation("get", "/readyz", "Health")
def is_ready() -> Response:
    """Answer 200 while the database answers and takes what is written, 503 while it is slow, full or away."""
    collector = current_collector()
    collector.writer.require_moving()
    collector.database.require_answer(READY_SECONDS)
    if collector.writer.is_failing:
        # Nothing else might be written before this answers: a load balancer sends nothing until then.
        nothing_new = update(CollectorRow).values(is_copy=CollectorRow.is_copy)
        collector.writer.act(lambda session: session.execute(nothing_new))
    return jsonify(status="ok")


@health.operation("get", "/metrics", media_type=metrics.MEDIA_TYPE, is_provable=True)
def read_metrics() -> Response:
    """Return the metrics. They need a key, because frequent readings would show when each report arrives.

    If no key can be looked up, return only whether the database answers, which `/readyz` also shows to
    anyone.
    """
    collector = current_collector()
    try:
        authorize(Role.READ)
        text = collector.metrics.render(measures_of(collector))
    except (SQLAlchemyError, ProblemError) as error:
        if problem_of(error).kind is not UNAVAILABLE:
            raise
        text = metrics.rendered([database_up(False)])
    return Response(text, content_type=metrics.MEDIA_TYPE)


serve_document(health, lambda: OPERATIONS)
OPERATIONS: tuple[Operation, ...] = (
    *studies.operations,
    *operator.operations,
    *reports.operations,
    *exports.operations,
    *gateway.operations,
    *health.operations,
)
