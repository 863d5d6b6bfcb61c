"""What a posterior costs: `python -m benchmarks.inference [--only ROW …] [--tiny]`.

Rates move with the machine and its other work: ratios are taken within one run. Seconds without compilation
are those on the wall less those that JAX reports for tracing and compiling. All rows: about 15 minutes.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.inference_rows import fits, fresh, literal, summarising
from benchmarks.running import Row, Size, add_sizes

ROWS: Mapping[str, Callable[[Size], Iterator[Row]]] = {
    "summarise": summarising.rates,
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
