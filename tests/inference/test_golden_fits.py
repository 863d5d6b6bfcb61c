"""Fits with stated priors give the posteriors of tests/golden/fits, most of which this code has no part in.

`python -m tests.inference.golden` writes these files anew.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.inference.golden.families import FAMILIES, differences, read
from tests.inference.golden.reference import solved

pytestmark = [pytest.mark.programs, pytest.mark.long_runs]

WRONG_SCALE = 1.03
ALL = [(family, name) for family, cases in FAMILIES.items() for name in cases]


def _cases(wanted: list[tuple[str, str]]) -> list[Any]:
    slow = [FAMILIES[family][name].slow for family, name in wanted]
    return [
        pytest.param(*one, id=": ".join(one), marks=[pytest.mark.slow] * own)
        for one, own in zip(wanted, slow, strict=True)
    ]


@cache
def data_of(family: str, name: str) -> Any:
    """A case's reports."""
    return FAMILIES[family][name].data()


@pytest.mark.parametrize(("family", "name"), _cases(ALL))
def test_a_fit_has_the_golden_posterior(family: str, name: str) -> None:
    case, golden = FAMILIES[family][name], read(family)[name]
    data = data_of(family, name)
    assert data.digest == golden["data"], "the reports are others than those of the golden values"
    assert golden["quantities"]
    assert differences(case.draws(data), golden["quantities"]) == []


DECISIVE = [(family, name) for family, name in ALL if FAMILIES[family][name].decisive]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name"), DECISIVE)
def test_a_noise_scale_three_percent_off_is_found(family: str, name: str) -> None:
    """The posterior of a wrong scale is not the golden one: a fit that has one is not the other."""
    target, golden = FAMILIES[family][name].target, read(family)[name]
    assert target is not None
    wrong = solved(target(data_of(family, name), WRONG_SCALE)).quantities
    wanted = {quantity: moments._asdict() for quantity, moments in wrong.items()}
    problems = [
        quantity
        for quantity, one in golden["quantities"].items()
        if abs(one["mean"] - wanted[quantity]["mean"]) > 0.2 * one["sd"]
    ]
    assert problems


def test_every_file_has_every_case() -> None:
    assert {family: set(read(family)) for family in FAMILIES} == {
        family: set(cases) for family, cases in FAMILIES.items()
    }
