"""`python -m benchmarks.ddplr [--table 1|2] [--figure 2|4] …`: DDPLR's experiments, ours beside theirs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ddplr import accuracy, discrepancy, prediction
from benchmarks.ddplr.estimates import METHODS, PUBLISHED
from benchmarks.ddplr.tables import FILES
from benchmarks.running import add_sizes


def main(argv: Sequence[str] | None = None) -> None:
    """Run the tables and figures that were asked for, or all."""
    arguments = parse(argv)
    methods = tuple(arguments.methods)
    everything = not (arguments.table or arguments.figure)
    start = time.perf_counter()
    tables = arguments.table or (["1", "2"] if everything else [])
    names = (arguments.data or prediction.present()) if tables else []
    if arguments.table and not names:
        raise SystemExit("without data there are no tables to repeat: see above, and set LDPKIT_DATA")
    for constants in arguments.constants if names else ():
        holders = tuple(arguments.holders or prediction.HOLDERS)
        asked = prediction.Asked(names, holders, arguments.runs, arguments.size, methods)
        prediction.run(tables, constants, asked)
    for number in arguments.figure or (("2", "4") if everything else ()):
        for constants in arguments.constants:
            figure = accuracy if number == "2" else discrepancy
            figure.run(arguments.out / constants, constants, arguments.runs, arguments.size, methods)
    print(f"  {time.perf_counter() - start:.0f} s", flush=True)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=("1", "2"), help="1: means, 2: 90 % intervals")
    parser.add_argument("--figure", action="append", choices=("2", "4"))
    parser.add_argument("--runs", type=int, default=50, help="releases of each table; two or more")
    parser.add_argument(
        "--constants",
        action="append",
        choices=("published", "right"),
        help="sensitivities and noise as published, or right ones; both by default",
    )
    parser.add_argument("--data", action="append", choices=tuple(FILES), help="of the tables; all by default")
    parser.add_argument(
        "--holders",
        type=int,
        action="append",
        choices=prediction.HOLDERS,
        help="of the tables; all by default",
    )
    text = "of the tables and of figures 2 and 4; all by default"
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help=text)
    add_sizes(parser, "shorter chains and fewer settings")
    parser.add_argument("--out", type=Path, default=Path("ddplr-figures"), help="folder for the pictures")
    arguments = parser.parse_args(argv)
    arguments.constants = arguments.constants or ["published", "right"]
    if arguments.runs < 2:
        parser.error("--runs must be 2 or more: an interval needs them")
    if "marginal" not in arguments.methods or not set(PUBLISHED) & set(arguments.methods):
        parser.error("--methods: marginal is held against one of the paper's at least")
    return arguments


if __name__ == "__main__":
    main()
