"""The page on which a person answers a study in a browser, and the files that it loads."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from flask import (
    Blueprint,
    Response,
    abort,
    make_response,
    render_template,
    request,
    send_from_directory,
    url_for,
)

from collector.context import current_collector
from collector.port import MODULES, PORT, modules_for
from collector.storage import queries
from ldp_client.policy import LOOPBACK
from ldp_client.wording import odds_of

participant = Blueprint("participant", __name__)

ASSET_FOLDER = Path(__file__).parents[1] / "assets"
SCRIPT = "text/javascript"
ASSETS = {"participant.css": "text/css", "participant.js": SCRIPT, "words.js": SCRIPT}
# What one browser may spend on all studies of this collector, in nats.
BUDGET = "10"
# More choices than this are a menu instead of a list of buttons.
MOST_BUTTONS = 7
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


@participant.get("/s/<study_id>")
def page(study_id: str) -> Response:
    """The study in plain words, with a form whose answers never leave the browser without noise."""
    collector = current_collector()
    with collector.database.read() as session:
        document = queries.find_document(session, study_id)
        state = queries.study_state(session, study_id)
    if document is None or state is None:
        return _secured(make_response(render_template("missing.html"), 404))
    rules = collector.rules.find(study_id, document.version)
    text = render_template(
        "holder.html" if rules.study.unit == "holder" else "participant.html",
        study=rules.study,
        mechanisms=rules.mechanisms,
        over=state.closed,
        invited=state.invited,
        repeated=sum(asked.repeats for asked in rules.study.questions),
        odds=lambda privacy: odds_of(rules.study, float(privacy.epsilon), float(privacy.delta)),
        modules=modules_for(rules.study),
        budget=BUDGET,
        address=_address(study_id),
        most_buttons=MOST_BUTTONS,
    )
    return _secured(make_response(text))


@participant.get("/assets/ldpkit/<path:name>")
def module(name: str) -> Response:
    """One module of the browser port."""
    if name not in MODULES:
        abort(404)
    return send_from_directory(PORT, name, mimetype=SCRIPT)


@participant.get("/assets/<name>")
def asset(name: str) -> Response:
    """The page's own scripts and style."""
    if name not in ASSETS:
        abort(404)
    return send_from_directory(ASSET_FOLDER, name, mimetype=ASSETS[name])


def _address(study_id: str) -> str:
    """The study's URL as a device takes it: https, which ends at the proxy, but for this machine."""
    scheme = "http" if urlsplit(request.host_url).hostname in LOOPBACK else "https"
    return url_for("studies.fetch", study_id=study_id, _external=True, _scheme=scheme)


def _secured(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
