"""What oblivious HTTP costs a collector's processor for each request: `python -m benchmarks.oblivious`.

All that is done for a request beside the request itself: opening it, reading it, calling the collector's
application, and encapsulating an answer of the fixed size. The application here answers at once. CPU time of
this thread, of the quickest of many short rounds: other programs on the machine only make rounds slower. The
median is shown beside it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from collector.oblivious import Gateway, GatewayKey, GatewayKeys
from ldp_client.oblivious.binary_http import Request, padded
from ldp_client.oblivious.encapsulation import encapsulate

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ROUNDS = 200
REPORT = b"{" + b'"payload"' * 50 + b"}"
PATH = "/v1/studies/habits/reports/" + "0" * 32


def at_once(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A receipt, as the collector gives one."""
    environ["wsgi.input"].read()
    start_response("201 CREATED", [("Content-Type", "application/json")])
    return [b'{"id":"' + b"0" * 32 + b'","result":"stored"}\n']


def micros(work: Callable[[], Any], requests: int) -> tuple[float, float]:
    """CPU microseconds of one call: in the quickest round, and in the median one."""
    taken = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(requests // ROUNDS):
            work()
        taken.append((time.thread_time() - start) / (requests // ROUNDS))
    return 1e6 * min(taken), 1e6 * statistics.median(taken)


def measure(requests: int) -> dict[str, tuple[float, float]]:
    """CPU microseconds of a request, at the device and at the gateway."""
    key = GatewayKey(1, X25519PrivateKey.generate())
    public = key.private.public_key().public_bytes_raw()
    fields = [("content-type", "application/json")]
    plain = padded(Request("PUT", "collector.example", PATH, fields, REPORT))
    message = encapsulate(1, public, plain).message
    gateway = Gateway(GatewayKeys((key,)), at_once)
    return {
        "device": micros(lambda: encapsulate(1, public, plain), requests),
        "gateway": micros(lambda: gateway.answer(gateway.open(message)), requests),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    for name, (least, median) in measure(parser.parse_args(argv).requests).items():
        print(f"{name}: {least:.0f} µs of CPU a request, median {median:.0f} µs")


if __name__ == "__main__":
    main()
