"""The table of docs/shuffling.md: what a set of reports tells about one person.

python -m benchmarks.shuffling [--people 1000 …]

Printed: ε towards the set for any mechanism of a device's ε, at δ = 1e-6.
"""

import argparse
from collections.abc import Sequence

from schemas.shuffling.reports import shuffled_epsilon

DEVICES = (0.5, 1.0, 2.0, 4.0)
PEOPLE = (1000, 10_000, 100_000, 1_000_000)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each ε of a device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    sets = parser.parse_args(argv).people
    print("any mechanism" + "".join(f"{people:>12,}" for people in sets))
    for own in DEVICES:
        print(f"  ε = {own:<7}" + "".join(f"{shuffled_epsilon(own, people):>12.4g}" for people in sets))


if __name__ == "__main__":
    main()
