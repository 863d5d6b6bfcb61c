"""The study's owner, a contact, the ethics approval, and how long reports are kept."""

from ldp_client.documents.fields import Checked, Integer, consists
from ldp_client.documents.shapes import Record
from ldp_client.documents.spoken import Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.fields import Error

_MAIL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._+"
# Without @, which would name another host than the one that people see first.
_WEB = _MAIL + "~:/?#[]!$&'()*,;=%"
HTTPS = "https://"
LONGEST_CONTACT = 200
_CONTACT = {
    "type": "string",
    "pattern": r"^(https://[A-Za-z0-9][A-Za-z0-9._+~:/?#\[\]!$&'()*,;=%-]*|[A-Za-z0-9._+-]+@[A-Za-z0-9_+-]+([.][A-Za-z0-9_+-]+)+)$",
    "maxLength": LONGEST_CONTACT,
}
MOST_DAYS = 36500


class Line(Spoken):
    """A text on one line, without control characters and without marks that change the writing direction."""

    def read(self, value: "Any", path: str, error: "Error") -> str:
        text = Spoken.read(self, value, path, error)
        if any([_is_control(character) for character in text]):
            raise error(path, "must be one line, without control characters")
        return text


def _is_control(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0x2028 <= code <= 0x202E or 0x2066 <= code <= 0x2069


def _is_contact(text: "Any") -> bool:
    """Return True for an e-mail address, or for a web address that begins with https://."""
    if not isinstance(text, str) or len(text) > LONGEST_CONTACT:
        return False
    local, mark, host = text.partition("@")
    if mark:
        return consists(local, _MAIL) and consists(host, _MAIL) and "." in host and all(host.split("."))
    rest = text[len(HTTPS) :]
    return text.startswith(HTTPS) and consists(rest, _WEB) and rest[0] in _MAIL[:62]


CONTACT = Checked(
    _is_contact,
    "must be an e-mail address, or a web address that begins with https://, of at most "
    f"{LONGEST_CONTACT} characters",
    _CONTACT,
)
# Fields of a study document.
ASKER = {
    "owner": Line(200),
    "contact": CONTACT,
    "ethics": Line(1000),
    "retention": Record({"days": Integer(1, MOST_DAYS)}),
}
