"""The tutorials are true: their files and commands work in an empty folder, and print what they say."""

from pathlib import Path

import pytest

from tests.end_to_end.tutorial_session import Step, play, untold

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


def test_changed_words_are_noticed_and_changed_numbers_are_not():
    step = Step("ldpkit status", "wards\tversion 1\t3 reports\n…\n", "wards\tversion 2\t14 reports", 0)
    assert untold(step) == []
    assert untold(step._replace(printed="wards\tversion 2\t14 answers")) == ["wards\tversion 1\t3 reports"]


def test_lost_columns_and_extra_lines_are_noticed():
    step = Step("ldpkit publish", "people answer at  http://x\n", "people answer at  http://x", 0)
    assert untold(step) == []
    assert untold(step._replace(printed="people answer at http://x"))
    assert untold(step._replace(printed=f"{step.printed}\nmore")) == ["more"]
    assert untold(step._replace(told=f"{step.told}…\n", printed=f"{step.printed}\nmore")) == []


def test_changed_key_numbers_are_noticed():
    assert untold(Step("python app.py back", "0 reports sent, 1 deleted\n", "0 reports sent, 0 deleted", 0))
    assert untold(Step("echo $?", "3\n", "5", 0))


def test_a_failed_command_is_noticed(tmp_path):
    (good, bad, asking) = play("```console\n$ echo one\none\n$ ls nowhere\n$ echo $?\n2\n```\n", tmp_path)
    assert (good.status, bad.status, untold(asking)) == (0, 2, [])
