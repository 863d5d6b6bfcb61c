"""A node of secure sums: it takes sealed shares, and gives away one sum for each study."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import urandom
from typing import Any, NamedTuple, cast

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.orm import Session

from collector import store, studies
from collector.audit_log import Act
from collector.db import Database
from collector.models import DrawingRow
from collector.nodes.drawing import (
    BYTES_A_REPORT,
    NONCE_BYTES,
    Drawing,
    Statement,
    check_commitments,
    digest_of,
    set_digest,
    split_ids,
)
from collector.nodes.keys import NodeKeys
from collector.nodes.summing import Opener, add_shares
from collector.problems import SET_CONFLICT, SHARES_GONE, STUDY_CONFLICT, STUDY_OPEN, ProblemError
from collector.settings import Settings
from collector.store import REPORTS, PackedReport
from ldp_client.device.outbox import MOST_BYTES
from ldp_client.device.shares import body_size
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import StatementError, StudyError
from ldp_client.secure_sum import OVERHEAD_BYTES
from schemas import Study

DRAWINGS = cast(Table, DrawingRow.__table__)


class Part(NamedTuple):
    """A node's part in a drawing: see models.py. What is not known yet is None."""

    nonce: bytes
    commitment: str
    shown_for: bytes | None = None
    drawing: bytes | None = None
    ids: bytes | None = None
    total: bytes | None = None


def find_part(session: Session, study: int, keep: bool = False) -> Part | None:
    """Return the node's part in the study's drawing.

    keep: lock it until this transaction ends.
    """
    statement = select(*[DRAWINGS.c[name] for name in Part._fields]).where(DRAWINGS.c.study == study)
    row = session.execute(statement.with_for_update() if keep else statement).one_or_none()
    return None if row is None else Part(*row)


def change_part(session: Session, study: int, **values: Any) -> None:
    """Record what became known of the node's part."""
    session.execute(update(DRAWINGS).where(DRAWINGS.c.study == study).values(**values))


def share_ids(session: Session, study: int) -> list[bytes]:
    """Return the ids of a study's shares, ascending, without withdrawn ones."""
    statement = select(REPORTS.c.id).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return [bytes(found) for found in session.scalars(statement.order_by(REPORTS.c.id))]


def is_fixed(session: Session, study: int, report_id: bytes) -> bool:
    """Return True if a closed study has this share or had it when its set was bound.

    Then the share may be part of the sum.
    """
    held = select(REPORTS.c.id).where(REPORTS.c.study == study, REPORTS.c.id == report_id)
    if session.scalar(held.where(REPORTS.c.payloads != b"")) is not None:
        return True
    # Not the whole part: a drawing has many megabytes, and all uploads wait for this.
    ids = session.scalar(select(DRAWINGS.c.ids).where(DRAWINGS.c.study == study))
    return report_id in split_ids(ids or b"")


def share_count(session: Session, study: int) -> int:
    """Return how many shares a study has, without withdrawn ones."""
    counted = select(func.count()).where(REPORTS.c.study == study, REPORTS.c.payloads != b"")
    return session.scalars(counted).one()


# Limits on the rows and the bytes that are read at once.
MOST_AT_ONCE, BYTES_AT_ONCE = 500, 1 << 24
# The most bytes of a drawing: some two million reports. Only operators send drawings.
MOST_DRAWING_BYTES = 1 << 26
GONE = (
    "shares of its set were deleted at this node before they were summed: this study has no sum any more "
    "(`ldpkit status --log` there says why)"
)


@dataclass(frozen=True)
class Node:
    """A node.

    All uploads wait for the writer's transactions, `act`: slow work stays outside.

    Attributes:
        keys: the node's keys.
        database: stores the sealed shares as reports.
        body_limit: the setting.
    """

    keys: NodeKeys
    database: Database
    body_limit: int = Settings.body_limit
    _openers: dict[str, Opener] = field(default_factory=dict)

    def place(self, study: Study) -> int:
        """Return this node's place among the study's nodes. Raises StudyError if it has none, or several."""
        if study.protocol is None:
            raise StudyError(
                "protocol", "is missing: this server is a node of secure sums", code="study.protocol_missing"
            )
        keys = [(node.sealing_key + node.signing_key).hex() for node in study.protocol.nodes]
        if keys.count(self.keys.fragment) > 1:
            raise StudyError(
                "protocol.nodes",
                "names this node's keys twice: every node needs separate keys",
                code="study.node_keys_twice",
            )
        if self.keys.fragment not in keys:
            raise StudyError(
                "protocol.nodes", "does not name this node's keys", code="study.node_keys_missing"
            )
        return keys.index(self.keys.fragment)

    def publish(self, session: Session, study: Study) -> bool:
        """Publish a study that names this node, as `studies.publish`.

        A study may have only one version: two sums of nearly the same devices would reveal the devices in
        which they differ. Raises StudyError, ProblemError.
        """
        self.check_size(study)
        if study.channel is None or study.channel.tickets is None:
            problem = "is missing: without tokens, anyone could choose whom an answer is summed with"
            raise StudyError("channel.tickets", problem, code="study.tickets_missing")
        if (sent := body_size(study)) > MOST_BYTES:
            problem = f"make shares of {sent} bytes, and a device sends {MOST_BYTES} at most: ask less"
            raise StudyError("questions", problem, code="study.questions_not_summable")
        row = store.locked_or_new_study(session, study.id)
        if row.version not in (store.NEVER_PUBLISHED, study.version):
            detail = f"version {row.version} is published, and a secure sum has one version alone"
            raise ProblemError(STUDY_CONFLICT, detail, "version")
        return studies.publish(session, study)

    def check_size(self, study: Study) -> None:
        """Raise StudyError if the study's shares, or the drawing, would be too large for this node."""
        opener = Opener.of(study, self.place(study), self.keys.sealing)
        assert study.protocol is not None
        share, drawing = opener.share_size + OVERHEAD_BYTES, BYTES_A_REPORT * study.protocol.devices
        raised = f"raise this node's body_limit, now {self.body_limit}"
        if share > self.body_limit:
            raise StudyError(
                "questions",
                f"make shares of {share} bytes here: ask less, or {raised}",
                code="study.shares_too_large",
            )
        if drawing > self.drawing_limit:
            raise StudyError(
                "protocol.devices",
                f"needs bodies of {drawing} bytes: {raised}",
                code="study.devices_too_many",
            )

    @property
    def drawing_limit(self) -> int:
        """Return the most bytes of a drawing."""
        return max(self.body_limit, MOST_DRAWING_BYTES)

    def opener(self, study_id: str) -> Opener:
        """Return the opener of a published study's shares. Raises ProblemError for an unknown study."""
        if study_id not in self._openers:
            with self.database.read() as session:
                document = store.require_document(session, study_id)
            study = Study.from_json(document.canonical)
            self._openers[study_id] = Opener.of(study, self.place(study), self.keys.sealing)
        return self._openers[study_id]

    def take(self, study_id: str, report_id: str, sealed: bytes) -> PackedReport:
        """Check that a share can be opened; return it in stored form. Raises ReportError, ProblemError."""
        opener = self.opener(study_id)
        opener.open(report_id, sealed)
        return PackedReport(bytes.fromhex(report_id), opener.study.version, sealed)

    def state(self, study_id: str) -> tuple[int, bytes | None]:
        """Return how many shares a closing would find here, and the drawing that binds the node, if any.

        Open studies are counted too, so that the aggregator can check before it closes. Raises ProblemError.
        """
        with self.database.read() as session:
            number = store.require_study(session, study_id).number
            part = find_part(session, number)
            return share_count(session, number), part and part.drawing

    def commit(self, study_id: str, act: Act) -> tuple[Statement, list[bytes]]:
        """Commit to the node's set and to a nonce, permanently; return the set too.

        Raises ProblemError while the study is open, and if shares were deleted since.
        """
        with self.database.read() as session:
            number = _closed_study(session, study_id)
            ids, part = share_ids(session, number), find_part(session, number)
        if part is None:
            nonce = urandom(NONCE_BYTES)
            signed = self._statement("draw", study_id, ids, sha256(nonce).hexdigest())
            text = canonical_json(signed.to_document())

            def commit_once(session: Session) -> Part:
                store.locked_study(session, study_id)
                if (earlier := find_part(session, number)) is not None:
                    return earlier
                session.execute(insert(DRAWINGS).values(study=number, nonce=nonce, commitment=text))
                return Part(nonce, text)

            part = act(commit_once)
        statement = Statement.from_document(parse_json(part.commitment, StatementError, len(part.commitment)))
        if statement.set != set_digest(ids):
            raise ProblemError(SHARES_GONE, GONE)
        return statement, ids

    def show(self, session: Session, study_id: str, commitments: Sequence[Statement]) -> bytes:
        """Return the nonce, for these commitments and no others ever. Raises ProblemError, StatementError."""
        number = _closed_study(session, study_id)
        opener, part = self.opener(study_id), find_part(session, number, keep=True)
        check_commitments(opener.study, commitments)
        own = canonical_json(commitments[opener.node].to_document())
        shown_for = digest_of(commitments)
        if part is None or own != part.commitment or part.shown_for not in (None, shown_for):
            raise ProblemError(SET_CONFLICT, "this node committed to something else, or with other nodes")
        change_part(session, number, shown_for=shown_for)
        return part.nonce

    def total(self, study_id: str, drawing: Drawing, act: Act) -> tuple[Statement, bytes]:
        """Bind the node to the drawn set, permanently, and return the only sum; a repetition gets the same.

        The sum is durable on return. Raises ProblemError for a drawing with other commitments and if shares
        are missing, StatementError if the drawing does not follow from the commitments.
        """
        with self.database.read() as session:
            number = _closed_study(session, study_id)
            part = find_part(session, number)
        # 1. Bind the node, before it makes any sum.
        if part is None or part.shown_for != digest_of(drawing.commitments):
            raise ProblemError(SET_CONFLICT, "this node did not draw with these commitments", "commitments")
        text = drawing.to_json().encode()
        if part.drawing == text:
            ids = split_ids(part.ids or b"")
        else:
            ids = drawing.chosen(self.opener(study_id).study)

            def bind_once(session: Session) -> None:
                bound = find_part(session, number, keep=True)
                assert bound is not None
                if bound.ids is None:
                    change_part(session, number, ids=b"".join(ids), drawing=text)
                elif bound.ids != b"".join(ids):
                    detail = "this node is bound to another set, and sums no second one"
                    raise ProblemError(SET_CONFLICT, detail)

            act(bind_once)
        # 2. Sum, and keep the sum, so that it stays the same whatever becomes of the shares.
        total = part.total
        if total is None:
            opener = self.opener(study_id)
            total = made = add_shares(opener, self._shares(number, ids, at_once(opener)))
            act(lambda session: change_part(session, number, total=made))
        return self._statement("sum", study_id, ids, sha256(total).hexdigest()), total

    def _shares(self, number: int, ids: Sequence[bytes], rows: int) -> Iterator[tuple[bytes, bytes]]:
        for chunk in store.chunks(ids, rows):
            with self.database.read() as session:
                held = store.held_reports(session, number, chunk)
            if len(held) < len(chunk):
                raise ProblemError(SHARES_GONE, GONE)
            yield from ((report_id, held[report_id][2]) for report_id in chunk)

    def _statement(self, kind: str, study_id: str, ids: Sequence[bytes], total: str) -> Statement:
        opener = self.opener(study_id)
        subject = (kind, study_id, opener.study.digest, opener.node, len(ids), set_digest(ids))
        return Statement(*subject, total).signed(self.keys.signing)


def at_once(opener: Opener) -> int:
    """Return how many shares to read at once, so that memory depends on neither their number nor length."""
    return max(1, min(MOST_AT_ONCE, BYTES_AT_ONCE // opener.share_size))


def _closed_study(session: Session, study_id: str) -> int:
    """Return the study's number. Raises ProblemError unless it is published and closed."""
    study = store.require_study(session, study_id)
    if not study.closed:
        raise ProblemError(STUDY_OPEN, "shares still come in")
    return study.number
