"""`python -m benchmarks.ldpbi [FIGURE …] [--quick | --tiny] [--out FOLDER]`: ours beside LDPBI's claims."""

import argparse
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.ldpbi import calibration
from benchmarks.running import add_sizes

FIGURES = ("1", "2", "3", "4", "5", "10", "11")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the figures that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "figures", nargs="*", metavar="FIGURE", help=f"of {', '.join(FIGURES)}; all by default"
    )
    add_sizes(parser, "fewer repeats and settings, a minute each at most")
    parser.add_argument("--out", type=Path, default=Path("ldpbi-figures"), help="folder for the pictures")
    arguments = parser.parse_args(argv)
    for name in arguments.figures or FIGURES:
        if name not in FIGURES:
            parser.error(f"there is no figure {name} here: {', '.join(FIGURES)}")
        start = time.perf_counter()
        if name in calibration.EXPERIMENTS:
            calibration.run(name, arguments.out, arguments.size)
        else:
            import_module(f"benchmarks.ldpbi.figure_{name}").run(arguments.out, arguments.size)
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
