"""The one size of a study's requests, and of all answers: a relay sees sizes, and they must say nothing.

A request is an upload, a deletion, or the question who serves a study; an answer is a receipt or a problem.
"""

from ldp_client.oblivious.encapsulation import OVERHEAD_BYTES

# What stands beside a report in the longest request: its address, an invitation, a token, a media type.
BESIDE_BYTES = 1536
STEP_BYTES = 512
# Of an answer, before it is encrypted: receipts have a hundred bytes, problems with a challenge some 1,500.
ANSWER_BYTES = 4096


def request_bytes(report_bytes: int) -> int:
    """The size of all requests of a study, before they are encrypted.

    report_bytes: of one report; all reports of a study have the same.
    """
    return -(-(report_bytes + BESIDE_BYTES) // STEP_BYTES) * STEP_BYTES


def body_bytes(report_bytes: int) -> int:
    """The size of all requests of a study as a relay and its gateway take them, encapsulated."""
    return request_bytes(report_bytes) + OVERHEAD_BYTES
