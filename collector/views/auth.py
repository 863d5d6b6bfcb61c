"""Who may publish, close, export and look: whoever sends the operator's token, or a key with that role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import request
from werkzeug.datastructures import Authorization

from collector.context import current_collector
from collector.problems import (
    FORBIDDEN,
    UNAUTHORIZED,
    WITHDRAWAL_REFUSED,
    WITHDRAWAL_UNPROVEN,
    ProblemError,
)
from collector.storage.keys import Role
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Hex
from ldp_client.documents.report import SECRET_BYTES, report_id_of

P = ParamSpec("P")
T = TypeVar("T")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ldpkit"'}
WITHDRAWAL = "LDPKit-Withdrawal"
SECRET = Hex(2 * SECRET_BYTES)


def requires(needed: Role) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a view run only for a request with a key of that role."""

    def decorate(view: Callable[P, T]) -> Callable[P, T]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            require_role(_bearer_key(), needed)
            return view(*args, **kwargs)

        return guarded

    return decorate


def require_role(key: str, needed: Role, challenge: Mapping[str, str] = CHALLENGE) -> None:
    """Raises ProblemError unless the key has that role. challenge: headers that ask for one."""
    role = current_collector().keys.role_of(key, dict(challenge))
    if not role.allows(needed):
        raise ProblemError(FORBIDDEN, f"the key is for {role.value}, this needs {needed.value}")


def holds(needed: Role) -> bool:
    """Whether the request has a key of that role; not if it has none. A wrong one raises ProblemError."""
    if "Authorization" not in request.headers:
        return False
    require_role(_bearer_key(), needed)
    return True


def proves_withdrawal(report_id: str) -> bool:
    """Whether the request has the secret that the report's id was made of; if not, it has an operator's key.

    Raises ProblemError where it has neither: an id is in every export, and no right by itself.
    """
    secret = request.headers.get(WITHDRAWAL)
    if secret is None:
        if not holds(Role.OPERATE):
            raise ProblemError(WITHDRAWAL_UNPROVEN, "neither the report's secret nor a key came with this")
        return False
    try:
        matches = report_id_of(bytes.fromhex(SECRET.read(secret, WITHDRAWAL, ReportError))) == report_id
    except ReportError:
        matches = False
    if not matches:
        raise ProblemError(WITHDRAWAL_REFUSED, "the id was not made of this secret")
    return True


def no_key() -> ProblemError:
    """The problem of a request that needs a key and has none."""
    return ProblemError(UNAUTHORIZED, "the request has no bearer token", headers=CHALLENGE)


def credentials() -> Authorization | None:
    """What the request's Authorization header says, None where it says nothing that can be read."""
    try:
        return request.authorization
    except ValueError:
        # Werkzeug's, of Basic credentials that are no ASCII.
        return None


def _bearer_key() -> str:
    given = credentials()
    if given is None or given.type != "bearer" or not given.token:
        raise no_key()
    return given.token
