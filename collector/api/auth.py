"""Authorization: operators' requests need the operator's token, or a key with the right role."""

from flask import g, request

from collector import problems
from collector.api.parameters import WITHDRAWAL_HEADER
from collector.context import current_collector
from collector.keys import CHALLENGE, Key, Role
from collector.problems import ProblemError
from ldp_client.documents.report import report_id_of

# The cookie of a browser that signed in on the operator's page, and the header of that page's requests.
COOKIE = "ldpkit-session"
OWN_PAGE = "LDPKit-Page"


def authorize(needed: Role, of_some: bool = False) -> Key:
    """Return the request's key, which `acting_key` also returns from now on.

    Args:
        needed: the role that it must have.
        of_some: also accept keys for some studies if the address names none; the view shows only those
            studies.

    Raises:
        ProblemError: the key is missing or wrong, or lacks the role or the study in the address.
    """
    keys, headers = current_collector().keys, request.headers
    if "Authorization" not in headers and OWN_PAGE in headers and COOKIE in request.cookies:
        # No other site can send the cookie: it is bound to this one (SameSite), a browser says that the
        # request comes from this site, and no foreign page may add the header OWN_PAGE.
        if headers.get("Sec-Fetch-Site") != "same-origin":
            raise ProblemError(problems.FORBIDDEN, "the operator's page did not send this")
        key = keys.find_session(request.cookies[COOKIE])
    else:
        scheme, _, word = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not word.strip():
            raise ProblemError(problems.UNAUTHORIZED, "the request has no bearer token", headers=CHALLENGE)
        key = keys.find(word.strip())
    g.key = require_role(key, needed, of_some)
    return acting_key()


def require_role(key: Key, needed: Role, of_some: bool = False) -> Key:
    """Return the key.

    key: a valid key's rights. The other arguments are as for `authorize`.

    Raises:
        ProblemError: the key does not have the role, or does not cover the study in the address.
    """
    if not key.role.allows(needed):
        raise ProblemError(problems.FORBIDDEN, f"the key is for {key.role.value}, this needs {needed.value}")
    study_id = (request.view_args or {}).get("study_id")
    if study_id is not None:
        require_reach(key, study_id)
    elif key.studies is not None and not of_some:
        raise ProblemError(problems.FORBIDDEN, "the key is for some studies only, and this is about all")
    return key


def require_reach(key: Key, study_id: str) -> None:
    """Raise ProblemError unless the key is for this study."""
    if not key.reaches(study_id):
        raise ProblemError(problems.FORBIDDEN, "the key is for other studies")


def acting_key() -> Key:
    """Return the key that `authorize` accepted."""
    key: Key = g.key
    return key


def withdrawing_key(report_id: str) -> Key | None:
    """Return the operator's key of a withdrawal, or None if it has the secret of the report's id.

    Raises ProblemError if it has neither: ids are in every export, so an id alone grants no right.
    """
    secret = request.headers.get(WITHDRAWAL_HEADER.name)
    if secret is None:
        if "Authorization" not in request.headers and OWN_PAGE not in request.headers:
            raise ProblemError(
                problems.WITHDRAWAL_UNPROVEN, "neither the report's secret nor a key came with this"
            )
        return authorize(Role.OPERATE)
    try:
        matches = report_id_of(bytes.fromhex(WITHDRAWAL_HEADER.read(secret))) == report_id
    except ProblemError:
        matches = False
    if not matches:
        raise ProblemError(problems.WITHDRAWAL_REFUSED, "the id was not made of this secret")
    return None
