"""The study's owner, a contact, the ethics approval, and how long reports are kept."""

from ldp_client.documents.fields import Checked, Integer, consists
from ldp_client.documents.shapes import Record
from ldp_client.documents.spoken import Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.fields import Error

DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
HTTPS = "https://"
# Characters allowed in a host's name, before the @ of an e-mail address, and after a host.
_HOST = LETTERS + DIGITS + "-"
_LOCAL = _HOST + "._+"
_PATH = _LOCAL + "~:/?#[]@!$&'()*,;=%"
_HOST_PATTERN = r"([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+"
LONGEST_CONTACT = 200
_WEB_PATTERN = rf"https://{_HOST_PATTERN}(:[0-9]{{1,5}})?([/?#][A-Za-z0-9._+~:/?#\[\]@!$&'()*,;=%-]*)?"
_CONTACT = {
    "type": "string",
    "pattern": rf"^({_WEB_PATTERN}|[A-Za-z0-9._+-]+@{_HOST_PATTERN})$",
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
    if not text.startswith(HTTPS):
        local, _, host = text.partition("@")
        return consists(local, _LOCAL) and _is_host(host)
    rest = text[len(HTTPS) :]
    ends = [place for place in [rest.find(mark) for mark in "/?#"] if place >= 0]
    end = min(ends) if ends else len(rest)
    host, colon, port = rest[:end].partition(":")
    good_port = consists(port, DIGITS) and len(port) <= 5 if colon else True
    return _is_host(host) and good_port and (not rest[end:] or consists(rest[end:], _PATH))


def _is_host(text: str) -> bool:
    parts = text.split(".")
    return len(parts) > 1 and all([consists(part, _HOST) for part in parts])


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
