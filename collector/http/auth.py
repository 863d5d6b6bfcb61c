"""Who may publish, close, export and look: whoever sends the operator's token, or a key with that role."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import request

from collector.context import current_collector
from collector.http.problems import FORBIDDEN, UNAUTHORIZED, ProblemError
from collector.operator.keys import Role, hash_key, role_of

P = ParamSpec("P")
T = TypeVar("T")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ldpkit"'}


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
    role = _find_role(key)
    if role is None:
        raise ProblemError(UNAUTHORIZED, "the key is not one of this collector's", headers=challenge)
    if not role.allows(needed):
        raise ProblemError(FORBIDDEN, f"the key is for {role.value}, this needs {needed.value}")


def holds(needed: Role) -> bool:
    """Whether the request has a key of that role; not if it has none. A wrong one raises ProblemError."""
    if "Authorization" not in request.headers:
        return False
    require_role(_bearer_key(), needed)
    return True


def no_key() -> ProblemError:
    """The problem of a request that needs a key and has none."""
    return ProblemError(UNAUTHORIZED, "the request has no bearer token", headers=CHALLENGE)


def _bearer_key() -> str:
    given = request.authorization
    if given is None or given.type != "bearer" or not given.token:
        raise no_key()
    return given.token


def _find_role(key: str) -> Role | None:
    collector = current_collector()
    if collector.token_hash is not None and hmac.compare_digest(hash_key(key), collector.token_hash):
        return Role.OPERATE
    with collector.database.read() as session:
        return role_of(session, key)
