"""Logs for programs: JSON lines with a code for each kind of event; no time, address, report or person.

Also writes the line of --ready-file, for programs that wait for a server.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

from collector.limiter import LOGGER
from collector.settings import JSON_LINES
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import refuse_replacing_other, replacing


class JsonLines(logging.Formatter):
    """One JSON object a line: level, code (else the module's name), text, and the event's counts."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line in ASCII, so that its contents cannot end or colour a line of a terminal."""
        line: dict[str, Any] = {
            "level": record.levelname.lower(),
            "code": getattr(record, "code", record.module),
            "text": record.getMessage(),
        }
        return json.dumps({**line, **getattr(record, "counts", {})})


# For a server program, so that its own lines have the same form.
CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "collector.logs.JsonLines"}},
    "handlers": {
        "console": {"formatter": "lines", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"}
    },
    "loggers": {"_granian": {"handlers": ["console"], "propagate": False}},
}


def write_logs(form: str) -> None:
    """Set the form of this process's log lines, one in LOG_FORMS. As text, only problems are logged."""
    if form != JSON_LINES or any(isinstance(handler.formatter, JsonLines) for handler in LOGGER.handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def log_event(code: str, text: str, **counts: Any) -> None:
    """Log that something happened as it should."""
    LOGGER.info(text, extra={"code": code, "counts": counts})


def refuse_ready(path: str | None) -> None:
    """Raise InputError if --ready-file cannot be written: another file exists, or the folder is missing."""
    if path is not None:
        refuse_replacing_other(path, "http")
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise InputError(
                f"--ready-file: there is no folder {folder}", code="server.ready_file_folder_missing"
            )


def write_ready(path: str | None, url: str) -> None:
    """Write a base URL to --ready-file, if it is given. Raises InputError if another file exists there."""
    if path is not None:
        refuse_replacing_other(path, "http")
        with replacing(path) as file:
            file.write(url + "\n")
