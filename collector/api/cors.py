"""A thin WSGI layer that lets pages of other origins do what a device does, and nothing else (CORS).

Browsers send a preflight request, and hide from such pages each response that lacks the headers. The operator
lists the origins: a page that may send reports sees its visitors' answers, as any app does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from collector.reports.intake import TICKET

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

STUDY = re.compile(r"/v1/studies/[^/]+")
REPORTS = re.compile(r"/v1/studies/[^/]+/reports")
REPORT = re.compile(r"/v1/studies/[^/]+/reports/[^/]+")
# The methods that devices use at each address.
METHODS = {STUDY: ("GET",), REPORTS: ("POST",), REPORT: ("PUT", "DELETE")}
SENT = ("Content-Type", TICKET, "LDPKit-Withdrawal")
# The header of a report's token. Only PUT may carry it: with other methods it could be an operator's key.
TOKEN, WITH_TOKEN = "Authorization", "PUT"
READ = ("LDPKit-Study", "Date", "ETag", "Retry-After")
# The longest time for which Chromium caches a preflight response.
REMEMBERED_SECONDS = 7200
VARY = ("Vary", "Origin")


class ForeignPages:
    """Wraps the WSGI application `plain` for pages of these origins."""

    def __init__(self, plain: WSGIApplication, origins: Iterable[str]) -> None:
        self.plain = plain
        self._origins = frozenset(origins)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        # None for the paths of operators and analysts.
        methods = next((at for form, at in METHODS.items() if form.fullmatch(environ["PATH_INFO"])), ())
        if not methods:
            return self.plain(environ, start_response)
        origin, asks = environ.get("HTTP_ORIGIN"), environ["REQUEST_METHOD"] == "OPTIONS"
        method = environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD") if asks else environ["REQUEST_METHOD"]
        if origin not in self._origins or method not in methods:
            return self.plain(environ, _adding([VARY], start_response))
        allowed = [VARY, ("Access-Control-Allow-Origin", str(origin))]
        if asks:
            sent = (*SENT, TOKEN) if method == WITH_TOKEN else SENT
            preflight = [
                ("Access-Control-Allow-Methods", ", ".join(methods)),
                ("Access-Control-Allow-Headers", ", ".join(sent)),
                ("Access-Control-Max-Age", str(REMEMBERED_SECONDS)),
            ]
            start_response("204 NO CONTENT", [*allowed, *preflight])
            return []
        readable = ("Access-Control-Expose-Headers", ", ".join(READ))
        return self.plain(environ, _adding([*allowed, readable], start_response))


def _adding(more: list[tuple[str, str]], start_response: StartResponse) -> StartResponse:
    """Wrap `start_response` to append headers; the answer keeps its own Vary header."""

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        return start_response(status, [*headers, *more], *rest)

    return start
