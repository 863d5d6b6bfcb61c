"""Fixed sizes of all requests and answers before encryption, because a relay sees sizes.

A request's size depends only on its own length, an answer's size only on the request's method. Neither
depends on the study or on the result.
"""

from ldp_client.oblivious.binary_http import BinaryError, Request
from ldp_client.oblivious.encapsulation import OVERHEAD_BYTES

REQUEST_SIZES = (4 << 10, 16 << 10, 64 << 10, 256 << 10)
# The longest encapsulated request.
MOST_MESSAGE_BYTES = REQUEST_SIZES[-1] + OVERHEAD_BYTES
# Receipts have a hundred bytes, problems with a challenge some 1,500.
ANSWER_BYTES = 4 << 10
DOCUMENT_BYTES = 64 << 10


def request_bytes(content_bytes: int) -> int:
    """Return the fixed size to which a request is padded.

    Args:
        content_bytes: the length of the request in binary HTTP, without padding.

    Raises:
        BinaryError: the request is longer than the largest size.
    """
    for size in REQUEST_SIZES:
        if content_bytes <= size:
            return size
    raise BinaryError("the request is longer than the largest fixed size")


def answer_bytes(method: str) -> int:
    """Return the fixed size of the answer to a request: the method GET asks for a document."""
    return DOCUMENT_BYTES if method == "GET" else ANSWER_BYTES


def padded(request: Request) -> bytes:
    """Return a request in binary HTTP, padded to its fixed size. Raises BinaryError if it is too long."""
    return request.encode(request_bytes(len(request.encode())))
