"""Hostile input: `python -m benchmarks.collector_hostile [--requests 800] [--inputs 1000000]`.

Requests that schemathesis makes from the OpenAPI document, up to so many for each operation, must get
documented answers; damaged bodies must get a value or a problem from every decoder.
"""

from __future__ import annotations

import argparse
import gzip
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from collector.problems import ProblemError
from collector.reports.rules import Rules
from collector.reports.uploads import inflate
from ldp_client.documents.errors import DocumentError
from schemas import Report
from tests.collector.conftest import Harness, build_report, build_study
from tests.collector.contract import run_cases

SEED = 20260615
LIMIT = 1 << 16
STUDY = build_study()


def decoders() -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """For each decoder something that it accepts, and the decoder."""
    report = build_report(STUDY)
    form = Rules.of(STUDY).form
    text = report.to_json().encode()
    batch = b'{"reports":[' + text + b"," + text + b"]}"
    return {
        "report in JSON": (text, Report.from_json),
        "report in canonical form": (text, form.read),
        "batch in canonical form": (batch, form.read_batch),
        "gzip": (gzip.compress(text), lambda body: inflate(body, "gzip", LIMIT)),
    }


def damage(body: bytes, source: random.Random) -> bytes:
    """The body with up to three bytes put in, taken out or changed in up to three places."""
    damaged = bytearray(body)
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(damaged) + 1)
        damaged[place : place + source.randint(0, 3)] = source.randbytes(source.randint(0, 3))
    return bytes(damaged)


def fuzz(inputs: int) -> None:
    """Give every decoder its share of damaged bodies; anything but a value or a problem ends the run."""
    source = random.Random(SEED)
    for name, (body, decode) in decoders().items():
        start, accepted, share = time.perf_counter(), 0, -(-inputs // len(decoders()))
        for _ in range(share):
            try:
                accepted += decode(damage(body, source)) is not None
            except (DocumentError, ProblemError):
                continue
        print(f"{name}: {share} inputs, {accepted} accepted, {time.perf_counter() - start:.0f} s", flush=True)


def contract(most: int) -> None:
    """Send generated requests to a collector in this process."""
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(f"sqlite:///{Path(folder) / 'x.sqlite3'}")
        harness.publish(STUDY)
        start = time.perf_counter()
        sent = run_cases(harness, [build_report(STUDY) for _ in range(20)], most).total()
        print(f"contract: {sent} requests, all answered as documented, {time.perf_counter() - start:.0f} s")
        harness.collector.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    arguments = parser.parse_args(argv)
    contract(arguments.requests)
    fuzz(arguments.inputs)


if __name__ == "__main__":
    main()
