"""The one size of a study's requests, and of all answers: a relay sees sizes, so they must reveal nothing.

A request is an upload, a deletion, or the query who serves a study; an answer is a receipt or a problem.
"""

from ldp_client.oblivious.encapsulation import OVERHEAD_BYTES

# Bytes besides the report in the longest request: its address, an invitation, a token, a media type.
BESIDE_BYTES = 1536
STEP_BYTES = 512
# Bytes of an answer before encryption: receipts have a hundred, problems with a challenge some 1,500.
ANSWER_BYTES = 4096


def request_bytes(report_bytes: int) -> int:
    """Return the size of all requests of a study, before they are encrypted.

    report_bytes: the size of each report of the study.
    """
    return -(-(report_bytes + BESIDE_BYTES) // STEP_BYTES) * STEP_BYTES


def body_bytes(report_bytes: int) -> int:
    """Return the size of a study's encapsulated requests, as a relay and its gateway take them."""
    return request_bytes(report_bytes) + OVERHEAD_BYTES
