"""`python -m benchmarks.ldpbi [FIGURE …] [--quick] [--out FOLDER]`: ours beside LDPBI's claims."""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from pathlib import Path

FIGURES = ("1", "2", "3", "4", "5", "10", "11")


def main() -> None:
    """Run the figures that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "figures", nargs="*", metavar="FIGURE", help=f"of {', '.join(FIGURES)}; all by default"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats and settings, a minute each at most"
    )
    parser.add_argument("--out", type=Path, default=Path("ldpbi-figures"), help="folder for the pictures")
    arguments = parser.parse_args()
    for name in arguments.figures or FIGURES:
        if name not in FIGURES:
            parser.error(f"there is no figure {name} here: {', '.join(FIGURES)}")
        start = time.perf_counter()
        import_module(f"benchmarks.ldpbi.figure_{name}").run(arguments.out, arguments.quick)
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
