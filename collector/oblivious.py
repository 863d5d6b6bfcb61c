"""The gateway of oblivious HTTP (RFC 9458): its keys, and the collector's answers to encapsulated requests.

The inner request may only do what a device does: send or delete its report and fetch a study. It reaches no
operator's route and no second gateway. An answer's size depends on the request's method, never on the result.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from contextvars import Context
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from collector import problems
from collector.errors import problem_of
from collector.problems import ProblemError
from ldp_client.documents.errors import InputError
from ldp_client.oblivious import encapsulation
from ldp_client.oblivious.binary_http import ANSWER_BYTES, Answer, BinaryError, Request, answer_bytes
from schemas.disk import read_bytes, replacing, write_new

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

FORMAT = "ldpkit.ohttp-keys/1"
OWNER_ONLY = 0o600
# A valid key opens everything that was ever sent to it: retire a key once no app ships it.
MOST_KEYS = 16
IDS = 256
REPORT = re.compile(r"/v1/studies/[a-z0-9][a-z0-9._-]{0,63}/reports/[0-9a-f]{32}")
STUDY = re.compile(r"/v1/studies/[a-z0-9][a-z0-9._-]{0,63}(/signed)?(\?version=[0-9]{1,7})?")
ROUTES = {"PUT": REPORT, "DELETE": REPORT, "GET": STUDY}
# Header fields that devices send; others are ignored.
SENT = frozenset(("authorization", "content-type", "if-none-match", "ldpkit-ticket", "ldpkit-withdrawal"))
# A request with these fields cannot be a message in one piece (RFC 9110, sections 7.6 and 8).
REFUSED = frozenset(
    ("connection", "content-encoding", "expect", "keep-alive", "proxy-authorization", "proxy-connection")
) | frozenset(("te", "trailer", "transfer-encoding", "upgrade"))
TOKEN_SCHEME = "privatetoken "
# The address of inner requests, which shows nothing of the outer one.
ORIGIN = "https://oblivious"
RETURNED = frozenset(("content-type", "etag", "ldpkit-study", "retry-after", "www-authenticate"))


@dataclass(frozen=True)
class GatewayKey:
    """One key pair. number: the key's number in encapsulated requests, 0 to 255."""

    number: int
    private: X25519PrivateKey

    @property
    def configuration(self) -> bytes:
        """The public part, as an app ships it (RFC 9458, section 3.1)."""
        return encapsulation.configuration(self.number, self.private.public_key().public_bytes_raw())


@dataclass(frozen=True)
class GatewayKeys:
    """The valid keys, the newest first: new apps ship it, and older apps may still have the others."""

    keys: tuple[GatewayKey, ...]

    @classmethod
    def generate(cls) -> GatewayKeys:
        """Make one new key.

        Its number is drawn: apps would not learn of a lost key file if its new key had the same number.
        """
        return cls((GatewayKey(secrets.randbelow(IDS), X25519PrivateKey.generate()),))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GatewayKeys:
        """Read a file that `save` wrote. Raises InputError, which never shows the file's contents."""
        try:
            stored = json.loads(read_bytes(path))
            if stored["format"] != FORMAT:
                raise ValueError
            keys = tuple(_read_key(**key) for key in stored["keys"])
            if not 1 <= len({key.number for key in keys}) == len(keys) <= MOST_KEYS:
                raise ValueError
            return cls(keys)
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path} is no file of a gateway's keys: `ldpkit ohttp FILE --rotate` makes a new one",
                code="oblivious.wrong_key_file",
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file that only its owner may read. Raises InputError if the file exists."""
        write_new(path, self._text(), OWNER_ONLY)

    def replace(self, path: str) -> None:
        """Overwrite an existing file with these keys; the file keeps its mode."""
        with replacing(path, mode=0o600) as file:
            file.write(self._text())

    def rotated(self) -> GatewayKeys:
        """Return the keys with a new key in front. Raises InputError if the gateway is full."""
        if len(self.keys) == MOST_KEYS:
            raise InputError(
                f"{MOST_KEYS} keys are valid, the most that a gateway holds: retire one that no app ships, "
                "with `ldpkit ohttp FILE --retire N`",
                code="oblivious.too_many_keys",
            )
        taken = {key.number for key in self.keys}
        number = next(n % IDS for n in count(self.keys[0].number + 1) if n % IDS not in taken)
        return GatewayKeys((GatewayKey(number, X25519PrivateKey.generate()), *self.keys))

    def without(self, number: int) -> GatewayKeys:
        """Return the keys without an older key. Raises InputError for the newest or an unknown one."""
        older = [key.number for key in self.keys[1:]]
        if number not in older:
            raise InputError(
                f"no older key has the number {number}: keys that can be retired: "
                f"{', '.join(map(str, older)) or 'none'}",
                code="oblivious.unknown_key",
            )
        return GatewayKeys(tuple(key for key in self.keys if key.number != number))

    def published(self) -> bytes:
        """Return all configurations as application/ohttp-keys (RFC 9458, section 3.2), the newest first."""
        listed = [key.configuration for key in self.keys]
        return b"".join(len(one).to_bytes(2, "big") + one for one in listed)

    def _text(self) -> str:
        keys = [{"number": key.number, "x25519": key.private.private_bytes_raw().hex()} for key in self.keys]
        return json.dumps({"format": FORMAT, "keys": keys})


def _read_key(number: object, x25519: str) -> GatewayKey:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < IDS:
        raise ValueError
    return GatewayKey(number, X25519PrivateKey.from_private_bytes(bytes.fromhex(x25519)))


class Gateway:
    """The gateway of one collector.

    Args:
        keys: the valid keys.
        target: the collector's own WSGI application, which answers the inner requests.

    Raises:
        MissingExtraError: `pyhpke` is not installed.
    """

    def __init__(self, keys: GatewayKeys, target: WSGIApplication) -> None:
        # Without `pyhpke` no request could be opened later.
        encapsulation.suite()
        self.keys = keys
        self._target = target

    def open(self, message: bytes) -> encapsulation.Received:
        """Decapsulate a request. Raises ProblemError if no key of this gateway opens it."""
        number = message[0] if message else -1
        key = next((key.private for key in self.keys.keys if key.number == number), None)
        if len(message) < encapsulation.HEADER_BYTES:
            raise ProblemError(problems.OHTTP_MALFORMED, "the body is no encapsulated request")
        if key is None or message[: encapsulation.HEADER_BYTES] != encapsulation.header(number):
            raise ProblemError(
                problems.OHTTP_KEY, "the request is for no key and suite that this gateway has"
            )
        try:
            return encapsulation.decapsulate(key, message)
        except encapsulation.EncapsulationError:
            detail = "it is encapsulated for another key, or was changed on its way"
            raise ProblemError(problems.OHTTP_MALFORMED, detail) from None

    def answer(self, received: encapsulation.Received) -> bytes:
        """Return the collector's answer to a decapsulated request, encapsulated for its device."""
        size = ANSWER_BYTES
        try:
            request = Request.decode(received.content)
            size = answer_bytes(request.method)
            # A fresh context, which has nothing of the outer request.
            answer = Context().run(_ask, self._target, _environ_of(request), size)
        except BinaryError:
            answer = _refusal(
                ProblemError(problems.OBLIVIOUS_REQUEST, "what is inside is no request of known length")
            )
        except Exception as error:
            # From outside, every failure must look like any other answer.
            answer = _refusal(problem_of(error))
        answer = answer._replace(fields=[*answer.fields, ("date", formatdate(usegmt=True))])
        try:
            return received.answer(answer.encode(size))
        except BinaryError:
            detail = f"the answer is above the {size} bytes of every answer to this method"
            return received.answer(_refusal(ProblemError(problems.ANSWER_TOO_LARGE, detail)).encode(size))


def _environ_of(request: Request) -> WSGIEnvironment:
    """Return a device's request as a WSGI environment. Raises ProblemError for any other request."""
    # Loaded only by a collector with a gateway.
    from werkzeug.test import EnvironBuilder

    route = ROUTES.get(request.method)
    if route is None or not route.fullmatch(request.path):
        raise ProblemError(
            problems.OBLIVIOUS_ROUTE, "a relayed request sends or deletes a report, or fetches a study"
        )
    fields: dict[str, str] = {}
    for name, value in request.fields:
        is_wrong_length = name == "content-length" and value != str(len(request.content))
        if name in REFUSED or name in fields or is_wrong_length:
            raise ProblemError(
                problems.OBLIVIOUS_REQUEST, f"the field {name[:32]!r} does not go with this message"
            )
        if name == "authorization" and not value.lower().startswith(TOKEN_SCHEME):
            raise ProblemError(
                problems.OBLIVIOUS_REQUEST, "an operator's key goes to the collector, not through here"
            )
        fields[name] = value
    sent = [(name, value) for name, value in fields.items() if name in SENT]
    builder = EnvironBuilder(request.path, ORIGIN, method=request.method, headers=sent, data=request.content)
    return builder.get_environ()


def _ask(target: WSGIApplication, environ: WSGIEnvironment, most: int) -> Answer:
    """Return the target's answer, cut after `most` bytes: a longer one is too large anyway."""
    from werkzeug.wrappers import Response

    response = Response.from_app(target, environ)
    content = b""
    for piece in response.iter_encoded():
        content += piece
        if len(content) > most:
            break
    response.close()
    fields = [(name.lower(), value) for name, value in response.headers if name.lower() in RETURNED]
    return Answer(response.status_code, fields, content)


def _refusal(problem: ProblemError) -> Answer:
    status, headers, body = problem.answer()
    fields = [
        ("content-type", problems.MEDIA_TYPE),
        *((name.lower(), value) for name, value in headers.items()),
    ]
    return Answer(status, fields, body.encode())
