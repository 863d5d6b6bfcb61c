"""Every sentence that people read of a study stands in ldp_client/words, and stays as it is."""

import ast
import json
import re

import pytest

from ldp_client import mechanism_for
from ldp_client.describing import FACTS, describe, warnings_of
from ldp_client.documents.catalogue import MECHANISMS
from ldp_client.words.text import ENGLISH, Words, rounded_up
from schemas import Study
from tests import studies

SENTENCE = re.compile(r"[A-Z][a-z]* [a-z]")


def literals(tree):
    """The texts of a module but for its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_no_mechanism_and_no_device_core_holds_a_sentence(pytestconfig):
    package = pytestconfig.rootpath / "ldp_client"
    files = [file for name in ("mechanisms", "core") for file in (package / name).rglob("*.py")]
    assert len(files) > 30
    for file in [*files, package / "answering.py"]:
        found = [text for text in literals(ast.parse(file.read_text("utf-8"))) if SENTENCE.match(text)]
        assert not found, file


def test_a_sentence_in_a_mechanism_would_be_found():
    planted = 'class A:\n    """Not this one."""\n    words = f"The true answer {1}"\n'
    assert [text for text in literals(ast.parse(planted)) if SENTENCE.match(text)] == ["The true answer "]


def test_every_mechanism_has_its_sentence():
    keys = set(ENGLISH.sentences("mechanism."))
    for name in MECHANISMS:
        if not name.startswith("table_"):
            assert f"mechanism.{name}" in keys or f"mechanism.{name}.number" in keys
    assert set(FACTS) <= set(MECHANISMS)


def test_the_words_stay_the_same(pytestconfig):
    golden = pytestconfig.rootpath / "tests" / "golden"
    words = json.loads((golden / "words.json").read_text("utf-8"))
    assert len(words) == 6
    for name, lines in words.items():
        study = Study.from_json((golden / "studies" / name).read_text("utf-8"))
        assert describe(study) + warnings_of(study) == lines


def test_another_language_is_one_more_file(tmp_path, monkeypatch):
    """Every sentence of a study comes from the language's file: here all of them are their keys."""
    keys = dict.fromkeys(ENGLISH.sentences(), "»")
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    monkeypatch.setattr("ldp_client.words.text.FOLDER", str(tmp_path))
    said = describe(Study(studies.document(*studies.ALL)), Words("keys"))
    assert set("".join(said)) == {"»", " "}


@pytest.mark.parametrize("language", ["en"])
def test_every_sentence_is_whole(language):
    """Plural forms name the same facts but the number; nothing is empty."""
    for key, said in Words(language).sentences().items():
        forms = [said] if isinstance(said, str) else [said["one"], said["other"]]
        named = [set(re.findall(r"\{(\w+)", form)) - {"count"} for form in forms]
        assert all(forms), key
        assert named.count(named[0]) == len(named), key


def test_one_of_a_set_is_and_two_are():
    def said(size, epsilon):
        asked = {**studies.CHOICE, "mechanism": {"name": "subset_selection", "epsilon": epsilon}}
        asked["choices"] = [str(one) for one in range(size)]
        return mechanism_for(Study(studies.document(asked)).questions[0]).in_words()

    assert said(3, "2").startswith("1 of 3 choices is sent. ")
    assert re.match(r"[3-9] of 9 choices are sent\. ", said(9, "0.5"))


@pytest.mark.parametrize(
    ("value", "digits", "shown"), [(0.1, 12, "0.1"), (1.2341, 4, "1.235"), (2.0, 3, "2")]
)
def test_what_holds_at_most_is_rounded_up(value, digits, shown):
    assert rounded_up(value, digits) == shown
    assert float(shown) >= value
