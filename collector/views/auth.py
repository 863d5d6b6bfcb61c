"""Who may publish, close, export and look: whoever sends the operator's token, or a key with that role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import g, request
from werkzeug.datastructures import Authorization

from collector.context import current_collector
from collector.problems import (
    FORBIDDEN,
    UNAUTHORIZED,
    WITHDRAWAL_REFUSED,
    WITHDRAWAL_UNPROVEN,
    ProblemError,
)
from collector.storage.keys import Key, Role
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Hex
from ldp_client.documents.report import SECRET_BYTES, report_id_of

P = ParamSpec("P")
T = TypeVar("T")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ldpkit"'}
WITHDRAWAL = "LDPKit-Withdrawal"
SECRET = Hex(2 * SECRET_BYTES)


def requires(needed: Role, of_some: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a view run only for a request with a key of that role, and for the study in the address.

    of_some: keys for some studies too where the address names none; the view shows those alone.
    """

    def decorate(view: Callable[P, T]) -> Callable[P, T]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            g.key = require_role(_bearer_key(), needed, of_some=of_some)
            return view(*args, **kwargs)

        return guarded

    return decorate


def require_role(
    given: str, needed: Role, challenge: Mapping[str, str] = CHALLENGE, of_some: bool = False
) -> Key:
    """The key, by what was given. challenge: headers that ask for one. of_some: as `requires` takes it.

    Raises ProblemError unless it has that role, and reaches what the address is about.
    """
    key = current_collector().keys.find(given, dict(challenge))
    if not key.role.allows(needed):
        raise ProblemError(FORBIDDEN, f"the key is for {key.role.value}, this needs {needed.value}")
    study_id = (request.view_args or {}).get("study_id")
    if study_id is not None:
        require_reach(key, study_id)
    elif key.studies is not None and not of_some:
        raise ProblemError(FORBIDDEN, "the key is for some studies only, and this is about all")
    return key


def require_reach(key: Key, study_id: str) -> None:
    """Raises ProblemError unless the key is for this study."""
    if not key.reaches(study_id):
        raise ProblemError(FORBIDDEN, "the key is for other studies")


def acting_key() -> Key:
    """The key that `requires` let in."""
    key: Key = g.key
    return key


def given_key(needed: Role, of_some: bool = False) -> Key | None:
    """The request's key, of that role; None where it has none. A wrong one raises ProblemError."""
    if "Authorization" not in request.headers:
        return None
    return require_role(_bearer_key(), needed, of_some=of_some)


def withdrawing_key(report_id: str) -> Key | None:
    """The operator's key that a withdrawal comes with; None where it has the secret of the report's id.

    Raises ProblemError where it has neither: an id is in every export, and no right by itself.
    """
    secret = request.headers.get(WITHDRAWAL)
    if secret is None:
        key = given_key(Role.OPERATE)
        if key is None:
            raise ProblemError(WITHDRAWAL_UNPROVEN, "neither the report's secret nor a key came with this")
        return key
    try:
        matches = report_id_of(bytes.fromhex(SECRET.read(secret, WITHDRAWAL, ReportError))) == report_id
    except ReportError:
        matches = False
    if not matches:
        raise ProblemError(WITHDRAWAL_REFUSED, "the id was not made of this secret")
    return None


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
