"""The key configuration of a gateway (RFC 9458, section 3.1), which an app ships."""

from binascii import a2b_base64

from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import UsageError
from ldp_client.oblivious.encapsulation import KEM_ID, POINT_BYTES, SUITE

# A configuration has an id, a KEM, a public key, the length of the suites, and suites of 4 bytes.
_POINT_AT = 3
_LENGTH_AT = _POINT_AT + POINT_BYTES
_SUITES_AT = _LENGTH_AT + 2


def read_configuration(text: str) -> tuple[int, bytes]:
    """Return a key's number and its X25519 public key, 32 bytes.

    Args:
        text: the configuration in base64, as `ldpkit ohttp show` prints it.

    Raises:
        UsageError: the text is no configuration, or lacks the one suite that devices use.
    """
    try:
        raw = a2b_base64(text)
    except ValueError:
        raw = b""
    suites = raw[_SUITES_AT:]
    length = int.from_bytes(raw[_LENGTH_AT:_SUITES_AT], "big")
    is_whole = bool(suites) and len(suites) == length and length % 4 == 0 and to_base64(raw) == text
    known = [suites[start : start + 4] for start in range(0, length, 4)] if is_whole else []
    if SUITE not in known or raw[1:_POINT_AT] != KEM_ID.to_bytes(2, "big"):
        raise UsageError.say("device.relay_configuration")
    return raw[0], raw[_POINT_AT:_LENGTH_AT]
