"""What tells a whole export from one that was cut off: its last line, and a header for those that resume."""

from ldp_client.documents.canonical import canonical_json

FORMAT = "ldpkit.export-end/1"
# How often reports of the study had been deleted: who resumes says it, as none may be since.
DELETIONS_HEADER = "LDPKit-Deletions"
# How many reports were withdrawn since the last export that came to its end: its copies still have them.
WITHDRAWN_HEADER = "LDPKit-Withdrawn"


def end_line(reports: int) -> str:
    """The line behind `reports` reports."""
    return canonical_json({"format": FORMAT, "reports": reports}) + "\n"


def is_end_line(line: bytes) -> bool:
    """Whether a line ends an export, however many reports it says."""
    return line.startswith(b'{"format":"%s"' % FORMAT.encode())
