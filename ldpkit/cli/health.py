"""What `ldpkit status --health` prints: the collector's checks, and its certificate as clients see it."""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ldp_client.documents.errors import TransferError
from ldp_client.words.text import counted, visible
from ldpkit.cli.client import Client

# Certificates of 90 days are renewed when 30 are left: with fewer, renewal has failed.
CERTIFICATE_DAYS = 14
SECONDS = 10.0
Check = Mapping[str, Any]


def checks_of(collector: Client) -> Sequence[Check]:
    """Return the collector's checks, and that of its certificate. Raises TransferError as requests do."""

    def read(body: Any) -> list[Check]:
        return [{name: check[name] for name in ("name", "ok", "detail")} for check in body["checks"]]

    return [*collector.ask("GET", "/v1/health", read), _certificate(collector.url)]


def lines_of(checks: Iterable[Check]) -> list[str]:
    """Return a line for each check; `ACT` marks what needs action."""
    # Another collector's words may have control sequences.
    return [
        f"{'ok' if check['ok'] else 'ACT'}\t{visible(str(check['name']))}\t{visible(str(check['detail']))}"
        for check in checks
    ]


def _certificate(url: str) -> Check:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        detail = "not looked at: --collector is an http address"
        return {"name": "certificate", "ok": True, "detail": detail}
    try:
        with socket.create_connection((parts.hostname, parts.port or 443), SECONDS) as plain:
            context = ssl.create_default_context()
            with context.wrap_socket(plain, server_hostname=parts.hostname) as encrypted:
                ends = ssl.cert_time_to_seconds(str((encrypted.getpeercert() or {})["notAfter"]))
    except OSError as error:
        raise TransferError(
            f"cannot read the certificate of {url}: {error}", code="server.no_certificate"
        ) from None
    days = math.floor((ends - time.time()) / 86_400)
    is_fine = days >= CERTIFICATE_DAYS
    advice = "" if is_fine else ": renew it"
    return {"name": "certificate", "ok": is_fine, "detail": f"{counted(days, 'day')} left{advice}"}
