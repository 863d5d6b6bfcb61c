"""The committed faults fit the code: each can be planted, and its tests exist."""

import pytest

from tests.kit.mutants import LISTS, ROOT, Mutant, mutants_in, survives


@pytest.mark.parametrize("path", sorted(LISTS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_fault_can_be_planted(path):
    for mutant in mutants_in(path):
        text = (ROOT / mutant.file).read_text("utf-8")
        assert text.count(mutant.before) == 1, mutant.behaviour
        assert mutant.after != mutant.before, mutant.behaviour
        for test in mutant.tests:
            assert (ROOT / test.partition("::")[0]).exists(), test


@pytest.mark.slow
def test_a_planted_fault_is_found_and_a_harmless_change_survives(tmp_path):
    (tmp_path / "double.py").write_text('def double(x):\n    """Twice."""\n    return 2 * x\n')
    (tmp_path / "test_double.py").write_text(
        "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
    )

    def lives(before, after):
        return survives(Mutant("It doubles.", "double.py", before, after, ["test_double.py"]), tmp_path)

    assert lives("Twice", "Two times")
    assert not lives("2 * x", "3 * x")
