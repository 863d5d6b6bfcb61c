"""`python -m benchmarks.dpblr [--noise laplace] [--quick]`: DPBLR's ranks of the truth, and ours."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.dpblr import calibration
from benchmarks.dpblr.posteriors import METHODS, Lengths
from benchmarks.running import add_sizes, headline

QUICK, TINY = Lengths((1000, 2500), (200, 400)), Lengths((20, 50), (20, 50), tables=2)


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the ranks against the number of records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", choices=["published", "laplace", "gaussian"], default="laplace")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    add_sizes(parser, "shorter chains")
    parser.add_argument("--out", type=Path, default=Path("dpblr-figures"), help="folder for the picture")
    given = parser.parse_args(argv)
    title = f"Figures 5 and 3: ranks of the truth against n ({given.noise} noise)"
    headline(title, "naive is the worst, the others are near uniform")
    start = time.process_time()
    settings = [
        (records, given.epsilon) for records in given.size.of((10, 100, 1000), (10, 100, 1000), (10,))
    ]
    lengths = given.size.of(Lengths(), QUICK, TINY)
    calibration.run_settings(settings, given.noise, lengths, given.methods, given.out)
    print(f"  {time.process_time() - start:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
