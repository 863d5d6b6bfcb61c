"""Who may publish, close and export: whoever sends the operator's token."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import request

from collector.context import current_collector, hash_token
from collector.problems import UNAUTHORIZED, ProblemError

P = ParamSpec("P")
T = TypeVar("T")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ldpkit"'}


def operator_only(view: Callable[P, T]) -> Callable[P, T]:
    """Let a view run only for a request with the operator's token."""

    @wraps(view)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        _require_token()
        return view(*args, **kwargs)

    return guarded


def _require_token() -> None:
    expected = current_collector().token_hash
    if expected is None:
        raise ProblemError(UNAUTHORIZED, "this collector has no operator's token", headers=CHALLENGE)
    given = request.authorization
    if given is None or given.type != "bearer" or not given.token:
        raise ProblemError(UNAUTHORIZED, "the request has no bearer token", headers=CHALLENGE)
    if not hmac.compare_digest(hash_token(given.token), expected):
        raise ProblemError(UNAUTHORIZED, "the token is not this collector's", headers=CHALLENGE)
