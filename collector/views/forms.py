"""Changes on the operator's page: the same as the commands', each after a confirmation."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import date
from hashlib import sha256
from typing import Any, NamedTuple

from flask import Blueprint, Response, make_response, render_template, request

from collector.context import Collector, current_collector
from collector.operator.actions import (
    close_study,
    count_overdue,
    delete_overdue_of,
    drop_key,
    make_invitations,
    make_key,
    open_study,
    require_token,
)
from collector.operator.inviting import carried_fields
from collector.problems import FORBIDDEN, STATEMENT_INVALID, UNAUTHORIZED, ProblemError
from collector.storage import audit_log
from collector.storage.keys import Key, Role, list_keys
from collector.views.auth import require_role
from collector.views.page import CHALLENGE, COOKIE, MOST_OF_FORM, protect, require_own_page, sign_in_form
from collector.views.participant import whole_url
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Day, Identifier
from ldp_client.documents.public import PublicField
from ldp_client.words.text import counted

changing = Blueprint("changing", __name__, url_prefix="/do")
changing.after_request(protect)
MOST_SHOWN = 1000
LINES = 200
# Prefix of a public field's name in a form.
PUBLIC = "public."
FORM_TOKEN = b"ldpkit operator's form"


class Done(NamedTuple):
    """The result of a change.

    Attributes:
        said: what was done, in a sentence.
        shown: secrets that are shown only now.
        is_part: whether part of the work is left.
    """

    said: str
    shown: tuple[str, ...] = ()
    is_part: bool = False


class Action(NamedTuple):
    """A change to a study. text: its effect, in words. run: makes the change, with the form's fields."""

    title: str
    text: str
    role: Role
    run: Callable[[Collector, str, Key], Done]


def _close(collector: Collector, study_id: str, key: Key) -> Done:
    return Done(f"version {close_study(collector, study_id, key)} is closed")


def _open(collector: Collector, study_id: str, key: Key) -> Done:
    return Done(f"version {open_study(collector, study_id, key)} takes reports on its days")


def _invite(collector: Collector, study_id: str, key: Key) -> Done:
    text = request.form.get("count", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_SHOWN))):
        text = "0"
    if not 1 <= int(text) <= MOST_SHOWN:
        problem = f"must be a whole number from 1 to {MOST_SHOWN}; `ldpkit invite` makes more"
        raise ProblemError(STATEMENT_INVALID, problem, "count")
    public = {name: request.form.get(PUBLIC + name, "") for name in _carried(collector, study_id)}
    words, warnings = make_invitations(collector, study_id, int(text), public, key)
    link = whole_url("participant.page", study_id)
    said = f"{counted(len(words), 'invitation')} made; they are shown this once and kept nowhere"
    return Done(" ".join([said, *warnings]), tuple(f"{link}#invitation={word}" for word in words))


def _carried(collector: Collector, study_id: str) -> dict[str, PublicField]:
    """Return the public fields whose values a study's invitations carry."""
    with collector.database.read() as session:
        return carried_fields(session, study_id)


def _retention(collector: Collector, study_id: str, key: Key) -> Done:
    said = f"{counted(delete_overdue_of(collector, study_id, key), 'report')} deleted"
    # One request deletes only as much as takes some ten seconds.
    left = count_overdue(collector, study_id)
    return Done(f"{said}, and {left} overdue are left: go on" if left else said, is_part=left > 0)


ACTIONS = {
    "close": Action(
        "Close the study",
        "It takes no reports until it is opened again. If reports leave in windows, those under way are "
        "refused once it is closed, and lost if it stays closed.",
        Role.PUBLISH,
        _close,
    ),
    "open": Action(
        "Open the study",
        "It takes reports again, on its days. Reports that were withdrawn stay withdrawn.",
        Role.PUBLISH,
        _open,
    ),
    "invite": Action(
        "Make invitations",
        "From then on only invited people can take part. Each link lets one report in, and is shown once.",
        Role.OPERATE,
        _invite,
    ),
    "retention": Action(
        "Delete what is overdue",
        "Deletes the reports that were kept for as long as the study states, with their part of its summary. "
        "Nothing brings them back.",
        Role.OPERATE,
        _retention,
    ),
}


@changing.errorhandler(ProblemError)
def refuse(problem: ProblemError) -> Response:
    """Show the sign-in form, or a page that says why nothing was done."""
    if problem.kind is UNAUTHORIZED:
        return sign_in_form(problem)
    status, headers, _ = problem.answer()
    said = f"{problem.field}: {problem.detail}" if problem.field else problem.detail
    text = render_template("done.html", title=problem.kind.title, refused=said)
    return Response(text, status, headers, content_type="text/html; charset=utf-8")


@changing.errorhandler(StatementError)
def refuse_statement(error: StatementError) -> Response:
    """Show a page that names the field that cannot be read."""
    return refuse(ProblemError(STATEMENT_INVALID, str(error)))


@changing.get("/studies/<study_id>/<action>")
def ask(study_id: str, action: str) -> Response:
    """Describe the change, with a button that makes it."""
    found = _action(action)
    _signed_in(found.role)
    fields = list(_carried(current_collector(), study_id).values()) if action == "invite" else []
    return _asking(found.title, found.text, subject=study_id, action=action, most=MOST_SHOWN, fields=fields)


@changing.post("/studies/<study_id>/<action>")
def act(study_id: str, action: str) -> Response:
    """Make the change."""
    found = _action(action)
    key = _confirmed(found.role)
    done = found.run(current_collector(), study_id, key)
    return _page("done.html", title=found.title, subject=study_id, done=done)


@changing.get("/keys")
def keys() -> Response:
    """Show every key by name, and a form to make one; needs the operator's token."""
    require_token(_signed_in(Role.OPERATE))
    with current_collector().database.read() as session:
        found = [key.document() for key in list_keys(session)]
    return _page("keys.html", keys=found, roles=[role.value for role in Role], token=_form_token())


@changing.post("/keys")
def add() -> Response:
    """Make a key and show it, only now."""
    key = _confirmed(Role.OPERATE)
    name = Identifier().read(request.form.get("name", ""), "name", StatementError)
    role = request.form.get("role", "")
    if role not in [one.value for one in Role]:
        raise ProblemError(STATEMENT_INVALID, "is no role", "role")
    studies = request.form.get("studies", "").split() or None
    day = request.form.get("expires", "")
    expires = date.fromisoformat(Day().read(day, "expires", StatementError)) if day else None
    made, warnings = make_key(current_collector(), name, Role(role), studies, expires, key)
    said = ". ".join(["the key is shown this once, and kept as a hash", *warnings])
    done = Done(said, (made,))
    return _page("done.html", title="Make a key", subject=name, done=done)


@changing.get("/keys/<name>")
def ask_revoke(name: str) -> Response:
    """Describe the change to a key, with a button that makes it."""
    require_token(_signed_in(Role.OPERATE))
    return _asking("Revoke the key", "The key stops working.", subject=name, action="revoke")


@changing.post("/keys/<name>")
def revoke(name: str) -> Response:
    """Make a key useless."""
    key = _confirmed(Role.OPERATE)
    drop_key(current_collector(), Identifier().read(name, "name", StatementError), key)
    done = Done("The key is revoked")
    return _page("done.html", title="Revoke the key", subject=name, done=done)


@changing.get("/audit-log")
def read_audit_log() -> Response:
    """Show what operators did, the newest first; a key for some studies sees only theirs."""
    key = _signed_in(Role.OPERATE, of_some=True)
    with current_collector().database.read() as session:
        found = audit_log.entries(session, LINES, None, key.studies)
    return _page("audit_log.html", entries=found, most=LINES)


def _action(name: str) -> Action:
    found = ACTIONS.get(name)
    if found is None:
        raise ProblemError(STATEMENT_INVALID, "is nothing that can be done to a study", name[:16])
    return found


def _signed_in(role: Role, of_some: bool = False) -> Key:
    """Return the browser's key, of this role and for the study in the address. Raises ProblemError."""
    given = request.cookies.get(COOKIE)
    if given is None:
        raise ProblemError(UNAUTHORIZED, "", headers=CHALLENGE)
    return require_role(given, role, CHALLENGE, of_some=of_some)


def _confirmed(role: Role) -> Key:
    """Return the browser's key for a form of this page, checked by its token. Raises ProblemError."""
    require_own_page()
    # Anyone may send a form, and it may carry files, which are stored while they are read.
    request.max_content_length = MOST_OF_FORM
    key = _signed_in(role)
    given = request.form.get("token", "")
    if not hmac.compare_digest(given.encode(), _form_token().encode()):
        raise ProblemError(
            FORBIDDEN, "this form is not from this page, or is from an earlier sign-in: go back to it"
        )
    return key


def _form_token() -> str:
    """Return a form's token. It can only be made with the key, and is the same in every process."""
    key = request.cookies.get(COOKIE, "").encode()
    return hmac.new(sha256(key).digest(), FORM_TOKEN, "sha256").hexdigest()


def _asking(title: str, text: str, **values: Any) -> Response:
    return _page("confirm.html", title=title, text=text, token=_form_token(), **values)


def _page(template: str, **values: Any) -> Response:
    return make_response(render_template(template, **values))
