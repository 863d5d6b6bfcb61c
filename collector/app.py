"""The application factory: routes and layers around a collector."""

from collections.abc import Callable, Mapping
from datetime import date

from flask import Flask

from collector import store
from collector.api import handling
from collector.api.cors import ForeignPages
from collector.api.exports import exports
from collector.api.gateway import EXTENSION as GATEWAY
from collector.api.gateway import OnlyOblivious, gateway
from collector.api.health import health
from collector.api.operator import operator
from collector.api.reports import UploadShortcut, reports
from collector.api.studies import studies
from collector.clock import utc_today
from collector.context import EXTENSION, Collector
from collector.db import Database
from collector.oblivious import Gateway, GatewayKeys
from collector.pages.operator import page
from collector.pages.participant import LOGO, participant, read_logo
from collector.reports.rules import Rules
from collector.settings import Settings
from collector.tickets.codes import refuse_issuers
from ldp_client.documents.errors import InputError
from schemas import Study


def create_app(
    config: Settings | Mapping[str, object] | None = None, *, today: Callable[[], date] = utc_today
) -> Flask:
    """Build a collector as a WSGI application, on a database that `ldpkit init` made.

    Args:
        config: Settings, or a mapping of their names; None reads LDPKIT_* from the environment.
        today: the clock, which gives the day in UTC; for tests.

    Returns:
        The Flask application.

    Raises:
        InputError: a setting is wrong, or the database cannot be used.
    """
    app = Flask("collector", static_folder=None, template_folder="pages/templates")
    collector = Collector(config, today)
    settings = collector.settings
    _check_studies(collector)
    app.extensions[EXTENSION] = collector
    handling.install(app)
    for blueprint in (studies, operator, reports, exports, health, page, participant, gateway):
        app.register_blueprint(blueprint)
    app.wsgi_app = UploadShortcut(app.wsgi_app, collector)  # type: ignore[method-assign]
    if settings.logo:
        app.extensions[LOGO] = read_logo(settings.logo)
    if settings.ohttp_keys:
        # Inner requests enter here, behind the layer that refuses direct requests.
        keys = GatewayKeys.load(settings.ohttp_keys)
        app.extensions[GATEWAY] = Gateway(keys, app.wsgi_app)
    if settings.require_ohttp:
        app.wsgi_app = OnlyOblivious(app.wsgi_app)  # type: ignore[method-assign]
    if settings.cors_origins:
        # The outermost layer, because every answer needs these headers.
        app.wsgi_app = ForeignPages(app.wsgi_app, settings.cors_origins)  # type: ignore[method-assign]
    return app


def unfinished_studies(database: Database) -> list[Study]:
    """Return the open studies, and closed secure sums that are neither summed nor deleted.

    Raises InputError for an issuer's database.
    """
    with database.read() as session:
        refuse_issuers(session)
        unfinished = store.unfinished_documents(session)
    # A connection must not cross the fork that starts a worker.
    database.engine.dispose()
    # Secure sums have a protocol.
    read = [
        (Study.from_json(text), is_open) for text, is_open in unfinished if is_open or b'"protocol"' in text
    ]
    return [study for study, is_open in read if is_open or study.protocol is not None]


def _check_studies(collector: Collector) -> None:
    """Raise InputError unless this server can take the reports of each open study.

    Otherwise it would refuse the reports permanently, and devices drop such reports.
    """
    for study in unfinished_studies(collector.database):
        if study.protocol is not None:
            raise InputError(
                f"study {study.id} of this database is a secure sum: start a node with its keys (`ldpkit "
                "serve --as node`), or name another database. If the keys are lost, so are its shares",
                code="settings.node_key_missing",
            )
        size = Rules(study).form.size
        if size > collector.settings.body_limit:
            raise InputError(
                f"setting body_limit: study {study.id} of this database makes reports of {size} bytes: "
                f"raise it to {size}",
                code="settings.body_limit_too_small",
            )
