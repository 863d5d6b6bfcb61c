"""Redeem tickets: checked when a report arrives, spent in the transaction that stores it.

A direct ticket comes in the header LDPKit-Ticket. A blind one bought a token, which comes in Authorization
(RFC 9577, RFC 9578).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from collector.keys import hash_key
from collector.limiter import log_throttled
from collector.problems import TICKET_INVALID, TICKET_NEEDED, TICKET_SPENT, UNAVAILABLE, ProblemError
from collector.store import PackedReport
from collector.tickets.codes import Spending, known_tickets, spend
from ldp_client.core.blind_rsa import SALT_BYTES
from ldp_client.core.tokens import INPUT_BYTES, challenge_header, challenge_of, input_of, key_id_of, token_in
from ldp_client.documents.channel import EXPONENT, TokenKey
from ldp_client.documents.errors import InputError, ReportError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from collector.reports.rules import Rules
    from collector.reports.writer import Upload
    from collector.store import StoredRow, StudyState
    from ldp_client.documents.channel import Tickets
    from schemas import Study

NONCE = slice(2, 34)
KEY_ID = slice(66, 98)
# A token is 472 characters; nothing longer is decoded.
LONGEST_HEADER = 1024
PADDING = padding.PSS(padding.MGF1(hashes.SHA384()), SALT_BYTES)
# RFC 9110 requires this header in a 401; a study with blind tickets has a challenge of RFC 9577 in it.
ASKING = {"WWW-Authenticate": "LDPKit-Ticket"}


class BlindCheck:
    """The check of the tokens that one version of a study accepts."""

    def __init__(self, study: Study, tickets: Tickets) -> None:
        self._challenge = challenge_of(tickets.name, study.digest)
        self._keys = {key_id_of(key.spki): (key, _public_key(key)) for key in tickets.keys}
        header = challenge_header(self._challenge, tickets.keys[0].spki)
        # Devices know its values from the study.
        self.asking = {"WWW-Authenticate": header}

    def needed(self, detail: str) -> ProblemError:
        """Return the problem of a report without a token."""
        return ProblemError(TICKET_NEEDED, detail, headers=self.asking)

    def check(self, authorization: str | None, nonce: bytes | None) -> tuple[bytes, TokenKey]:
        """Check a header's token; return its nonce's hash, and the key that signed it. Raises ProblemError.

        nonce: the only nonce that it may have.
        """
        if not authorization:
            raise self.needed("the report came without a token of the study's issuer")
        token = token_in(authorization) if len(authorization) <= LONGEST_HEADER else None
        if token is None:
            raise self._invalid("the header has no token of type 0x0002")
        if nonce not in (None, token[NONCE]):
            raise self._invalid("the token is not for these shares, or LDPKit-Shares does not name them")
        key, public = self._keys.get(token[KEY_ID], (None, None))
        if key is None or public is None:
            raise self._invalid(
                "the token was signed with a key that this version of the study does not name"
            )
        signed, signature = token[:INPUT_BYTES], token[INPUT_BYTES:]
        if signed != input_of(token[NONCE], self._challenge, key.spki):
            raise self._invalid("the token is for another study, or for another version of it")
        try:
            public.verify(signature, signed, PADDING, hashes.SHA384())
        except InvalidSignature:
            raise self._invalid("the token's signature is wrong") from None
        return hashlib.sha256(token[NONCE]).digest(), key

    def _invalid(self, detail: str) -> ProblemError:
        return ProblemError(TICKET_INVALID, detail, headers=self.asking)


def _public_key(key: TokenKey) -> rsa.RSAPublicKey:
    modulus = int.from_bytes(key.modulus, "big")
    return rsa.RSAPublicNumbers(EXPONENT, modulus).public_key()


def checked(
    rules: Rules, report: PackedReport, ticket: str | None, authorization: str | None, nonce: bytes | None
) -> tuple[PackedReport, bytes | None]:
    """Check what came with a report: its ticket, or its token if its version takes blind tickets.

    Args:
        rules: those of the report's version.
        report: the report.
        ticket: the header LDPKit-Ticket.
        authorization: the header Authorization.
        nonce: the only nonce that the token may have.

    Returns:
        The report, with the stratum of its token's key, and the hash of its ticket, or of its token's nonce.

    Raises:
        ProblemError: the version takes blind tickets and this token is not valid.
    """
    if rules.blind is None:
        return report, None if ticket is None else hash_key(ticket)
    hashed, key = rules.blind.check(authorization, nonce)
    return _filled(rules, report, key.public, rules.blind.asking), hashed


def redeem(
    session: Session,
    rules: Mapping[int, Rules],
    study: StudyState,
    secret: bytes,
    uploads: Sequence[Upload],
    fresh: Sequence[PackedReport],
) -> tuple[list[PackedReport], dict[bytes, ProblemError]]:
    """Spend the tickets of new reports; a ticket that does not fit its report stays unused.

    Args:
        session: the transaction that stores the reports.
        rules: {version: its rules}.
        study: the study's state.
        secret: the bytes of the setting ticket_key.
        uploads: the requests, with the hash that each spends.
        fresh: their reports that are not stored yet.

    Returns:
        New reports that need no ticket, or that spend theirs now, and {id: why the report is refused} of the
        others.
    """
    # 1. Find the reports that need a ticket, and the first report of each ticket.
    wanted = {report.id: report for report in fresh if rules[report.version].needs_ticket(study)}
    taken = [report for report in fresh if report.id not in wanted]
    refused = {report_id: _missing(rules[report.version]) for report_id, report in wanted.items()}
    by_hash: dict[bytes, PackedReport] = {}
    for upload in uploads:
        # Compare the whole report: another report with its id must not be stored on this ticket.
        if upload.ticket is None or wanted.get(upload.reports[0].id) != upload.reports[0]:
            continue
        refused[upload.reports[0].id] = ProblemError(TICKET_SPENT, "the ticket let another report in")
        if upload.ticket not in by_hash:
            by_hash[upload.ticket] = wanted.pop(upload.reports[0].id)
    # 2. Mark the hashes: a token's is its mark, and a direct ticket's mark is keyed.
    blind = {hashed: report for hashed, report in by_hash.items() if rules[report.version].blind}
    direct = {hashed: report for hashed, report in by_hash.items() if hashed not in blind}
    marked = dict(blind)
    if direct:
        try:
            spending = Spending.of(secret, study.spending)
        except InputError as error:
            line = f"no ticket of study {uploads[0].study} can be checked: {error}"
            log_throttled(logging.ERROR, line)
            unknown = ProblemError(UNAVAILABLE, "tickets cannot be checked now; nothing was stored")
            refused.update((report.id, unknown) for report in direct.values())
            direct = {}
        known = known_tickets(session, study.number, direct)
        for hashed, report in direct.items():
            try:
                carried = known.get(hashed)
                marked[spending.mark(hashed)] = _filled(rules[report.version], report, carried, ASKING)
            except ProblemError as problem:
                refused[report.id] = problem
    # 3. Spend them. Another report may have spent one before.
    for mark in sorted(spend(session, study.number, marked)):
        taken.append(marked[mark])
        del refused[marked[mark].id]
    return taken, refused


def _missing(rules: Rules) -> ProblemError:
    detail = "the report came without a ticket"
    return rules.blind.needed(detail) if rules.blind else ProblemError(TICKET_NEEDED, detail, headers=ASKING)


def _filled(
    rules: Rules, report: PackedReport, carried: Mapping[str, str] | None, asking: Mapping[str, str]
) -> PackedReport:
    """Return the report with the values of its ticket or token. Raises ProblemError if these do not fit.

    carried: None for an unknown ticket. asking: the header of a refusal.
    """
    if carried is None:
        raise ProblemError(TICKET_INVALID, "no such ticket is known, or it was used", headers=asking)
    if not rules.public.is_ticketed:
        return report
    try:
        return report._replace(payloads=rules.public.filled(report.payloads, carried))
    except ReportError as error:
        raise ProblemError(TICKET_INVALID, error.problem, error.field, headers=asking) from None


def as_stored(rules: Mapping[int, Rules], report: PackedReport, known: StoredRow) -> PackedReport:
    """Return a resent report with the values that its ticket carried when it was stored."""
    stored = PackedReport._make(known)
    if stored.withdrawn or stored.version != report.version:
        return report
    return stored if rules[report.version].public.agrees(report.payloads, stored.payloads) else report
