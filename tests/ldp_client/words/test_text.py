"""Sentences for participants: all are there, complete, and safe to print."""

import json
import math
import re

import pytest

from ldp_client.explain import describe, odds
from ldp_client.words.text import ENGLISH, Words, rounded_up, visible
from ldpkit.cli import main
from schemas import Study
from schemas.warnings import warnings_of
from tests import studies


def test_catalogue_keys_match_the_keys_in_code(pytestconfig):
    """Every key in code is in the language's files, and vice versa."""
    folders = [pytestconfig.rootpath / name for name in ("ldp_client", "schemas", "ldpkit")]
    code = "".join([file.read_text("utf-8") for folder in folders for file in folder.rglob("*.py")])
    # Codes of errors look like keys.
    code = re.sub(r'code ?= ?"[a-z0-9_.]+"', "", code)
    named = set(re.findall(r"""["'](core\.[a-z0-9_.]+)["']""", code))
    assert named == {*ENGLISH.sentences("core.")}


def test_descriptions_match_the_golden_words(pytestconfig):
    golden = pytestconfig.rootpath / "tests" / "golden"
    words = json.loads((golden / "words.json").read_text("utf-8"))
    assert len(words) == 6
    for name, lines in words.items():
        study = Study.from_json((golden / "studies" / name).read_text("utf-8"))
        assert describe(study) + warnings_of(study) == lines


def test_every_sentence_of_a_study_is_in_the_catalogue():
    """Here all of them are the same mark."""
    marks = Words()
    marks._sentences = dict.fromkeys(ENGLISH.sentences(), "»")
    described = describe(Study(studies.document(*studies.ALL)), marks)
    assert set("".join(described)) == {"»", " "}


def test_every_sentence_is_complete():
    """Plural forms name the same facts but the number; nothing is empty."""
    for key, said in ENGLISH.sentences().items():
        forms = [said] if isinstance(said, str) else [said["one"], said["other"]]
        named = [set(re.findall(r"\{(\w+)", form)) - {"count"} for form in forms]
        assert all(forms), key
        assert named.count(named[0]) == len(named), key


@pytest.mark.parametrize(
    ("value", "digits", "shown"), [(0.1, 12, "0.1"), (1.2341, 4, "1.235"), (2.0, 3, "2")]
)
def test_upper_bounds_are_rounded_up(value, digits, shown):
    assert rounded_up(value, digits) == shown
    assert float(shown) >= value


CLEAR = "\x1b[2J\x1b[1;1H\x9b8m\u202e\r\n  oue: true epsilon 0.01\x07"


@pytest.mark.attack(8)
def test_control_characters_of_a_study_are_shown_as_escapes(tmp_path, capsys):
    """Hide a study's terms by control characters, which act on the terminal of who reads it."""
    assert visible("a\x1b[8mb\n\u202ec ε…") == "a\\x1b[8mb\\n\\u202ec ε…"
    question = {**studies.CHOICE, "text": CLEAR, "choices": ["a" + CLEAR, "b"]}
    document = studies.document(question, title=CLEAR, purpose=CLEAR)
    plain = json.loads(json.dumps(document).replace(json.dumps(CLEAR)[1:-1], "-"))
    lines = describe(Study(document))
    assert all(line.isprintable() for line in lines)
    assert len(lines) == len(describe(Study(plain)))
    for name in ("study.json", f"a{CLEAR.strip()}b"):
        if name == "study.json":
            (tmp_path / name).write_text(json.dumps(document))
        main(["check", str(tmp_path / name)])
        told = capsys.readouterr()
        assert all(line.isprintable() for line in (told.out + told.err).split("\n"))


@pytest.mark.parametrize("blank", [" ", "\u2800", "\u115f \u1160"])
def test_runs_of_blanks_are_shown_as_one(blank):
    """At 80 columns, the text after many blanks would begin a line and look like ldpkit's own."""
    line = "warning: none"
    assert len(visible("Ever?" + blank * 400 + line)) == len("Ever?" + line) + 1
    assert visible("an answer with single blanks") == "an answer with single blanks"


def test_upper_bounds_in_odds_sentence_are_not_rounded_down():
    """The sentence is true for every epsilon and delta, and at most a percent too high."""
    for step in range(1, 640, 7):
        epsilon, delta = step / 10, 10 ** (-step / 30)
        factor = math.exp(epsilon)
        numbers = r"[0-9.,]+(?:e[+-]?[0-9]+)?(?= times| %|\.$)"
        times, sure, exception = re.findall(numbers, odds(epsilon, delta))
        assert factor <= float(times.replace(",", "")) <= 1.1 * factor
        assert 1 - 1e-9 <= float(sure) * (1 + factor) / (100 * factor) <= 1.01
        assert delta * (1 - 1e-9) <= 1 / float(exception.replace(",", "")) <= 2 * delta


@pytest.mark.parametrize("epsilon", [101.0, 4096.0])
def test_huge_epsilon_gives_printable_odds(epsilon):
    """Many questions at a large ε give odds beyond the range of floats."""
    said = odds(epsilon)
    assert f"1e+{math.ceil(epsilon / math.log(10))}" in said
    assert "100 %" in said
    assert "added" not in said
