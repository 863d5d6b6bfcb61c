"""Binary HTTP messages of known length (RFC 9292): the content of encapsulated requests and answers.

Zeros pad a message up to a fixed size (section 3.8), because a relay sees sizes. A request's size depends
only on its own length, an answer's size only on the request's method. Neither depends on the study or on the
result.
"""

from collections.abc import Sequence
from typing import NamedTuple

Fields = Sequence[tuple[str, str]]
# Framing indicators (section 3.3) of the two forms that are read here; the other forms have no known length.
KNOWN_REQUEST = 0
KNOWN_ANSWER = 1
# The most fields of a message: more than any device or collector sends.
MOST_FIELDS = 32
REQUEST_SIZES = (4 << 10, 16 << 10, 64 << 10, 256 << 10)
# Receipts have a hundred bytes, problems with a challenge some 1,500.
ANSWER_BYTES = 4 << 10
DOCUMENT_BYTES = 64 << 10
# Of final answers: the gateway sends no informational ones.
LOWEST_STATUS, HIGHEST_STATUS = 200, 599


class BinaryError(ValueError):
    """The input is not a message that this module makes or reads. The error quotes none of its content."""


class Request(NamedTuple):
    """A request. fields: pairs of lower-case names and values. content: its body."""

    method: str
    authority: str
    path: str
    fields: Fields = ()
    content: bytes = b""
    scheme: str = "https"

    def encode(self, size: int = 0) -> bytes:
        """Return its bytes, padded with zeros to `size`. Raises BinaryError if they are longer."""
        control = (self.method, self.scheme, self.authority, self.path)
        head = b"".join([_sized(part.encode("latin-1")) for part in control])
        return _padded(bytes([KNOWN_REQUEST]) + head + _rest(self.fields, self.content), size)

    @classmethod
    def decode(cls, message: bytes) -> "Request":
        """Read one known-length request and its zeros. Raises BinaryError for anything else."""
        reader = _Reader(message)
        if reader.number() != KNOWN_REQUEST:
            raise BinaryError("not a known-length request")
        method, scheme, authority, path = [reader.text() for _ in range(4)]
        return cls(method, authority, path, *_read_rest(reader), scheme)


class Answer(NamedTuple):
    """An answer. status: 200 to 599. fields, content: as in a request."""

    status: int
    fields: Fields = ()
    content: bytes = b""

    def encode(self, size: int = 0) -> bytes:
        """Return its bytes, padded with zeros to `size`. Raises BinaryError if they are longer."""
        head = bytes([KNOWN_ANSWER]) + number(self.status)
        return _padded(head + _rest(self.fields, self.content), size)

    @classmethod
    def decode(cls, message: bytes) -> "Answer":
        """Read one known-length answer and its zeros. Raises BinaryError for anything else."""
        reader = _Reader(message)
        if reader.number() != KNOWN_ANSWER:
            raise BinaryError("not a known-length answer")
        status = reader.number()
        if not LOWEST_STATUS <= status <= HIGHEST_STATUS:
            raise BinaryError("not the status of an answer")
        return cls(status, *_read_rest(reader))


def answer_bytes(method: str) -> int:
    """Return the fixed size of the answer to a request: the method GET asks for a document."""
    return DOCUMENT_BYTES if method == "GET" else ANSWER_BYTES


def padded(request: Request) -> bytes:
    """Return a request in binary HTTP, padded to its fixed size. Raises BinaryError if it is too long."""
    length = len(request.encode())
    return request.encode(next((size for size in REQUEST_SIZES if length <= size), REQUEST_SIZES[-1]))


def number(value: int) -> bytes:
    """Return a variable-length integer (RFC 9000, section 16) in its shortest form."""
    for prefix, length in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * length - 2):
            return (value | prefix << (8 * length - 2)).to_bytes(length, "big")
    raise BinaryError("a number above 2**62")


def _sized(part: bytes) -> bytes:
    return number(len(part)) + part


def _rest(fields: Fields, content: bytes) -> bytes:
    """Return the header section, the content and an empty trailer section."""
    parts = [_sized(part.encode("latin-1")) for field in fields for part in field]
    return _sized(b"".join(parts)) + _sized(content) + number(0)


def _padded(message: bytes, size: int) -> bytes:
    if size and len(message) > size:
        raise BinaryError("the message is longer than its fixed size")
    return message + bytes(max(0, size - len(message)))


def _read_rest(reader: "_Reader") -> tuple[list[tuple[str, str]], bytes]:
    """Return fields and content. A message may end before any of its empty last parts (section 3.8)."""
    fields = _read_fields(reader)
    content = reader.part() if reader.left() else b""
    if reader.left() and _read_fields(reader):
        raise BinaryError("the message has trailer fields")
    if reader.rest().strip(b"\0"):
        raise BinaryError("only zeros may follow the message")
    return fields, content


def _read_fields(reader: "_Reader") -> list[tuple[str, str]]:
    section = _Reader(reader.part() if reader.left() else b"")
    fields: list[tuple[str, str]] = []
    while section.left():
        name, value = section.text(), section.text()
        if not name or name != name.lower() or len(fields) == MOST_FIELDS:
            raise BinaryError("a field has no lower-case name, or there are too many fields")
        fields.append((name, value))
    return fields


class _Reader:
    """Reads a message from its beginning; any step beyond its end raises BinaryError."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._at = 0

    def left(self) -> int:
        return len(self._message) - self._at

    def rest(self) -> bytes:
        return self._message[self._at :]

    def take(self, length: int) -> bytes:
        if length > self.left():
            raise BinaryError("the message ends too early")
        self._at += length
        return self._message[self._at - length : self._at]

    def number(self) -> int:
        (first,) = self.take(1)
        if first < 64:
            return first
        length = 1 << (first >> 6)
        return (first & 63) << (8 * (length - 1)) | int.from_bytes(self.take(length - 1), "big")

    def part(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        """Read a part that may be in a header or a request's first line: visible ASCII, on one line."""
        text = self.part().decode("latin-1")
        if not (text.isascii() and text.isprintable()):
            raise BinaryError("not a header's text: visible ASCII on one line")
        return text
