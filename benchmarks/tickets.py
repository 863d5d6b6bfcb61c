"""What a token costs: `python -m benchmarks.tickets [--reports 2000]`.

Verification alone, in this process; a single durable report over HTTP with a token and without one, on one
server program, each on a new SQLite file; signing, blinding and unblinding. CPU is user and system time.
"""

from __future__ import annotations

import argparse
import os
import urllib.request
from collections.abc import Callable, Sequence

from benchmarks.collector_load.bodies import fresh_reports, load_study, put_request
from benchmarks.collector_load.generator import run_load
from benchmarks.collector_load.servers import TICKS, TOKEN, Server, serving
from benchmarks.running import cost_of
from collector.issuer.signing import load_key, new_pair, sign
from collector.reports.rules import Rules
from ldp_client.core.tokens import Asking, challenge_of, draw, header_of
from ldp_client.documents.canonical import to_base64
from schemas import Study

ISSUER = "issuer.example"
WARM_UP, CONNECTIONS = 200, 64
# CPU seconds for which each step is repeated.
ENOUGH = 0.1


def tokened(spki: bytes) -> Study:
    """The next version of the benchmark's study, with tokens of that key."""
    tokens = {"issuer": f"https://{ISSUER}", "keys": [{"key": to_base64(spki)}]}
    channel = {"batches": {"hours": 24}, "tickets": tokens}
    return Study({**load_study().document, "version": 2, "channel": channel})


class Client:
    """Makes tokens as a device and its issuer do."""

    def __init__(self) -> None:
        spki, private = new_pair()
        self.key = load_key(private)
        self.study = tokened(spki)
        assert self.study.channel is not None
        assert self.study.channel.tickets is not None
        (self.stated,) = self.study.channel.tickets.keys
        self.challenge = challenge_of(ISSUER, self.study.digest)

    def ask(self) -> Asking:
        """A fresh request."""
        return Asking(self.stated, self.challenge, *draw(self.stated, os.urandom))

    def header(self) -> str:
        """A fresh token's header."""
        asking = self.ask()
        token = asking.token(sign(self.key, asking.body[3:]), os.urandom)
        assert token is not None
        return header_of(token)


def in_process(client: Client) -> None:
    """Print what each step takes."""
    check = Rules.of(client.study).blind
    assert check is not None
    header, asking = client.header(), client.ask()
    signed = sign(client.key, asking.body[3:])
    steps: dict[str, Callable[[], object]] = {
        "collector: verify a token": lambda: check.check(header),
        "issuer: sign one (CRT, masked, checked)": lambda: sign(client.key, asking.body[3:]),
        "device: blind": client.ask,
        "device: unblind and verify": lambda: asking.token(signed, os.urandom),
    }
    for name, step in steps.items():
        print(f"{name:42} {cost_of(step, 1, ENOUGH).cpu * 1e6:8.0f} µs CPU")


def with_header(request: bytes, header: str) -> bytes:
    """A request with a token."""
    head, _, rest = request.partition(b"\r\n")
    return head + b"\r\nAuthorization: " + header.encode() + b"\r\n" + rest


def publish(server: Server, study: Study) -> None:
    """Publish a further version."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/v1/studies", study.canonical(), headers)
    urllib.request.urlopen(request, timeout=30).close()


def over_http(client: Client, count: int) -> None:
    """Print what a single durable report costs the server, with and without."""
    before = min(WARM_UP, count)
    plain = [put_request(report) for report in fresh_reports(load_study(), count + before)]
    bare = [put_request(report) for report in fresh_reports(client.study, count + before)]
    with_tokens = [with_header(request, client.header()) for request in bare]
    found = {}
    for name, requests in (("without", plain), ("with", with_tokens)):
        with serving() as server:
            publish(server, client.study)
            run_load(server.url, requests[:before], CONNECTIONS)
            start = server.cpu_seconds()
            load = run_load(server.url, requests[before:], CONNECTIONS)
            assert set(load.statuses) == {201}, dict(load.statuses)
            # The kernel counts in ticks: less than one reads as none.
            found[name] = max(server.cpu_seconds() - start, 1 / TICKS) / count * 1e6
            print(f"{name:8} a token: {found[name]:6.0f} µs CPU a report, {load.rate:6.0f} reports/s")
    print(f"ratio {found['with'] / found['without']:.2f}")


def main(argv: Sequence[str] | None = None) -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=2000)
    arguments = parser.parse_args(argv)
    client = Client()
    in_process(client)
    over_http(client, arguments.reports)


if __name__ == "__main__":
    main()
