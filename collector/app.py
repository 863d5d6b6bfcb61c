"""The application factory: the only place where the parts are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from flask import Blueprint, Flask

from collector.api import handling
from collector.api.cors import ForeignPages
from collector.api.exports import exports
from collector.api.health import health
from collector.api.operator import operator
from collector.api.parameters import check_study_id
from collector.api.reports import UploadShortcut, reports
from collector.api.studies import studies
from collector.clock import utc_today
from collector.context import EXTENSION, Collector
from collector.oblivious.gateway import Gateway
from collector.oblivious.keys import GatewayKeys
from collector.pages.operator import page
from collector.pages.participant import participant
from collector.settings import Settings, server_settings
from collector.views.gateway import EXTENSION as GATEWAY
from collector.views.gateway import OnlyOblivious, gateway
from collector.views.shares import shares


def create_app(
    config: Settings | Mapping[str, object] | None = None,
    *,
    node_key: str | None = None,
    today: Callable[[], date] = utc_today,
) -> Flask:
    """Build a collector as a WSGI application, on a database that `ldpkit init` made.

    Args:
        config: Settings, or a mapping of their names; None reads LDPKIT_* from the environment.
        node_key: a file of a node's keys; with it the server is a node of secure sums, and nothing else.
        today: the clock, which gives the day in UTC; for tests.

    Returns:
        The Flask application.

    Raises:
        InputError: a setting is wrong, or the database cannot be used.
    """
    settings = _settings(config)
    app = Flask("collector", static_folder=None, template_folder="templates")
    collector = Collector.of(settings, today, node_key)
    app.extensions[EXTENSION] = collector
    handling.install(app, collector.identity)
    app.url_value_preprocessor(check_study_id)
    if collector.node is not None:
        _register(app, studies, operator, shares, health)
    else:
        _register(app, studies, operator, reports, exports, health, page, participant)
        _register(app, gateway)
        headers = handling.default_headers(collector.identity)
        app.wsgi_app = UploadShortcut(app.wsgi_app, collector, headers)  # type: ignore[method-assign]
        if settings.ohttp_keys:
            # Inner requests enter here, behind the layer that refuses direct requests.
            keys = GatewayKeys.load(settings.ohttp_keys)
            app.extensions[GATEWAY] = Gateway(keys, app.wsgi_app)
        if settings.require_ohttp:
            app.wsgi_app = OnlyOblivious(app.wsgi_app, headers)  # type: ignore[method-assign]
        if settings.cors_origins:
            # The outermost layer, because every answer needs these headers.
            app.wsgi_app = ForeignPages(app.wsgi_app, settings.cors_origins)  # type: ignore[method-assign]
    return app


def _register(app: Flask, *blueprints: Blueprint) -> None:
    for blueprint in blueprints:
        app.register_blueprint(blueprint)


def _settings(config: Settings | Mapping[str, object] | None) -> Settings:
    if config is None:
        return server_settings()
    return config if isinstance(config, Settings) else Settings.from_mapping(config)
