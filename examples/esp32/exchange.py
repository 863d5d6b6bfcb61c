"""Requests to a collector over TLS, and what its answers mean: only its own words settle anything."""

import json
import socket
import ssl
import time

PROBLEM = "urn:ldpkit:problem:"
LAST_WORDS = ("report-invalid", "report-conflict", "report-withdrawn")
MOST_BYTES = 100_000
TIMEOUT_S, MOST_S = 20, 60
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Collector:
    """A collector at (host, port), whose certificate these authorities signed: `roots`, in DER."""

    def __init__(self, host, port, roots):
        self.host, self.port = host, port
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.verify_mode = ssl.CERT_REQUIRED
        self.tls.load_verify_locations(cadata=roots)

    def request(self, method, path, fields, body=b""):
        """(status, headers in lower case, body). OSError or ValueError where not all of it came."""
        raw = socket.socket()
        try:
            raw.settimeout(TIMEOUT_S)
            raw.connect(socket.getaddrinfo(self.host, self.port)[0][-1])
            stream = self.tls.wrap_socket(raw, server_hostname=self.host)
            # 1.0: no answer comes in chunks, and its end is the end of the connection.
            head = [f"{method} {path} HTTP/1.0", f"Host: {self.host}", f"Content-Length: {len(body)}"]
            head += [f"{name}: {value}" for name, value in fields]
            write_all(stream, ("\r\n".join(head) + "\r\n\r\n").encode() + body)
            return parse(read_all(stream))
        finally:
            raw.close()


def write_all(stream, data):
    while data:
        data = data[stream.write(data) :]


def read_all(stream):
    """What comes until the other side ends, not too much nor too slowly."""
    data, start = b"", time.ticks_ms()
    while True:
        part = stream.read(128)
        if not part:
            return data
        data += part
        if len(data) > MOST_BYTES or time.ticks_diff(time.ticks_ms(), start) > 1000 * MOST_S:
            raise ValueError("no collector answers like this")


def parse(data):
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = [line.split(":", 1) for line in lines]
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    if len(body) != int(headers.get("content-length", len(body))):
        raise ValueError("half an answer")
    _, status, *_ = first.split()
    return int(status), headers, body


def media_type_of(headers):
    """In lower case, without parameters: proxies spell it otherwise."""
    return headers.get("content-type", "").split(";")[0].strip().lower()


def said(headers, body, media_type):
    """The object that was sent as this media type, else an empty one."""
    if media_type_of(headers) != media_type:
        return {}
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def result_of(answer, report_id):
    """What the collector's receipt for the report says became of it, else None."""
    status, headers, body = answer
    receipt = said(headers, body, "application/json")
    return receipt.get("result") if receipt.get("id") == report_id and status in (200, 201) else None


def is_deleted(answer, report_id):
    """Whether a deletion is done: nothing else ends it."""
    return result_of(answer, report_id) == "withdrawn"


def is_settled(answer, report_id, digest, closes, today):
    """Whether a report is stored, or will never be taken. digest, closes: of the study that was answered."""
    if result_of(answer, report_id) in ("stored", "duplicate"):
        return True
    _, headers, body = answer
    problem = said(headers, body, "application/problem+json")
    if problem.get("digest") != digest:
        return False
    name = problem.get("type", "")
    return name in [PROBLEM + word for word in LAST_WORDS] or (
        name == PROBLEM + "study-closed" and is_over(closes, today, day_of(headers.get("date", "")))
    )


def is_over(closes, *days):
    """Whether each of these days is known, and more than 30 days after the last one of the study."""
    return bool(closes) and all([day and number_of(day) > number_of(closes) + 30 for day in days])


def day_of(date):
    """2026-06-15 of "Mon, 15 Jun 2026 10:00:00 GMT", else None."""
    try:
        _, day, month, year, *_ = date.split()
        known = f"{int(year)}-{MONTHS.index(month) + 1:02}-{int(day):02}"
        return known if day.isdigit() and year.isdigit() else None
    except ValueError:
        return None


def number_of(day):
    """Days since a day long ago, of such as 2026-06-15."""
    year, month, day = [int(part) for part in day.split("-")]
    year, month = (year, month) if month > 2 else (year - 1, month + 12)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day
