"""What the set of reports tells about one person: figures, agreement with brute force, time, and monotony.

python -m benchmarks.shuffling [--people 1000 …] [--reports 100000] [--enumerated 12] [--most 100000000]
    [--cells 10000]

Printed: ε towards the set for any mechanism of a device's ε, at δ = 1e-6; the same of whole reports;
the largest difference to the exact divergence of the dominating pair, by enumeration; the time of the largest
sets; and how often, in random cells of (n, ε₀, ε), more people, a smaller ε₀ or a larger ε gave more.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from fractions import Fraction

from schemas import Study
from schemas.shuffling.amplifying import delta_of
from schemas.shuffling.lattice import expected_excess
from schemas.shuffling.laws import any_law, choice_law, exp_above
from schemas.shuffling.reports import exact, shuffled_epsilon, shuffled_privacy
from tests import studies
from tests.schemas.shuffling.shuffled import dominating, response

DEVICES = (0.5, 1.0, 2.0, 4.0)
PEOPLE = (1000, 10_000, 100_000, 1_000_000)
# Beyond it no δ is asked for, and what is left is what lies outside of a window.
LEAST_DELTA = 1e-15


def print_general(sets: Sequence[int]) -> None:
    """The table of docs/shuffling.md."""
    print("any mechanism" + "".join(f"{people:>12,}" for people in sets))
    for own in DEVICES:
        print(f"  ε = {own:<7}" + "".join(f"{shuffled_epsilon(own, people):>12.4g}" for people in sets))


def print_reports(people: int) -> None:
    """Studies of each mechanism, and of several questions, beside the general bound of the same ε."""
    print(f"\nof {people:,} reports: towards the set, for any mechanism of that ε, and the device's own")
    choice = {**studies.CHOICE, "choices": {"count": 20}}
    asked = {"laplace": [studies.with_epsilon(studies.NUMBER, "2")]}
    for name in ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard"):
        asked[name] = [{**choice, "mechanism": {"name": name, "epsilon": "2"}}]
    for count in (2, 4, 8):
        asked[f"{count} yes/no"] = [{**studies.YES_NO, "id": f"q{place}"} for place in range(count)]
    for name, questions in asked.items():
        found = shuffled_privacy(Study(studies.document(*questions)), people)
        general = shuffled_epsilon(found.device_epsilon, people)
        print(f"  {name:20}{found.epsilon:>10.4g}{general:>10.4g}{found.device_epsilon:>10.4g}")


def print_enumerated(most: int) -> None:
    """The largest difference to the dominating pair's divergence."""
    largest, growth = Fraction(0), Fraction(5, 2)
    for choices in (2, 3):
        laws = [response(growth, choices, answer) for answer in range(choices)]
        law = choice_law(growth, (growth - 1) / (growth + choices - 1), Fraction(0))
        for people in range(1, most + 1):
            for ratio in (Fraction(1), Fraction(21, 20), Fraction(3, 2), Fraction(2)):
                bound = expected_excess(law.atoms(ratio), people)
                difference = bound - dominating(laws, (0, 1), people, ratio)
                assert difference >= 0
                largest = max(largest, difference)
    print(f"\nabove enumeration by at most {float(largest):.1e}, never below (n ≤ {most}, 2 and 3 choices)")


def print_times(most: int) -> None:
    """CPU seconds of one ε."""
    print(f"\n{most:,} reports")
    for own in DEVICES:
        began = time.process_time()
        found = shuffled_epsilon(own, most)
        print(f"  ε = {own:<7}{found:>12.4g}{time.process_time() - began:>8.2f} s")


def print_monotony(cells: int) -> None:
    """Each cell's δ, and that of its neighbours: ε for a δ is the first ε whose δ is small enough."""
    draw, wrong = random.Random(20), 0
    for _ in range(cells):
        people, own = int(10 ** draw.uniform(0, 4)), draw.uniform(0.05, 6)
        towards = own * 10 ** draw.uniform(-2.5, 0)
        found = _delta(own, people, towards)
        better = (
            _delta(own, people + draw.randint(1, people), towards),
            _delta(own * draw.uniform(0.9, 1), people, towards),
            _delta(own, people, towards * draw.uniform(1, 1.2)),
        )
        wrong += any(one > max(found, LEAST_DELTA) for one in better)
    print(f"\n{wrong} of {cells:,} random cells are not monotone in n, ε₀ and ε")


def _delta(epsilon: float, people: int, towards: float) -> float:
    """Return the bound on δ for any mechanism of this ε."""
    alone = exact(epsilon, "epsilon")
    law = any_law(exp_above(alone))
    return float(delta_of(law, people, exact(towards, "towards")))


def main(argv: Sequence[str] | None = None) -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE, help="of any mechanism")
    parser.add_argument("--reports", type=int, default=100_000, help="of each mechanism")
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--most", type=int, default=10**8, help="reports of which an ε is timed")
    parser.add_argument("--enumerated", type=int, default=12, help="people at most")
    arguments = parser.parse_args(argv)
    print_general(arguments.people)
    print_reports(arguments.reports)
    print_enumerated(arguments.enumerated)
    print_times(arguments.most)
    print_monotony(arguments.cells)


if __name__ == "__main__":
    main()
