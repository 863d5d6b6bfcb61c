"""`python -m benchmarks.dpblr --figure 4 5 6 10 13 [--noise laplace] [--quick]`: DPBLR's figures and ours."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.dpblr import calibration, convergence, run_times, utility
from benchmarks.dpblr.posteriors import METHODS, Lengths
from benchmarks.ldpbi.showing import headline

FIGURES = {
    "4": ("Figure 4: squared MMD to the non-private posterior", "naive is the farthest"),
    "5": ("Figures 5 and 3: ranks of the truth against n", "naive is the worst, the others are near uniform"),
    "6": ("Figures 6 and 3: ranks of the truth against ε, n = 10", "the same"),
    "10": ("Figure 10: naive against non-private means", "nearly indistinguishable from n = 500,000 on"),
    "13": (
        "Figures 11 and 13: run times",
        "naive is the fastest, Gibbs-SS-Update the slowest, MCMC-Ind grows",
    ),
}
QUICK = Lengths(gibbs=(1000, 2500), exact=(200, 400))


def main() -> None:
    """Run the figures that were asked for, or all."""
    arguments = _arguments()
    lengths = QUICK if arguments.quick else Lengths()
    noise, methods, epsilon = arguments.noise, arguments.methods, arguments.epsilon
    by_records = [(records, epsilon) for records in (10, 100, 1000)]
    for figure in arguments.figure:
        title, claim = FIGURES[figure]
        headline(f"{title} ({noise} noise)", claim)
        start = time.process_time()
        if figure == "4":
            utility.run(by_records, noise, lengths, methods)
        elif figure == "5":
            calibration.run_settings(by_records, noise, lengths, methods, arguments.out, "by_records")
        elif figure == "6":
            by_epsilon = [(10, value) for value in (0.01, 0.1, 1.0)]
            calibration.run_settings(by_epsilon, noise, lengths, methods, arguments.out, "by_epsilon")
        elif figure == "10":
            sizes = (10, 100, 1000, 10_000, 100_000, 1_000_000)
            convergence.run(sizes[: 5 if arguments.quick else 6], (0.01, 0.1, 1.0), noise)
        else:
            run_times.run((10, 100, 1000), epsilon, noise, lengths, methods)
        print(f"  {time.process_time() - start:.0f} s of processor time", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", nargs="+", choices=list(FIGURES), default=list(FIGURES))
    parser.add_argument("--noise", choices=["published", "laplace", "gaussian"], default="laplace")
    parser.add_argument("--epsilon", type=float, default=0.1, help="of figures 4, 5 and 13")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="shorter chains")
    parser.add_argument("--out", type=Path, default=Path("dpblr-figures"), help="folder for the pictures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
