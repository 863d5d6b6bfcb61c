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
from collector.context import EXTENSION, Collector, check_studies
from collector.oblivious.gateway import Gateway
from collector.oblivious.keys import GatewayKeys
from collector.pages.operator import page
from collector.pages.participant import participant
from collector.settings import Settings, server_settings
from collector.views.gateway import EXTENSION as GATEWAY
from collector.views.gateway import OnlyOblivious, gateway


def create_app(
    config: Settings | Mapping[str, object] | None = None,
    *,
    today: Callable[[], date] = utc_today,
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
    settings = settings_of(config)
    app = Flask("collector", static_folder=None, template_folder="templates")
    collector = Collector.of(settings, today)
    check_studies(collector.database, settings.body_limit)
    app.extensions[EXTENSION] = collector
    handling.install(app, collector.identity)
    app.url_value_preprocessor(check_study_id)
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


def settings_of(config: Settings | Mapping[str, object] | None) -> Settings:
    """Return the settings that `create_app` is given."""
    if config is None:
        return server_settings()
    return config if isinstance(config, Settings) else Settings.from_mapping(config)
