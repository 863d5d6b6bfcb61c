"""The last line of a complete export, and the headers of an export that is resumed."""

from ldp_client.documents.canonical import canonical_json

FORMAT = "ldpkit.export-end/1"
# How often reports of the study were deleted. A client that resumes sends it: no deletion may be newer.
DELETIONS_HEADER = "LDPKit-Deletions"
# How many reports were withdrawn up to now: earlier exports may still have them.
WITHDRAWN_HEADER = "LDPKit-Withdrawn"


def end_line(reports: int) -> str:
    """Return the line that follows `reports` reports."""
    return canonical_json({"format": FORMAT, "reports": reports}) + "\n"


def is_end_line(line: bytes) -> bool:
    """Return True if a line ends an export, whatever its number of reports."""
    return line.startswith(b'{"format":"%s"' % FORMAT.encode())
