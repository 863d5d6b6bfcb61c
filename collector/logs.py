"""Logs for programs: JSON lines with a code for each kind of event; no time, address, report or person.

And the one line of --ready-file, for programs that wait.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

from collector.bounding import LOGGER
from collector.settings import JSON_LINES
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import refuse_replacing_other, replacing


class JsonLines(logging.Formatter):
    """One JSON object a line: level, code (else the module's name), text, and what the event counts."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. In ASCII, so that nothing in it ends or colours a line of a terminal."""
        said: dict[str, Any] = {
            "level": record.levelname.lower(),
            "code": getattr(record, "code", record.module),
            "text": record.getMessage(),
        }
        return json.dumps({**said, **getattr(record, "counts", {})})


# For a server program whose own lines are to have the same form.
CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "generic": {"()": "collector.logs.JsonLines"},
        "access": {"()": "collector.logs.JsonLines"},
    },
    "handlers": {
        "console": {"formatter": "generic", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
        "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
    },
    "loggers": {
        "_granian": {"handlers": ["console"], "level": "INFO", "propagate": False},
        "granian.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}


def write_logs(form: str) -> None:
    """Have this process's log lines in a form of LOG_FORMS. As text nothing is written where all is well."""
    if form != JSON_LINES or any(isinstance(one.formatter, JsonLines) for one in LOGGER.handlers):
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
    """Raises InputError where --ready-file is another file or in no folder: before anything listens."""
    if path is not None:
        refuse_replacing_other(path, "http")
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise InputError(
                f"--ready-file: there is no folder {folder}", code="server.ready_file_folder_missing"
            )


def write_ready(path: str | None, url: str) -> None:
    """Write a base URL to --ready-file, where it is named. Raises InputError where another file is there."""
    if path is not None:
        refuse_replacing_other(path, "http")
        with replacing(path) as file:
            file.write(url + "\n")
