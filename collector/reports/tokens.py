"""Reports that need a token (RFC 9577, RFC 9578): verified on arrival, spent when the report is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from collector.problems import TICKET_INVALID, TICKET_NEEDED, TICKET_SPENT, ProblemError
from collector.reports.writer import Upload
from collector.storage.spent_tokens import spend_tokens
from collector.store import PackedReport
from ldp_client.core.blind_rsa import SALT_BYTES
from ldp_client.core.tokens import INPUT_BYTES, challenge_header, challenge_of, input_of, key_id_of, token_in
from ldp_client.documents.channel import EXPONENT, TokenKey

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from collector.reports.rules import Rules
    from ldp_client.documents.channel import Tickets
    from schemas import Study

NONCE = slice(2, 34)
KEY_ID = slice(66, 98)
# A token is 472 characters; nothing longer is decoded.
LONGEST_HEADER = 1024
PADDING = padding.PSS(padding.MGF1(hashes.SHA384()), SALT_BYTES)


class Good(NamedTuple):
    """A token that the study's issuer signed. nonce: its hash. key: the key that signed it."""

    nonce: bytes
    key: TokenKey


class TokenCheck:
    """The check of the tokens that one version of a study accepts."""

    def __init__(self, study: Study, tickets: Tickets) -> None:
        self.issuer = tickets.name
        self._challenge = challenge_of(tickets.name, study.digest)
        self._keys = {key_id_of(key.spki): (key, _public_key(key)) for key in tickets.keys}
        header = challenge_header(self._challenge, tickets.keys[0].spki)
        # RFC 9110 requires this header in a 401. Devices know its values from the study.
        self._asking = {"WWW-Authenticate": header}

    def needed(self, detail: str) -> ProblemError:
        """Return the problem of a report without a token."""
        return ProblemError(TICKET_NEEDED, detail, headers=self._asking)

    def check(self, authorization: str | None, nonce: bytes | None = None) -> Good:
        """Check a header's token. nonce: the only nonce that it may have. Raises ProblemError."""
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
        return Good(hashlib.sha256(token[NONCE]).digest(), key)

    def _invalid(self, detail: str) -> ProblemError:
        return ProblemError(TICKET_INVALID, detail, headers=self._asking)


def _public_key(key: TokenKey) -> rsa.RSAPublicKey:
    modulus = int.from_bytes(key.modulus, "big")
    return rsa.RSAPublicNumbers(EXPONENT, modulus).public_key()


def with_token(
    rules: Rules, report: PackedReport, authorization: str | None, nonce: bytes | None = None
) -> tuple[PackedReport, bytes | None]:
    """Return a report with the stratum of its token's key, and the token's nonce, as a hash.

    nonce: the only nonce that the token may have. Raises ProblemError if the version needs tokens and this
    token is not valid.
    """
    if rules.tokens is None:
        return report, None
    good = rules.tokens.check(authorization, nonce)
    if not good.key.public:
        return report, good.nonce
    return report._replace(payloads=rules.filled(report, good.key.public)), good.nonce


class Tokened(NamedTuple):
    """reports: new reports that need no token, or spend their token now. refused: {id: why}."""

    reports: list[PackedReport]
    refused: dict[bytes, ProblemError]


def tokened_reports(
    session: Session,
    find: Callable[[int], Rules],
    study: int,
    uploads: Sequence[Upload],
    fresh: Sequence[PackedReport],
) -> Tokened:
    """Spend the tokens of new reports. find: a version's rules. study: its number."""
    wanted = {report.id: report for report in fresh if find(report.version).tokens is not None}
    free = [report for report in fresh if report.id not in wanted]
    if not wanted:
        return Tokened(free, {})
    spent = ProblemError(TICKET_SPENT, "the token let another report in")
    refused = dict.fromkeys(wanted, spent)
    by_nonce: dict[bytes, PackedReport] = {}
    for upload in uploads:
        # Compare the whole report: another report with its id must not be stored on this token.
        is_wanted = wanted.get(upload.reports[0].id) == upload.reports[0] if upload.token else False
        if upload.token is not None and is_wanted and upload.token not in by_nonce:
            by_nonce[upload.token] = wanted.pop(upload.reports[0].id)
    taken = [by_nonce[nonce] for nonce in sorted(spend_tokens(session, study, by_nonce))]
    for report in taken:
        del refused[report.id]
    return Tokened([*free, *taken], refused)
