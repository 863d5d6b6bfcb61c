"""All golden fits by family; each family has a file in tests/golden/fits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.inference.golden import choices
from tests.inference.golden.case import NUTS, Case, Draws
from tests.inference.golden.reference import Moments, Reference, solved

FOLDER = Path(__file__).parents[2] / "golden" / "fits"
FAMILIES: Mapping[str, Mapping[str, Case]] = {
    "choices": choices.CASES,
}
# A mean may be off by this many posterior sds, an sd by this share.
MEAN_OFF, SD_OFF = 0.1, 0.1


def path_of(family: str) -> Path:
    """Where a family's golden values lie."""
    return FOLDER / f"{family}.json"


def read(family: str) -> dict[str, Any]:
    """{case: its digest, source and quantities} as they were written."""
    found: dict[str, Any] = json.loads(path_of(family).read_text(encoding="utf-8"))
    return found


def reference_of(case: Case, data: Any) -> Reference:
    """What a case's posterior should be; this code's own where nobody else can say."""
    if case.target is not None:
        return solved(case.target(data, 1.0))
    many = {name: values.ravel() for name, values in case.draws(data).items()}
    errors = {name: values.std() / (len(values) / 20) ** 0.5 for name, values in many.items()}
    moments = {
        name: Moments(float(one.mean()), float(errors[name]), float(one.std()), float(errors[name] / 2**0.5))
        for name, one in many.items()
    }
    return Reference(NUTS, moments)


def differences(draws: Draws, wanted: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Where draws have another mean or sd than they should; a quantity that is absent is one too."""
    problems = [f"no {name}" for name in wanted if name not in draws]
    for name, one in wanted.items():
        if name in draws:
            mean, sd = float(draws[name].mean()), float(draws[name].std())
            if not abs(mean - one["mean"]) <= MEAN_OFF * one["sd"]:
                problems.append(f"mean of {name}: {mean:.5g}, not {one['mean']:.5g} (sd {one['sd']:.3g})")
            if not abs(sd / one["sd"] - 1) <= SD_OFF:
                problems.append(f"sd of {name}: {sd:.4g}, not {one['sd']:.4g}")
    return problems
