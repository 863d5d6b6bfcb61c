"""`python -m benchmarks.ddplr [--table 1|2] …`: DDPLR's experiments on real data, ours beside theirs."""

import argparse
import time
from collections.abc import Sequence

from benchmarks.ddplr import prediction
from benchmarks.ddplr.estimates import METHODS, PUBLISHED
from benchmarks.ddplr.tables import FILES
from benchmarks.running import add_sizes


def main(argv: Sequence[str] | None = None) -> None:
    """Repeat the tables that were asked for, or both."""
    given = parse(argv)
    start = time.perf_counter()
    names = given.data or prediction.present()
    if not names:
        raise SystemExit("without data there are no tables to repeat: see above, and set LDPKIT_DATA")
    holders = tuple(given.holders or prediction.HOLDERS)
    asked = prediction.Asked(names, holders, given.runs, given.size, tuple(given.methods))
    for constants in given.constants or ("published", "right"):
        prediction.run(given.table or ["1", "2"], constants, asked)
    print(f"  {time.perf_counter() - start:.0f} s", flush=True)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=("1", "2"), help="1: means, 2: 90 %% intervals")
    parser.add_argument("--runs", type=int, default=50, help="releases of each table; two or more")
    parser.add_argument(
        "--constants",
        action="append",
        choices=("published", "right"),
        help="sensitivities and noise as published, or right ones; both by default",
    )
    parser.add_argument("--data", action="append", choices=tuple(FILES), help="all by default")
    parser.add_argument(
        "--holders", type=int, action="append", choices=prediction.HOLDERS, help="all by default"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="all by default")
    add_sizes(parser, "shorter chains")
    given = parser.parse_args(argv)
    if given.runs < 2:
        parser.error("--runs must be 2 or more: an interval needs them")
    if "marginal" not in given.methods or not set(PUBLISHED) & set(given.methods):
        parser.error("--methods: marginal is held against one of the paper's at least")
    return given


if __name__ == "__main__":
    main()
