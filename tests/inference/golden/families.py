"""All golden fits by family; each family has a file in tests/golden/fits."""

import json
from pathlib import Path

from tests.inference.golden import choices, formulas, numbers, records, secure_sums

FOLDER = Path(__file__).parents[2] / "golden" / "fits"
FAMILIES = {
    "choices": choices.CASES,
    "numbers": numbers.CASES,
    "records": records.CASES,
    "holders": records.HOLDERS,
    "secure sums": secure_sums.CASES,
    "formulas": formulas.CASES,
    "dice": formulas.DICE,
    "defaults": {**choices.DEFAULTS, **numbers.DEFAULTS},
}
# What `make test` fits; the others are dear, or much like these.
FAST = {
    "choices": (
        "bernoulli, randomized_response",
        "multinomial, oue",
        "many, bernoulli with refusals",
        "many, multinomial, hadamard",
    ),
    "numbers": ("exponential, laplace",),
    "records": ("linear, gaussian_statistics", "logistic, sampled_products"),
    "holders": ("table_statistics",),
    "secure sums": ("bernoulli", "linear"),
    "formulas": ("logit", "public choice by private", "groups", "census", "waves"),
    "dice": ("forced", "two arms"),
    "defaults": ("bernoulli", "multinomial", "normal", "exponential"),
}
# A mean may be off by this many posterior sds, an sd by this share.
MEAN_OFF, SD_OFF = 0.1, 0.1


def path_of(family):
    return FOLDER / f"{family.replace(' ', '_')}.json"


def read(family):
    """{case: its digest, source and quantities} as they were written."""
    return json.loads(path_of(family).read_text(encoding="utf-8"))


def differences(draws, wanted):
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
