"""The tutorials are true: their files and commands work in an empty folder, and print what they say."""

from pathlib import Path

import pytest

from tests.kit.tutorials import Step, play, untold

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/tutorials").glob("*.md"))


UNTRUSTED = 4


def played(text, folder, meant=()):
    """Chance draws the noise: a check that one fit in a thousand fails may speak once, and not twice.

    meant: commands that end so on purpose.
    """
    for attempt in ("first", "second"):
        (folder / attempt).mkdir()
        steps = play(text, folder / attempt)
        if all(step.status != UNTRUSTED or step.command in meant for step in steps):
            break
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_tutorial_prints_documented_output(page, tmp_path):
    steps = played(page.read_text(), tmp_path)
    assert len(steps) > 6
    assert {step.command: lines for step in steps if (lines := untold(step))} == {}
    # A command that fails is followed by one that asks with which status.
    asked = [after.command == "echo $?" for after in steps[1:]] + [False]
    assert [step for step, is_asked in zip(steps, asked, strict=True) if step.status and not is_asked] == []


@pytest.mark.slow
def test_readme_prints_documented_output(tmp_path):
    of_one_report = "ldpkit fit ../study.json collected.ndjson --out result"
    steps = played((ROOT / "README.md").read_text(), tmp_path, [of_one_report])
    assert len(steps) == 11
    assert {step.command: lines for step in steps if (lines := untold(step))} == {}
    assert [step.command for step in steps if step.status] == [of_one_report]


STATUS, ADDRESS = "wards\tversion 1\t3 reports\n…\n", "people answer at  http://x\n"


@pytest.mark.parametrize(
    ("command", "told", "printed", "differs"),
    [
        ("ldpkit status", STATUS, "wards\tversion 2\t14 reports", False),
        ("ldpkit status", STATUS, "wards\tversion 2\t14 answers", True),
        ("ldpkit publish", ADDRESS, "people answer at http://x", True),
        ("ldpkit publish", ADDRESS, f"{ADDRESS}more", True),
        ("ldpkit publish", f"{ADDRESS}…\n", f"{ADDRESS}more", False),
        ("echo $?", "3\n", "5", True),
    ],
)
def test_only_words_columns_lines_and_fixed_numbers_are_compared(command, told, printed, differs):
    assert bool(untold(Step(command, told, printed, 0))) == differs


@pytest.mark.slow
def test_a_failed_command_is_noticed(tmp_path):
    (good, bad, asking) = play("```console\n$ echo one\none\n$ ls nowhere\n$ echo $?\n2\n```\n", tmp_path)
    assert (good.status, bad.status, untold(asking)) == (0, 2, [])
