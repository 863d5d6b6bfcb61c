"""Every exception that leaves a view, answered with the problem that it stands for."""

from __future__ import annotations

from http import HTTPStatus

from flask import Flask
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from collector.problems import BODY_TOO_LARGE, Kind, ProblemError
from collector.storage.failures import problem_of

ADVICE_BY_STATUS = {
    404: "Check the address; the routes are under /v1/studies.",
    405: "Use one of the methods that the Allow header lists.",
}


@problem_of.register
def _(error: HTTPException) -> ProblemError:
    status = HTTPStatus(error.code or 500)
    advice = ADVICE_BY_STATUS.get(status, "Correct the request.")
    kind = Kind(status.phrase.lower().replace(" ", "-"), status, status.phrase, advice)
    return ProblemError(kind, error.description or status.phrase)


@problem_of.register
def _(error: MethodNotAllowed) -> ProblemError:
    kind = Kind("method-not-allowed", 405, "Method not allowed", ADVICE_BY_STATUS[405])
    allowed = ", ".join(sorted(error.valid_methods or ()))
    return ProblemError(kind, f"this address takes {allowed}", headers={"Allow": allowed})


@problem_of.register
def _(_error: RequestEntityTooLarge) -> ProblemError:
    return ProblemError(BODY_TOO_LARGE, "the body is above the collector's limit")


def install(app: Flask) -> None:
    """Answer every error of the app with a problem document."""
    app.register_error_handler(Exception, lambda error: problem_of(error).response())
