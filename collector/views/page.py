"""The operator's page, for a browser that sends a key as its password."""

from __future__ import annotations

from flask import Blueprint, Response, make_response, render_template, request

from collector.context import current_collector
from collector.operator.overview import page_contents
from collector.problems import UNAUTHORIZED, ProblemError
from collector.storage.keys import Role
from collector.views.auth import require_role

page = Blueprint("page", __name__, static_folder="../assets", static_url_path="/assets/operator")
CHALLENGE = {"WWW-Authenticate": 'Basic realm="ldpkit: any name, a key as password", charset="UTF-8"'}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@page.get("/")
def show() -> Response:
    """Counts and studies; the script asks for the same page again and again."""
    given = request.authorization
    if given is None or given.type != "basic":
        raise ProblemError(UNAUTHORIZED, "the page needs a key", headers=CHALLENGE)
    require_role(given.password or "", Role.READ, CHALLENGE)
    return make_response(render_template("operator.html", **page_contents(current_collector())))


@page.after_request
def protect(response: Response) -> Response:
    """Nothing from elsewhere may run here, and nobody may frame it."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
