"""`python -m benchmarks.ddplr [--table 1|2] [--figure 2|3|4] …`: DDPLR's experiments, ours beside theirs."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.ddplr import accuracy, discrepancy, prediction, speed
from benchmarks.ddplr.tables import FILES


def main() -> None:
    """Run the tables and figures that were asked for, or all."""
    arguments = parse()
    everything = not (arguments.table or arguments.figure)
    start = time.perf_counter()
    tables = arguments.table or (["1", "2"] if everything else [])
    for constants in arguments.constants if tables else ():
        names = arguments.data or prediction.present()
        holders = tuple(arguments.holders or prediction.HOLDERS)
        asked = prediction.Asked(names, holders, arguments.runs, arguments.quick)
        prediction.run(tables, constants, asked)
    for number in arguments.figure or (("2", "3", "4") if everything else ()):
        if number == "3":
            speed.run(arguments.out, arguments.quick)
            continue
        for constants in arguments.constants:
            figure = accuracy if number == "2" else discrepancy
            figure.run(arguments.out / constants, constants, arguments.runs, arguments.quick)
    print(f"  {time.perf_counter() - start:.0f} s", flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=("1", "2"), help="1: means, 2: 90 % intervals")
    parser.add_argument("--figure", action="append", choices=("2", "3", "4"))
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
    parser.add_argument("--quick", action="store_true", help="shorter chains and fewer settings")
    parser.add_argument("--out", type=Path, default=Path("ddplr-figures"), help="folder for the pictures")
    arguments = parser.parse_args()
    arguments.constants = arguments.constants or ["published", "right"]
    if arguments.runs < 2:
        parser.error("--runs must be 2 or more: an interval needs them")
    return arguments


if __name__ == "__main__":
    main()
