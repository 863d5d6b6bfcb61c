"""The application factory: the only place where the parts are joined."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Any

from flask import Flask

from collector import limiter, store
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
from collector.daily import Upkeep
from collector.db import Database
from collector.keys import KeyChecks, find_key, hash_key
from collector.limiter import CostBoundCache, Deletions, Limiter, UploadLimits
from collector.metrics import Metrics
from collector.migrations import check
from collector.models import RemovedKeyRow
from collector.oblivious import Gateway, GatewayKeys
from collector.pages.operator import page
from collector.pages.participant import LOGO, participant, read_logo
from collector.problems import OVERLOADED, ProblemError
from collector.reports.intake import Intake
from collector.reports.rules import RuleBook, Rules
from collector.reports.writer import Change, Work, Writer
from collector.settings import TOKEN_VARIABLE, Settings, server_settings
from collector.status import StudyOverview, study_overviews
from collector.studies import CurrentStudies
from collector.tickets.codes import refuse_issuers
from ldp_client.documents.errors import InputError
from schemas import Study

# Bodies of the largest size, in all threads together: a body becomes objects of up to forty times its bytes.
BODIES_IN_PARSING = 2
PARSING_PATIENCE = 5.0
# Reports that may wait to be written in a process.
MOST_QUEUED = 100_000
MOST_EXPORTS = 8


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
    collector = open_collector(config, today)
    settings = collector.settings
    _check_studies(collector)
    app.extensions[EXTENSION] = collector
    handling.install(app)
    for blueprint in (studies, operator, reports, exports, health, page, participant, gateway):
        app.register_blueprint(blueprint)
    app.wsgi_app = UploadShortcut(app.wsgi_app, collector, handling.DEFAULT_HEADERS)  # type: ignore[method-assign]
    if settings.logo:
        app.extensions[LOGO] = read_logo(settings.logo)
    if settings.ohttp_keys:
        # Inner requests enter here, behind the layer that refuses direct requests.
        keys = GatewayKeys.load(settings.ohttp_keys)
        app.extensions[GATEWAY] = Gateway(keys, app.wsgi_app)
    if settings.require_ohttp:
        app.wsgi_app = OnlyOblivious(app.wsgi_app, handling.DEFAULT_HEADERS)  # type: ignore[method-assign]
    if settings.cors_origins:
        # The outermost layer, because every answer needs these headers.
        app.wsgi_app = ForeignPages(app.wsgi_app, settings.cors_origins)  # type: ignore[method-assign]
    return app


def open_collector(config: Settings | Mapping[str, object] | None, today: Callable[[], date]) -> Collector:
    """Open the database, and join the parts of a collector, a node or an issuer.

    Args:
        config: as `create_app` takes it.
        today: the clock.

    Returns:
        The collector.

    Raises:
        InputError: a setting is wrong, the database does not exist with this release's tables, or the token
            is also a key.
    """
    if config is None:
        settings = server_settings()
    else:
        settings = config if isinstance(config, Settings) else Settings.from_mapping(config)
    database = Database(settings.database, settings.lock_timeout, settings.patience)
    check(database)
    _check_token(settings.token, database)
    upkeep = Upkeep(database, today, settings.ticket_secret)
    database.require_more = upkeep.require_right_day
    # Logs a warning if the clock cannot be right. Requests that need no day are still answered.
    with suppress(ProblemError), database.read() as session:
        upkeep.require_right_day(session)
    rules = RuleBook(database)
    find, late = partial(rules.find, reserved=True), timedelta(days=settings.grace_days)
    intake = Intake(database, find, today, late, settings.ticket_secret)

    def write(works: Sequence[Work]) -> Sequence[Any]:
        try:
            # Before the first reports of a day, the upkeep erases the order of earlier reports.
            upkeep.run_if_due()
        except ProblemError as problem:
            # A report needs a day; a withdrawal needs none.
            changes = [work for work in works if isinstance(work, Change)]
            made = iter(intake.store(changes))
            return [next(made) if isinstance(work, Change) else problem for work in works]
        return intake.store(works)

    def overviews() -> list[StudyOverview]:
        with database.read() as session:
            return study_overviews(session)

    def room(capacity: float, patience: float, detail: str) -> Limiter:
        return Limiter(capacity, patience, lambda: ProblemError(OVERLOADED, detail))

    metrics = Metrics()
    writer = Writer(write, database.act, MOST_QUEUED, metrics.observe_commit, settings.patience)
    token_hash = None if settings.token is None else hash_key(settings.token)
    return Collector(
        settings=settings,
        today=today,
        database=database,
        metrics=metrics,
        rules=rules,
        current=CurrentStudies(database),
        writer=writer,
        limits=UploadLimits(settings.upload_rate),
        deletions=Deletions(limiter.DELETION_RATE),
        studies=CostBoundCache(overviews),
        parsing=room(BODIES_IN_PARSING * settings.body_limit, PARSING_PATIENCE, "too much is being read"),
        exports=room(MOST_EXPORTS, 0.0, f"{MOST_EXPORTS} exports are being read"),
        upkeep=room(1, 0.0, "the upkeep is under way"),
        keys=KeyChecks(database, token_hash, metrics, today, writer.act),
    )


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
        size = Rules.of(study).form.size
        if size > collector.settings.body_limit:
            raise InputError(
                f"setting body_limit: study {study.id} of this database makes reports of {size} bytes: "
                f"raise it to {size}",
                code="settings.body_limit_too_small",
            )


def _check_token(token: str | None, database: Database) -> None:
    """Raise InputError if the operator's token is also a key, which would then have all rights."""
    if token is None:
        return
    with database.read() as session:
        hashed = hash_key(token)
        key, removed = find_key(session, hashed), session.get(RemovedKeyRow, hashed)
    if key is not None or removed is not None:
        what = "that was removed" if key is None else f"for {key.role.value}"
        raise InputError(
            f"setting token: is a key {what}, and would be for everything: "
            f"unset {TOKEN_VARIABLE}, or name another token",
            code="settings.token_is_a_key",
        )
