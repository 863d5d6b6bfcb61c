"""Tables of reports, as `ldpkit export` writes them, without columns for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ldpkit.cli.report_files import DatedReport, write_table
from schemas import Report

# A decoding without columns: it takes reports of any study, also wrong ones.
UNDECODED: Any = SimpleNamespace(columns={}, meet=lambda _report: None, cells=lambda _report: {})


def write_columns(reports: Iterable[Report], path: Path) -> int:
    """Write reports as CSV or Parquet."""
    lines = (json.dumps({"day": "2026-06-15", "report": report.to_document()}) for report in reports)
    return write_table(map(DatedReport.from_line, lines), path, UNDECODED)
