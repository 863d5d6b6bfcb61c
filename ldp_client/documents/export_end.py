"""The last line of an export, which tells a whole one from one that was cut off."""

from ldp_client.documents.canonical import canonical_json

FORMAT = "ldpkit.export-end/1"


def end_line(reports: int) -> str:
    """The line behind `reports` reports."""
    return canonical_json({"format": FORMAT, "reports": reports}) + "\n"


def is_end_line(line: bytes) -> bool:
    """Whether a line ends an export, however many reports it says."""
    return line.startswith(b'{"format":"%s"' % FORMAT.encode())
