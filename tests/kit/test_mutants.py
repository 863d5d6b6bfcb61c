"""The committed faults fit the code: each can be planted, and its tests exist."""

from __future__ import annotations

import pytest

from tests.kit.mutants import LISTS, ROOT, mutants_in


@pytest.mark.parametrize("path", sorted(LISTS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_fault_can_be_planted(path):
    for mutant in mutants_in(path):
        text = (ROOT / mutant.file).read_text("utf-8")
        assert text.count(mutant.before) == 1, mutant.behaviour
        assert mutant.after != mutant.before, mutant.behaviour
        for test in mutant.tests:
            assert (ROOT / test.partition("::")[0]).exists(), test
