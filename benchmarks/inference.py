"""What a posterior costs: `python -m benchmarks.inference [--only ROW …] [--tiny]`.

Rates move with the machine and its other work: ratios are taken within one run. Seconds without compilation
are those on the wall less those that JAX reports for tracing and compiling. All rows: about 15 minutes.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.inference_rows import fits, fresh, literal
from benchmarks.ldpbi.surveys import choice_study, number_study
from benchmarks.running import Row, Size, add_sizes, cost_of
from ldp_client import mechanism_for
from schemas import Study
from summaries.reductions import REDUCTIONS


def _rate(study: Study, payloads: np.ndarray) -> float:
    """Payloads reduced per CPU second, the best of a few turns."""
    question = study.questions[0]
    mechanism, reduction = mechanism_for(question), REDUCTIONS[question.mechanism.name]
    return len(payloads) / cost_of(lambda: reduction.reduce(mechanism, payloads)).cpu


def summarising(size: Size) -> Iterator[Row]:
    """Reducing payloads in memory, in CPU seconds: unary encoding of 1024 choices, and numbers."""
    choices, numbers = size.of((400_000, 10_000_000), (400_000, 10_000_000), (1000, 1000))
    random = np.random.default_rng(0)
    # A bit is 1 with probability near 1 / (1 + e).
    bits = random.integers(0, 256, (3, choices, 128), dtype=np.uint8)
    unary = _rate(choice_study(1024, 1.0), bits[0] & (bits[1] | bits[2]))
    yield Row(
        "summarise unary encoding, k = 1024", f"{unary / 1e6:.1f} M reports / CPU-s", "≥ 5 M", unary >= 5e6
    )
    values = np.rint(random.laplace(0.5e6, 2.0**20, numbers)).astype(">i4")
    rate = _rate(number_study("normal", 1.0), values.view(np.uint8).reshape(-1, 4))
    yield Row("summarise numbers", f"{rate / 1e6:.1f} M reports / CPU-s", "≥ 50 M", rate >= 50e6)


ROWS: Mapping[str, Callable[[Size], Iterator[Row]]] = {
    "summarise": summarising,
    "literal": literal.normal_numbers,
    "fits": fits.whole_fits,
    "fresh": fresh.fresh_processes,
    "signs": fresh.signs,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the rows that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS)
    )
    add_sizes(parser)
    arguments = parser.parse_args(argv)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    for name in arguments.only:
        for row in ROWS[name](arguments.size):
            print(row, flush=True)


if __name__ == "__main__":
    main()
