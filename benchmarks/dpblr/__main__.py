"""`python -m benchmarks.dpblr --figure 4 5 6 10 [--noise laplace] [--quick]`: DPBLR's figures and ours."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.dpblr import calibration, convergence, utility
from benchmarks.dpblr.posteriors import METHODS, Lengths
from benchmarks.running import add_sizes, headline

FIGURES = {
    "4": ("Figure 4: squared MMD to the non-private posterior", "naive is the farthest"),
    "5": ("Figures 5 and 3: ranks of the truth against n", "naive is the worst, the others are near uniform"),
    "6": ("Figures 6 and 3: ranks of the truth against ε, n = 10", "the same"),
    "10": ("Figure 10: naive against non-private means", "nearly indistinguishable from n = 500,000 on"),
}
QUICK, TINY = Lengths((1000, 2500), (200, 400)), Lengths((20, 50), (20, 50), tables=2)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the figures that were asked for, or all."""
    arguments = _arguments(argv)
    size, noise, methods = arguments.size, arguments.noise, arguments.methods
    lengths = size.of(Lengths(), QUICK, TINY)
    sizes = size.of((10, 100, 1000), (10, 100, 1000), (10,))
    by_records = [(records, arguments.epsilon) for records in sizes]
    for figure in arguments.figure:
        title, claim = FIGURES[figure]
        headline(f"{title} ({noise} noise)", claim)
        start = time.process_time()
        if figure == "4":
            utility.run(by_records, noise, lengths, methods)
        elif figure == "5":
            calibration.run_settings(by_records, noise, lengths, methods, arguments.out, "by_records")
        elif figure == "6":
            by_epsilon = [(10, value) for value in size.of((0.01, 0.1, 1.0), (0.01, 0.1, 1.0), (0.1,))]
            calibration.run_settings(by_epsilon, noise, lengths, methods, arguments.out, "by_epsilon")
        else:
            growing = [10**power for power in range(1, size.of(7, 6, 2))]
            convergence.run(growing, (0.01, 0.1, 1.0), noise)
        print(f"  {time.process_time() - start:.0f} s of processor time", flush=True)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", nargs="+", choices=list(FIGURES), default=list(FIGURES))
    parser.add_argument("--noise", choices=["published", "laplace", "gaussian"], default="laplace")
    parser.add_argument("--epsilon", type=float, default=0.1, help="of figures 4 and 5")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    add_sizes(parser, "shorter chains")
    parser.add_argument("--out", type=Path, default=Path("dpblr-figures"), help="folder for the pictures")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
