"""Parts of every answer: its headers, and a problem document for every exception that leaves a view."""

import time
from http import HTTPStatus

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from collector.context import current_collector
from collector.errors import problem_of
from collector.problems import BODY_TOO_LARGE, MEDIA_TYPE, STATEMENT_INVALID, Kind, ProblemError
from ldp_client.documents.errors import InputError

# The headers that every answer has by default.
DEFAULT_HEADERS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
# Requests through a relay are also counted inside the gateway. The outer count has the unopened requests.
UPLOADS = (
    *("reports.upload_report", "reports.upload_reports", "gateway.ask_obliviously"),
    # At a node.
    "node.upload_share",
)
ADVICE_BY_STATUS = {
    404: "Check the address; the routes are under /v1/studies.",
    405: "Use one of the methods that the Allow header lists.",
}


@problem_of.register
def _(error: InputError) -> ProblemError:
    return ProblemError(STATEMENT_INVALID, str(error))


@problem_of.register
def _(error: HTTPException) -> ProblemError:
    status = HTTPStatus(error.code or 500)
    advice = ADVICE_BY_STATUS.get(status, "Correct the request.")
    kind = Kind(status.phrase.lower().replace(" ", "-"), status, advice)
    return ProblemError(kind, error.description or status.phrase)


@problem_of.register
def _(error: MethodNotAllowed) -> ProblemError:
    kind = Kind("method-not-allowed", 405, ADVICE_BY_STATUS[405])
    allowed = ", ".join(sorted(error.valid_methods or ()))
    return ProblemError(kind, f"this address takes {allowed}", headers={"Allow": allowed})


@problem_of.register
def _(_error: RequestEntityTooLarge) -> ProblemError:
    return ProblemError(BODY_TOO_LARGE, "the body is above the collector's limit")


def harden(response: Response) -> Response:
    """Set the default headers that are missing."""
    for name, value in DEFAULT_HEADERS:
        response.headers.setdefault(name, value)
    return response


def response_of(problem: ProblemError) -> Response:
    """Return the problem document as an HTTP response."""
    status, headers, body = problem.answer()
    return Response(body, status, headers, content_type=MEDIA_TYPE)


def refuse_upload(error: Exception) -> Response:
    """Return the problem of a request, counted by its reason if the request was an upload."""
    problem = problem_of(error)
    if request.endpoint in UPLOADS:
        current_collector().count_refusal(problem, (request.view_args or {}).get("study_id", ""))
    return response_of(problem)


def _note_start() -> None:
    g.start = time.perf_counter()


def _observe(response: Response) -> Response:
    if "start" in g:
        current_collector().metrics.observe_request(request.endpoint, time.perf_counter() - g.start)
    return response


def install(app: Flask) -> None:
    """Answer every error of the app with a problem document, and give every answer its headers."""
    app.register_error_handler(Exception, lambda error: response_of(problem_of(error)))
    app.before_request(_note_start)
    app.after_request(_observe)
    app.after_request(harden)
