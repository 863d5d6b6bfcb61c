"""The parts of one running collector, as the views find them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

from flask import current_app
from sqlalchemy.orm import Session

from collector.bounding import CostBoundCache, Room, log_throttled
from collector.metrics import Metrics
from collector.oblivious.keys import GatewayKeys
from collector.oblivious.needed import relayed_with_reports
from collector.operator.key_checks import DailyLines, KeyChecks
from collector.problems import OVERLOADED, ProblemError
from collector.reports import intake
from collector.reports.limits import UploadLimits
from collector.reports.rules import RuleBook, Rules, bodies_in_words
from collector.reports.withdrawing import Deletions
from collector.reports.writer import Change, Work, Writer
from collector.secure_sum.node import Node
from collector.settings import TOKEN_VARIABLE, Settings
from collector.storage import overviews, queries
from collector.storage.database import Bounds, Database
from collector.storage.invitations import WRONG_KEY, Spending
from collector.storage.keys import find_key, hash_key, was_removed
from collector.storage.migrating import check
from collector.storage.node_keys import NodeKeys
from collector.storage.overviews import Arrivals, StudyOverview
from collector.storage.upkeep import Upkeep
from collector.studies.publishing import CurrentStudies, Published, load_keys
from ldp_client.core.public_keys import PublicKey
from ldp_client.documents.errors import InputError, StudyError, UsageError
from ldp_client.words.text import counted
from schemas import Study

EXTENSION = "ldpkit"
T = TypeVar("T")
# Of the largest size, in all threads together: a body becomes objects of up to forty times its bytes.
BODIES_IN_PARSING = 2
PARSING_PATIENCE = 5.0
# Database connections that a process reads with at once; two more are for writing and for /readyz.
READERS = 4
# Reports that may wait to be written in a process.
MOST_QUEUED = 100_000
MOST_EXPORTS = 8


class Needed(NamedTuple):
    """How large a body devices may send, and what is to be said where that is above the limit."""

    size: int
    problem: str


@dataclass(frozen=True)
class Collector:
    """One collector. today: the clock, which knows days only. signers: keys that may publish.

    identity: which collector this is; a device drops a report at the word of its own collector only.

    parsing: room for the bytes of bodies that are inflated, parsed and checked now. exports: room for
    streams, each of which holds a thread for as long as its reader takes. counting: room for one summary that
    is counted when somebody asks for it. daily: lines of the audit log that say no time. gateway_keys: those
    that open what comes through relays, if any.
    """

    settings: Settings
    database: Database
    rules: RuleBook
    writer: Writer
    limits: UploadLimits
    deletions: Deletions
    metrics: Metrics
    studies: CostBoundCache[list[StudyOverview]]
    arrivals: CostBoundCache[list[Arrivals]]
    current: CurrentStudies
    today: Callable[[], date]
    signers: tuple[PublicKey, ...]
    node: Node | None
    gateway_keys: GatewayKeys
    identity: bytes
    parsing: Room
    exports: Room
    counting: Room
    keys: KeyChecks
    daily: DailyLines

    @classmethod
    def of(cls, settings: Settings, today: Callable[[], date], node_key: str | None = None) -> Collector:
        """Open the database. node_key: a file of keys, which make the server a node of secure sums.

        Raises InputError unless it is there with this release's tables, when its open studies are not for
        this kind of server, and when the token is somebody's key.
        """
        if node_key is not None:
            _refuse_pages(settings)
        bounds = Bounds(READERS, settings.patience)
        database = Database(settings.database, settings.busy_timeout, bounds)
        check(database)
        _check_token(settings.token, database)
        with database.read() as session:
            identity = queries.identity(session)
        secret = settings.invitation_secret
        admission = intake.Admission(today, timedelta(days=settings.late_days), secret)
        rules = RuleBook(database)
        upkeep = Upkeep(database, today, secret)
        database.require_more = upkeep.require_right_day
        _warn_of_doubt(upkeep, database)

        def store(works: Sequence[Work]) -> Sequence[Any]:
            # Before the first reports of a day: those of the days before lose their order.
            find = partial(rules.find, reserved=True)
            metrics.tell_daily(today())
            try:
                upkeep.run_if_due()
            except ProblemError as problem:
                # A report needs a day; what is withdrawn needs none.
                changes = [work for work in works if isinstance(work, Change)]
                made = iter(intake.store(database, find, admission, changes))
                return [next(made) if isinstance(work, Change) else problem for work in works]
            return intake.store(database, find, admission, works)

        metrics = Metrics()
        writer = Writer(store, database.act, MOST_QUEUED, metrics.observe_commit, settings.patience)
        limits = UploadLimits(settings.upload_rate)
        deletions = Deletions(settings.deletion_rate, metrics)
        token_hash = None if settings.token is None else hash_key(settings.token)
        counts = _cached(database, overviews.study_overviews), _cached(database, overviews.arrivals)
        signers = load_keys(settings.signing_keys)
        node = None
        if node_key is not None:
            node = Node(NodeKeys.load(node_key), database, settings.body_limit)
        # A node leaves alone what `ldpkit init` made.
        gateway_file = settings.ohttp_keys if node is None else None
        gateway_keys = GatewayKeys(()) if gateway_file is None else GatewayKeys.load(gateway_file)
        needing = _check_studies(database, node, gateway_keys)
        needing += _withdrawals(database, gateway_keys)
        _check_limit(needing, settings.body_limit)
        counting = (limits, deletions, metrics, *counts, CurrentStudies(database))
        held = (settings, database, rules, writer, *counting, today)
        keys = KeyChecks(database, token_hash, metrics, today, writer.act)
        lines = DailyLines(writer.act, today)
        return cls(*held, signers, node, gateway_keys, identity, *_rooms(settings.body_limit), keys, lines)

    def node_part(self) -> Node:
        """What makes this server a node of secure sums."""
        assert self.node is not None, "the routes of a node belong to nodes"
        return self.node

    def can_take(self, study_id: str, published: Published) -> bool:
        """Whether devices that fetch the study now answer it for something.

        Not at a node that lost the key of its invitations: nobody can make others, and no share gets in. Nor
        where the gateway's key is gone that the study states: reports would wait for ever.
        """
        if self.node is None:
            # A document without the word states no relay, and is not read for it.
            if b'"oblivious"' not in published.canonical:
                return True
            lack = self.gateway_keys.lack_for(self.rules.find(study_id, published.version).study)
            if lack:
                log_throttled(logging.ERROR, lack, code="gateway-key")
            return not lack
        known = self.settings.invitation_secret
        if published.state.closed or Spending.fits(published.state.spending, known):
            return True
        line = f"an open study is served as closed: {WRONG_KEY}"
        log_throttled(logging.ERROR, line, code="invitation-key")
        return False

    def has_changed(self, study_id: str) -> None:
        """Read a study anew that this process has changed."""
        self.current.forget(study_id)
        self.studies.forget()

    def count_refusal(self, problem: ProblemError, study_id: str) -> None:
        """Count an upload that is refused; for its study where this process has met that, or labels would be
        whatever anybody sends."""
        known = study_id if self.rules.knows(study_id) or self.current.knows(study_id) else None
        self.metrics.count(0, 0, [problem.kind.name], known)

    def close(self) -> None:
        """Finish what waits to be written and close the database."""
        self.writer.close()
        self.deletions.close()
        self.database.engine.dispose()


def _rooms(body_limit: int) -> tuple[Room, Room, Room]:
    """For bodies in parsing, exports, and summaries that are counted, beyond which a server is overloaded."""

    def full(detail: str) -> Callable[[], ProblemError]:
        return lambda: ProblemError(OVERLOADED, detail)

    return (
        Room(BODIES_IN_PARSING * body_limit, PARSING_PATIENCE, full("too much is being read")),
        Room(MOST_EXPORTS, 0.0, full(f"{MOST_EXPORTS} exports are being read")),
        Room(1, 0.0, full("another summary is being counted, or the upkeep is under way")),
    )


def _cached(database: Database, read: Callable[[Session], T]) -> CostBoundCache[T]:
    def compute() -> T:
        with database.read() as session:
            return read(session)

    return CostBoundCache(compute)


def _warn_of_doubt(upkeep: Upkeep, database: Database) -> None:
    """Have the log say where the clock cannot be right; the server starts, and takes what needs no day."""
    with database.read() as session, suppress(ProblemError):
        upkeep.require_right_day(session)


def _check_token(token: str | None, database: Database) -> None:
    """Raises InputError where the operator's token is a key, which then might do more than it is for."""
    if token is None:
        return
    with database.read() as session:
        found = find_key(session, token)
        removed = was_removed(session, token)
    if found is not None:
        what = f"for {found.role.value}"
    elif removed:
        what = "that was removed"
    else:
        return
    raise InputError(
        f"setting token: is a key {what}, and would be for everything: "
        f"unset {TOKEN_VARIABLE}, or name another token",
        code="settings.token_is_a_key",
    )


def _refuse_pages(settings: Settings) -> None:
    """Raises UsageError for a node that names other sites' pages."""
    for name in ("origins", "framed_by"):
        if getattr(settings, name):
            raise UsageError(
                f"setting {name}: is for collectors, as no page can send shares to a node",
                code="settings.origins_on_node",
            )


def _check_studies(database: Database, node: Node | None, keys: GatewayKeys) -> list[Needed]:
    """What open studies need of the limit. Raises InputError unless this server can take what devices send
    for each, and can sum those that are closed.

    It would refuse that for good, and devices drop what is refused for good. For want of a gateway's key
    they keep it, and only a running collector closes a study or takes a version with another: that is logged.
    """
    with database.read() as session:
        unfinished = queries.unfinished_documents(session)
    # A connection must not cross the fork that starts a worker.
    database.engine.dispose()
    # Of what is closed only sums matter, which say their route: others are not read.
    read = [(document, is_open) for document, is_open in unfinished if is_open or b'"route"' in document]
    studies = [(Study.from_json(document), is_open) for document, is_open in read]
    needed = []
    for study in [study for study, is_open in studies if is_open or study.route is not None]:
        if node is not None:
            _check_node(node, study)
        elif study.route is not None:
            advice = (
                "start a node, with --node-key FILE, or name another database; "
                "without that file nobody reads its shares: make a new place with `ldpkit init`"
            )
            raise InputError(
                f"study {study.id} of this database is a secure sum: {advice}",
                code="settings.node_key_missing",
            )
        else:
            rules = Rules.of(study)
            problem = f"study {study.id} of this database makes {bodies_in_words(rules)}"
            needed.append(Needed(rules.body_size, problem))
            if lack := keys.lack_for(study):
                log_throttled(logging.ERROR, lack, code="gateway-key")
    return needed


def _withdrawals(database: Database, keys: GatewayKeys) -> list[Needed]:
    """What devices need to withdraw through a relay: requests as long as the reports were that the version
    took, and it may be over since."""
    needed = []
    with database.read() as session:
        # Without a key nothing is opened, however short.
        for study, reports in relayed_with_reports(session) if keys.keys else ():
            if keys.opens(study):
                rules = Rules.of(study)
                made = f"version {study.version} of study {study.id} makes {bodies_in_words(rules)}"
                lost = f"nobody could withdraw what is stored of it ({counted(reports, 'report')})"
                needed.append(Needed(rules.body_size, f"{made}, and {lost}"))
    database.engine.dispose()
    return needed


def _check_limit(needed: Sequence[Needed], body_limit: int) -> None:
    """Raises InputError with the first of what does not fit; what it says to set is enough for all."""
    for one in needed:
        if one.size > body_limit:
            largest = max(other.size for other in needed)
            raise InputError(
                f"setting body_limit: {one.problem}: raise it to {largest}",
                code="settings.body_limit_too_small",
            )


def _check_node(node: Node, study: Study) -> None:
    try:
        node.place(study)
    except StudyError as error:
        wanted = "name the key file that it was published with; without it nobody reads its shares"
        raise InputError(
            f"--node-key: study {study.id} of this database: {error}; {wanted}",
            code="settings.wrong_node_key",
        ) from None
    try:
        node.check_size(study)
    except StudyError as error:
        raise InputError(
            f"setting body_limit: study {study.id} of this database: {error}",
            code="settings.body_limit_too_small_for_study",
        ) from None


def current_collector() -> Collector:
    """The collector of the app that handles this request."""
    collector: Collector = current_app.extensions[EXTENSION]
    return collector
