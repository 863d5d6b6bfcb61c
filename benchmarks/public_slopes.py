"""Whether 90 % intervals hold slopes of a record's regression that has a public field beside its features.

python -m benchmarks.public_slopes [--studies 60] [--people 20000] [--epsilon 1] [--only NAME]
    [--cluster ADDRESS]

The populations of `leveled_slopes`, with log-odds half a unit higher in one of two regions, which reports
carry in clear. As many people of each region answer in every study; what they send is drawn from its exact
law. Printed are the same columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.leveled_slopes import DRAWS, HEAD, POPULATIONS, PRODUCTS, SLOPES, asked_of, people_of, row_of
from benchmarks.on_cluster import add_place, rows_of, settings_of
from inference.analyses.record_formula import record_formula
from inference.analyses.record_moments import regression_beside
from inference.analyses.record_regression import beside_of
from inference.analyses.reports import public_frame
from inference.analyses.stated_priors import Given
from inference.design.simulated_posteriors import posterior_draws
from inference.models.base import Model
from inference.models.product_cells import cell_probabilities
from ldp_client import mechanism_for
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Study

REGIONS = {"north": 0.0, "south": 0.5}
TRUTHS = {**SLOPES, **PRODUCTS, "region=south": REGIONS["south"]}


def study_of(names: list[str], epsilon: str) -> Study:
    """The study of these features whose reports carry the region."""
    public = [{"id": "region", "choices": list(REGIONS)}]
    return Study({**HEAD, "questions": [asked_of(names, epsilon)], "public": public})


def models_of(names: list[str], n: int, given: argparse.Namespace) -> list[Model]:
    """A model of the reports of each study."""
    study = study_of(names, given.epsilon)
    asked = record_formula(study, f"ill ~ {' + '.join(names)} + region")
    assert asked is not None
    mechanism = cast(SampledProducts, mechanism_for(asked.question))
    laws = [cell_law(mechanism, names, added) for added in REGIONS.values()]
    frame = public_frame(study.public, [(region,) for region in REGIONS])
    found = []
    for random in np.random.default_rng([given.seed, n]).spawn(given.studies):
        counts = np.stack([random.multinomial(n // len(laws), law) for law in laws])
        beside = beside_of(asked, frame, counts, Given(None))
        found.append(regression_beside(asked.question, mechanism, beside))
    return found


def cell_law(mechanism: SampledProducts, names: list[str], added: float) -> NDArray[np.float64]:
    """The probabilities of what one person of a region sends."""
    answers, shares = people_of(names, added)
    entries = np.asarray(quantise_many(mechanism, answers)) / UNIT
    return cell_probabilities(mechanism, {"second": (entries.T * shares) @ entries})


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--people", type=int, nargs="+", default=[20_000])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=POPULATIONS, default=list(POPULATIONS))
    add_place(parser)
    given = parser.parse_args(argv)
    print("population         people slope            truth    mean     sd  its sd  covered")
    asked = [(name, n, settings_of(given)) for n in given.people for name in given.only]
    for lines in rows_of(given, lines_of, asked):
        print(*lines, sep="\n", flush=True)


def lines_of(name: str, n: int, given: argparse.Namespace) -> list[str]:
    found = posterior_draws(models_of(POPULATIONS[name], n, given), given.seed, DRAWS, 1)
    lines = []
    for slope, truth in TRUTHS.items():
        draws = found.get(f"coefficient[{slope}]")
        if draws is not None:
            lines.append(f"{name:16} {n:8,} {slope:15} {row_of(np.full(given.studies, truth), draws)}")
    return lines


if __name__ == "__main__":
    main()
