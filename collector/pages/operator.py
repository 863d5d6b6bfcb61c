"""The operator's pages, for a browser that has an operator's key."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

import segno
from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from markupsafe import Markup
from sqlalchemy.exc import SQLAlchemyError

from collector.api.auth import COOKIE, authorize, require_role
from collector.api.studies import read_publishable
from collector.context import Collector, current_collector
from collector.keys import CHALLENGE, TOKEN_KEY, Key, Role
from collector.pages.participant import address_of, draft_page
from collector.problems import FORBIDDEN, KINDS, UNAUTHORIZED, ProblemError
from collector.status import StudyOverview, state_of, status_of
from ldp_client.device.arguments import LOOPBACK

# The form has only a key.
MOST_OF_FORM = 4096

page = Blueprint("page", __name__, static_folder="assets", static_url_path="/assets/operator")
SAME_SITE = ("same-origin", "none")
# The picture of a study's reports shows so many last days.
MOST_DAYS = 60
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
MOST_WORDS = 200
# Studies that the page shows: each takes some milliseconds, and the page is read again every few seconds.
MOST_STUDIES = 50
# Where a signed-in browser may be sent.
OWN_PAGE = re.compile(r"/(new|share/[a-z0-9._-]+)")
TITLES = {kind.name: kind.title for kind in KINDS}


@page.get("/")
def show() -> Response:
    """Show counts and studies, or the sign-in form; the page's script requests it again and again."""
    return _signed_in(Role.READ, "operator.html", _contents)


@page.get("/new")
def build() -> Response:
    """Show the form of a new study. Its script checks, shows and publishes the draft."""
    return _signed_in(Role.PUBLISH, "builder.html", lambda _key: {})


@page.post("/new/preview")
def preview() -> bytes:
    """Return the participant's page of the draft in the body, without scripts; nothing is stored."""
    authorize(Role.PUBLISH, of_some=True)
    return draft_page(read_publishable().study, request.args.get("language", ""))


@page.get("/share/<study_id>")
def share(study_id: str) -> Response:
    """Show a study's link, its QR code, and the element that shows the study in other pages."""

    def contents(_key: Key) -> dict[str, Any]:
        current_collector().current.require(study_id)
        link = address_of("participant.page", study_id=study_id)
        # On white, because a dark page would hide it.
        code = segno.make_qr(link, error="m").svg_inline(omitsize=True, light="white")
        library = address_of("participant.asset", name="element.js")
        sites = current_collector().settings.frame_ancestors
        return {"id": study_id, "link": link, "code": Markup(code), "library": library, "sites": sites}

    return _signed_in(Role.READ, "share.html", contents)


def _signed_in(role: Role, template: str, contents: Callable[[Key], dict[str, Any]]) -> Response:
    """Return a page for the browser's key, or the sign-in form if the key is missing or lacks the role."""
    if COOKIE not in request.cookies:
        return sign_in_form(ProblemError(UNAUTHORIZED, "", headers=CHALLENGE))
    try:
        key = current_collector().keys.find_session(request.cookies[COOKIE])
        require_role(key, role, of_some=True)
    except ProblemError as problem:
        form = sign_in_form(problem)
        return signed_out(form) if problem.kind is UNAUTHORIZED else form
    return make_response(render_template(template, **contents(key)))


def sign_in_form(problem: ProblemError) -> Response:
    """Return the sign-in form, with the reason why it is shown."""
    status, headers, _ = problem.answer()
    text = render_template("sign_in.html", problem=problem.detail, status=status)
    return Response(text, status, headers, content_type="text/html; charset=utf-8")


@page.post("/sign-in")
def sign_in() -> Response:
    """Begin a session, whose word goes into a cookie that scripts cannot read, and redirect to the page."""
    require_own_page()
    # Anyone may send a form, and it may carry files, which are stored while they are read.
    request.max_content_length = MOST_OF_FORM
    given = request.form.get("key", "").strip()
    keys = current_collector().keys
    try:
        require_role(keys.find(given), Role.READ, of_some=True)
        word = keys.begin_session(given)
    except ProblemError as problem:
        return sign_in_form(problem)
    to = request.form.get("to", "")
    response = make_response(redirect(to if OWN_PAGE.fullmatch(to) else url_for("page.show"), 303))
    # The word must not cross a network unencrypted, so without TLS browsers discard this cookie.
    is_here = (request.host.rpartition(":")[0] or request.host).strip("[]") in LOOPBACK
    response.set_cookie(COOKIE, word, httponly=True, samesite="Strict", secure=not is_here)
    return response


@page.post("/sign-out")
def sign_out() -> Response:
    """End the session."""
    require_own_page()
    with suppress(ProblemError, SQLAlchemyError):
        # Where this cannot be written, the browser forgets the session anyway, and it ends by itself.
        current_collector().keys.end_session(request.cookies.get(COOKIE, ""))
    return signed_out(make_response(redirect(url_for("page.show"), 303)))


def signed_out(response: Response) -> Response:
    """Have the browser forget its session, and return the response."""
    response.delete_cookie(COOKIE, httponly=True, samesite="Strict")
    return response


def require_own_page() -> None:
    """Raise ProblemError if another site's page sent this request."""
    if request.headers.get("Sec-Fetch-Site", "none") not in SAME_SITE:
        raise ProblemError(FORBIDDEN, "another site's page sent this")


@page.after_request
def protect(response: Response) -> Response:
    """Forbid foreign content on the page, and frames around it."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _contents(key: Key) -> dict[str, Any]:
    """Return the template's values for the studies of a key that have the words in the address."""
    collector, words = current_collector(), request.args.get("words", "")[:MOST_WORDS]
    totals = collector.metrics.totals()
    reached = [study for study in collector.studies.get() if key.reaches(study.id)]
    studies = [study for study in reached if _has_words(collector, study, words)]
    shown = []
    for study in studies[:MOST_STUDIES]:
        status = status_of(collector, study, totals.rejected_by_study)
        document = collector.rules.find(study.id, study.version).study
        shown.append({**status, "document": document, "days": _days(status["by_day"])})
    return {
        # Counts of all studies together, which a key for some studies must not see.
        "counts": totals if key.studies is None else None,
        "waiting": collector.writer.depth,
        "titles": TITLES,
        "total": len(reached),
        "count": len(studies),
        "words": words,
        "who": key.name.strip("()"),
        "may": {role.value: key.role.allows(role) for role in Role},
        "is_token": key == TOKEN_KEY,
        "studies": shown,
    }


def _has_words(collector: Collector, study: StudyOverview, words: str) -> bool:
    """Return True if a study's id, title and state have all words."""
    if not words:
        return True
    title = collector.rules.find(study.id, study.version).study.title
    text = f"{study.id} {title} {state_of(study, collector.today())}".casefold()
    return all(word in text for word in words.casefold().split())


def _days(by_day: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the picture of the reports by day: bars in a box of 100 by 20, and its days in words."""
    if not by_day:
        return None
    counts = {date.fromisoformat(count["day"]): count["reports"] for count in by_day}
    last = max(counts)
    first = max(min(counts), last - timedelta(MOST_DAYS - 1))
    shown = [counts.get(first + timedelta(day), 0) for day in range((last - first).days + 1)]
    heights = [round(20 * number / max(shown), 2) for number in shown]
    step = 100 / max(len(shown), 7)
    return {"heights": heights, "step": step, "first": first, "last": last, "most": max(shown)}
