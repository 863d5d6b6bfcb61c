"""The application of a node: its own routes, and those of a collector that its operator and devices use.

A node is a separate server. It has a collector's database, keys, audit log and daily upkeep, and takes
sealed shares of secure sums instead of reports.
"""

import os
from collections.abc import Callable, Mapping

from flask import Flask, Response

from collector.api import handling
from collector.api.health import health
from collector.api.openapi import Api, Operation, serve_document
from collector.api.operator import operator
from collector.api.studies import studies
from collector.app import open_collector, unfinished_studies
from collector.clock import utc_today
from collector.context import EXTENSION
from collector.nodes import api
from collector.nodes.keys import NodeKeys
from collector.nodes.node import Node
from collector.settings import Settings
from ldp_client.documents.errors import InputError, StudyError

# The operations of a collector that a node has too.
SHARED = (
    *("listStudies", "fetchStudy", "fetchSignedStudy", "readStatus", "listRetention", "keepUp"),
    *("listKeys", "makeKey", "removeKey", "readAuditLog", "isAlive", "isReady", "readMetrics"),
)
WITH_TOKEN = ("expireReports", "deleteStudy")
OWN_VIEWS: dict[str, Callable[..., Response]] = {"publishStudy": api.publish, "closeStudy": api.close}


ROUTES = Api("operator", __name__)
for _operation in (*studies.operations, *operator.operations, *health.operations):
    if _operation.name in SHARED:
        ROUTES.add(_operation)
    elif _operation.name in WITH_TOKEN:
        ROUTES.add(_operation._replace(view=api.with_token(_operation.view)))
    elif _operation.name in OWN_VIEWS:
        ROUTES.add(_operation._replace(view=OWN_VIEWS[_operation.name]))
serve_document(ROUTES, lambda: OPERATIONS)
OPERATIONS: tuple[Operation, ...] = (*ROUTES.operations, *api.api.operations)


def create_node_app(
    config: Settings | Mapping[str, object] | None = None,
    *,
    key_file: str | os.PathLike[str],
) -> Flask:
    """Build a node of secure sums as a WSGI application, on a database of `ldpkit init --as node`.

    Args:
        config: Settings, or a mapping of their names; None reads LDPKIT_* from the environment.
        key_file: the file of the node's keys.

    Returns:
        The Flask application.

    Raises:
        InputError: a setting or the keys are wrong, or the database cannot be used.
    """
    app = Flask("collector.nodes", static_folder=None)
    collector = open_collector(config, utc_today)
    node = Node(NodeKeys.load(key_file), collector.database, collector.settings.body_limit)
    _check_studies(node)
    app.extensions[EXTENSION] = collector
    app.extensions[api.EXTENSION] = node
    handling.install(app)
    app.register_blueprint(api.api)
    app.register_blueprint(ROUTES)
    return app


def _check_studies(node: Node) -> None:
    """Raise InputError unless this node can take the shares of each open study, and sum the closed ones.

    Otherwise it would refuse the shares permanently, and devices drop such shares.
    """
    for study in unfinished_studies(node.database):
        try:
            node.check_size(study)
        except StudyError as error:
            raise InputError(
                f"study {study.id} of this database: {error}; start with the key file and the body_limit "
                "with which it was published",
                code="settings.study_does_not_fit_node",
            ) from None
