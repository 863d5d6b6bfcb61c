"""One file of reports gives one exit code, whatever the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference import fit
from tests.promises.verdict_cases import BAD, GOOD, NOT_USABLE, USABLE
from tests.promises.verdict_reports import command_of

pytestmark = [pytest.mark.programs, pytest.mark.slow]

SEEDS = range(10)
CODES = {
    "choices of which one is nobody's": USABLE,
    "30 reports that noise drowns": NOT_USABLE,
    "a prior that rules the truth out": NOT_USABLE,
}


@pytest.mark.parametrize("name", CODES)
def test_ten_seeds_give_one_code(name: str, tmp_path: Path) -> None:
    command_of({**BAD, **GOOD}[name], tmp_path, name)
    files = [str(tmp_path / file) for file in ("study.json", "evidence")]
    found = [next(iter(fit(*files, seed=seed, draws=300).values())) for seed in SEEDS]
    assert [NOT_USABLE if posterior.verdict.bad else USABLE for posterior in found] == [CODES[name]] * 10
