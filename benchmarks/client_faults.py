"""Whether a device keeps its promises whatever happens: `python -m benchmarks.client_faults [--only KIND …]`.

Lives of devices (answer, send, answer another round, withdraw) are cut short: by SIGKILL at random
moments, just before SQL statements, requests and writes, and by a loss of power; and processes race
for one ledger. After each fault, and after the next life, the ledger and what the collector received
must agree: one report for a question, no spend without a report, no report without a spend.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.ldp_client.devices import race
from tests.ldp_client.faults import killing

RACERS = 8


def main(argv: Sequence[str] | None = None) -> None:
    """Run the faults and say what was wrong; exit code 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="at random moments")
    parser.add_argument(
        "--points", type=int, default=100, help="of each other kind; 0: every point of a life"
    )
    parser.add_argument("--races", type=int, default=20)
    kinds = ["random", *killing.KINDS]
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, help="these kinds of faults")
    arguments = parser.parse_args(argv)
    failed = False
    for kind in arguments.only:
        start = time.perf_counter()
        done = killing.start(kind, arguments.kills if kind == "random" else arguments.points)
        failed |= done.returncode != 0
        print(done.stdout.strip(), f"({time.perf_counter() - start:.0f} s)", done.stderr, flush=True)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.races):
            outcomes = race(context, Path(folder) / str(number), RACERS)
            failed |= outcomes != ["answered"] + ["refused"] * (RACERS - 1)
    print(f"race: {RACERS} processes for one ledger, {arguments.races} times", flush=True)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
