"""Hostile input: `python -m benchmarks.collector_hostile [--requests 800] [--inputs 1000000] [--seconds 3]`.

Requests that schemathesis makes from the OpenAPI document, up to so many for each operation, must get
documented answers; damaged bodies must get a value or a problem from every decoder. Then a server gets
uploads alone and beside connections that only read, in turns, and withdrawals beside invented ones.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from benchmarks.collector_load.bodies import STUDY_ID, delete_request, fresh_reports, load_study, put_request
from benchmarks.collector_load.generator import Load, run_load
from benchmarks.collector_load.servers import Server, collector_command
from collector.problems import ProblemError
from collector.reports.rules import Rules
from collector.reports.uploads import inflate
from ldp_client.documents.errors import DocumentError
from ldp_client.documents.report import report_id_of
from schemas import Report
from tests.kit.collectors import Harness, build_report, build_study
from tests.kit.contract import run_cases

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


READERS = 16
UPLOADERS = 64
TURNS = 3
UPLOADS_A_SECOND = 4000
WITHDRAWALS = 40
# What readers read again and again: the path, and a header.
READS = {
    "the page": (f"/s/{STUDY_ID}", ""),
    "the study": (f"/v1/studies/{STUDY_ID}", ""),
    "the unchanged study": (f"/v1/studies/{STUDY_ID}", f'If-None-Match: "{load_study().digest}"\r\n'),
    "an unknown study": ("/v1/studies/unknown", ""),
    "a summary with a wrong key": (f"/v1/studies/{STUDY_ID}/summary", "Authorization: Bearer wrong\r\n"),
}


@contextmanager
def beside(url: str, requests: Sequence[bytes]) -> Iterator[None]:
    """Send the requests over READERS connections from another process while the block lasts."""
    process = get_context("fork").Process(target=run_load, args=(url, requests, READERS), daemon=True)
    process.start()
    time.sleep(0.2)
    try:
        yield
    finally:
        process.kill()
        process.join()


def uploaded(server: Server, seconds: float) -> float:
    """Reports a second that are stored."""
    count = max(2 * UPLOADERS, round(UPLOADS_A_SECOND * seconds))
    requests = [put_request(report) for report in fresh_reports(load_study(), count)]
    load = run_load(server.url, requests, UPLOADERS, seconds)
    return len(load.answered) / load.seconds


def readers(server: Server, seconds: float) -> None:
    """Which share of the uploads stays beside readers: the median of some turns."""
    for name, (path, header) in READS.items():
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode()
        shares = []
        for _ in range(TURNS):
            alone = uploaded(server, seconds)
            with beside(server.url, [request] * round(100_000 * seconds)):
                shares.append(uploaded(server, seconds) / alone)
        print(f"beside {READERS} readers of {name}: {statistics.median(shares):.0%} of uploads", flush=True)


def deletions(server: Server, seconds: float) -> None:
    """How many reports their devices can withdraw while others delete invented ones."""
    study = load_study()
    secrets = [os.urandom(16) for _ in range(WITHDRAWALS)]
    for secret, report in zip(secrets, fresh_reports(study, WITHDRAWALS)):
        report.id = report_id_of(secret)
        run_load(server.url, [put_request(report)], 1)
    invented = [delete_request(os.urandom(16)) for _ in range(round(10_000 * seconds))]
    load = Load()
    with beside(server.url, invented):
        for secret in secrets:
            load.statuses.update(run_load(server.url, [delete_request(secret)], 1).statuses)
            time.sleep(seconds / WITHDRAWALS)
    print(
        f"beside deletions of invented reports: {load.statuses[200]} of {WITHDRAWALS} withdrawn", flush=True
    )


def strangers(seconds: float) -> None:
    """Measure both on a server of its own."""
    with tempfile.TemporaryDirectory() as name:
        url = f"sqlite:///{Path(name) / 'benchmark.sqlite3'}"
        server = Server(Path(name), [*collector_command(), "--database", url], {})
        try:
            readers(server, seconds)
            deletions(server, seconds)
        finally:
            server.kill()


def main(argv: Sequence[str] | None = None) -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3, help="of each turn beside others")
    arguments = parser.parse_args(argv)
    if arguments.requests:
        contract(arguments.requests)
    if arguments.inputs:
        fuzz(arguments.inputs)
    strangers(arguments.seconds)


if __name__ == "__main__":
    main()
