"""Issue tokens: one for each code; the same request gets the same token again."""

from __future__ import annotations

import logging
from functools import lru_cache

from sqlalchemy.orm import Session

from collector.db import Database
from collector.issuer import store
from collector.issuer.models import CodeRow, TokenKeyRow
from collector.issuer.order_erasing import Forgetting
from collector.issuer.signing import FaultError, SigningKey
from collector.limiter import Limiter, log_throttled
from collector.problems import (
    INTERNAL,
    OVERLOADED,
    TICKET_INVALID,
    TICKET_NEEDED,
    TICKET_SPENT,
    UNAVAILABLE,
    Kind,
    ProblemError,
)
from collector.reports.limits import TokenBucket
from ldp_client.core.tokens import REQUEST_BYTES, TYPE, short_id_of
from ldp_client.documents.errors import InputError

WRONG_A_SECOND = 5.0
# A signature takes some milliseconds of a processor: more at once would delay all of them.
AT_ONCE, PATIENCE = 8, 5.0

REQUEST_INVALID = Kind(
    "token-request-invalid", 422, "Send a TokenRequest of type 0x0002 (RFC 9578, section 6.1), 259 bytes."
)
KEY_UNKNOWN = Kind("token-key-unknown", 422, "Ask with a key that the study's document names.")
KEY_OTHER = Kind(
    "token-key-other",
    409,
    "Ask once more, with the study's key whose truncated id is `key_id` (`key`: its place at the issuer).",
)
TOO_MANY_CODES = Kind("too-many-codes", 429, "Send the ticket that you were given.", 1)
KINDS = (REQUEST_INVALID, KEY_UNKNOWN, KEY_OTHER, TOO_MANY_CODES)


class TokenIssuer:
    """Issues tokens from one database. A valid code is always found, however many wrong codes arrive."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._forgetting = Forgetting(database)
        self._wrong = TokenBucket(WRONG_A_SECOND)
        self._room = Limiter(
            AT_ONCE, PATIENCE, lambda: ProblemError(OVERLOADED, "too many tokens are being signed")
        )

    def answer(self, code: str, body: bytes) -> bytes:
        """Return the response to a request, once its claim on the code is durable. Raises ProblemError."""
        if len(body) != REQUEST_BYTES or not body.startswith(TYPE):
            raise ProblemError(REQUEST_INVALID, f"a request of type 0x0002 has {REQUEST_BYTES} bytes", "")
        if not code:
            raise ProblemError(TICKET_NEEDED, "the header LDPKit-Ticket is missing")
        self._forgetting.run_if_due()
        with self._room.hold():
            private = self._database.act(lambda session: self._claim(session, code, body))
            return _signed(_loaded(private), body)

    def _claim(self, session: Session, code: str, body: bytes) -> bytes:
        """Bind a code to its only request; return the private key to answer with."""
        require_no_copy(session)
        row = store.code_row(session, code)
        if row is None:
            raise self._unknown()
        keys = store.keys_of(session, row.study)
        key = _key_of(row, keys, body[2])
        if not _fits(key, body):
            raise ProblemError(REQUEST_INVALID, "the blinded message is no number below the modulus", "")
        digest = store.digest_of(body)
        if row.request is None:
            row.request = digest
            session.flush()
        elif row.request != digest:
            raise ProblemError(TICKET_SPENT, "another request with this ticket was answered")
        return key.private

    def _unknown(self) -> ProblemError:
        seconds = self._wrong.let_in(1)
        log_throttled(logging.WARNING, "a ticket came that this issuer did not make", code="wrong-code")
        if seconds:
            return ProblemError(TOO_MANY_CODES, "a right ticket is taken at any time")
        self._wrong.settle(1, 1)
        return ProblemError(TICKET_INVALID, "no such ticket was made here")


def require_no_copy(session: Session) -> None:
    """Raise ProblemError if a backup was restored while the issuer runs, until `accept_copy`."""
    try:
        store.refuse_copy(session)
    except InputError as error:
        log_throttled(logging.ERROR, str(error), code="copy")
        raise ProblemError(
            UNAVAILABLE, "the database was restored from a backup; no token was given"
        ) from None


def _key_of(row: CodeRow, keys: list[TokenKeyRow], short_id: int) -> TokenKeyRow:
    # Removed keys leave gaps in `place`; `key` counts only the present keys.
    place = [other.place for other in keys].index(row.place)
    key = keys[place]
    if short_id_of(key.spki) == short_id:
        return key
    if short_id in [short_id_of(other.spki) for other in keys]:
        detail = f"the ticket is for key {place} of its study"
        # The id is also sent, because a study may name the keys in another order, or only some of them.
        more = {"key": place, "key_id": short_id_of(key.spki)}
        raise ProblemError(KEY_OTHER, detail, more=more)
    raise ProblemError(KEY_UNKNOWN, "no key of the ticket's study has this id")


def _fits(key: TokenKeyRow, body: bytes) -> bool:
    return 0 < int.from_bytes(body[3:], "big") < _loaded(key.private).n


@lru_cache(maxsize=256)
def _loaded(private: bytes) -> SigningKey:
    return SigningKey.load(private)


def _signed(key: SigningKey, body: bytes) -> bytes:
    try:
        signature = key.sign(body[3:])
    except FaultError:
        line = "a signature came out wrong and was thrown away: have this machine's memory checked"
        log_throttled(logging.ERROR, line, code="signing-fault")
        raise ProblemError(INTERNAL, "the signature failed its check; nothing was given") from None
    assert signature is not None
    return signature
