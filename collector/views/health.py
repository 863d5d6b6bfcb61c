"""For load balancers and supervisors."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from collector import queries
from collector.context import current_collector

health = Blueprint("health", __name__)


@health.get("/healthz")
def alive() -> Response:
    """200 while the process answers."""
    return jsonify(status="ok")


@health.get("/readyz")
def ready() -> Response:
    """200 while the database answers too, 503 otherwise."""
    with current_collector().database.read() as session:
        queries.ping(session)
    return jsonify(status="ok")
