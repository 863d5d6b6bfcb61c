"""The participant's page promises only what a device keeps over all versions of a study."""

import html
import re

import pytest

from collector.languages import ENGLISH
from ldp_client.explain import odds
from tests import studies
from tests.collector.conftest import TOKEN
from tests.studies import MEMOIZED, YES_NO

OTHER = {**MEMOIZED, "id": "other"}


@pytest.fixture
def promise(empty):
    """A function study document → the words of the page's promise and of the hint below the form."""

    def of(document):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert empty.client.post("/v1/studies", json=document, headers=headers).status_code == 201
        page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
        (text,) = re.findall(r'<section class="promise".*?</section>', page, re.S)
        hint = re.findall(r'<p class="hint">(Nothing is sent yet.*?)</p>', page, re.S)
        return " ".join(html.unescape(re.sub("<[^>]+>", " ", text + " ".join(hint))).split())

    return of


def test_a_study_that_draws_one_memoized_question_promises_the_sum(promise):
    """Each round draws another question, until all are answered."""
    said = promise(studies.document(MEMOIZED, OTHER, sample_one_question=True))
    assert odds(4.0) in said
    assert odds(2.0) not in said
    assert "In each round this browser draws one" in said


def test_promise_covers_only_these_questions(promise):
    """An earlier or later version may ask others, which cost more."""
    said = promise(studies.document(MEMOIZED))
    assert f"{odds(2.0)} This holds for all reports to these questions together" in said
    assert "Other questions that this study asked before, or asks later, add to it." in said


def test_mixed_study_does_not_promise_a_single_answer(promise):
    said = promise(studies.document(MEMOIZED, YES_NO))
    assert "To 1 of these questions a noisy answer is drawn once and kept" in said
    assert "leaves, once" not in said
    assert "answer only once" not in said
    plain = promise(studies.document(YES_NO, id="plain"))
    assert "leaves, once" in plain
    assert "these questions together" not in plain


TEMPLATES = ("participant", "questions", "holder", "layout", "missing")
REPORT_STATES = ("held", "queued", "uninvited", "sent", "refused", "withdrawn", "gone")
SCRIPTS = ("participant", "entries", "parts", "words", "told", "leaves")
COMMANDS = {"ldpkit answer  --table table.csv --max-epsilon EPSILON"}
# What a reader or a screen reader says; the rest of an attribute is for machines.
SAID = re.compile(r'(?:aria-label|title|placeholder|alt|value)="([^"]*)"')


def literal(template):
    """The letters of a template that come from no key and no study."""
    plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", template, flags=re.S)
    texts = [*SAID.findall(plain), *re.sub(r"<[^>]*>", "\n", plain).split("\n")]
    return {text.strip() for text in texts if re.search("[A-Za-z]", text)} - COMMANDS


def spoken(script):
    """List a script's string literals of two words or more, without selectors and comments."""
    code = re.sub(r"/\*.*?\*/|^\s*//.*$", "", script, flags=re.S | re.M)
    literals = re.findall(r'"[^"\n]*"|`[^`]*`', code)
    return [text for text in literals if re.search(r"[A-Za-z][,.:]? [A-Za-z]{2}", text)]


@pytest.fixture
def sources(pytestconfig):
    folder = pytestconfig.rootpath / "collector"
    templates = [(folder / "templates" / f"{name}.html").read_text("utf-8") for name in TEMPLATES]
    return templates, [(folder / "assets" / f"{name}.js").read_text("utf-8") for name in SCRIPTS]


def test_templates_contain_no_literal_text(sources):
    assert [literal(template) for template in sources[0]] == [set()] * len(TEMPLATES)
    assert literal('<p class="a b">{{ x }} Thank you</p><i title="To you">{% if %}') == {
        "Thank you",
        "To you",
    }


def test_scripts_contain_no_literal_text(sources):
    assert [spoken(script) for script in sources[1]] == [[]] * len(SCRIPTS)
    assert spoken('find("x").textContent = `Last time: ${reason}`;') == ["`Last time: ${reason}`"]


def test_catalogue_keys_and_used_keys_match(sources):
    named = set(re.findall(r"[\"`](?:page|script)\.[\w.]+[\"`]", "".join(map("".join, sources))))
    keys = {key.strip('"`') for key in named}
    known = {*ENGLISH.sentences("page."), *ENGLISH.sentences("script.")}
    assert keys <= known
    # The sentences of errors are found by the errors' codes, of answers and waiting reports by theirs.
    codes = {f"script.{code}" for code in ("study", "closed", "budget", "ledger", "answered")}
    codes |= {f"script.reason.{kind}" for kind in ("unreachable", "problem", "foreign")}
    codes |= {f"script.told.{state}" for state in REPORT_STATES}
    of_answers = {key for key in known if key.startswith(("script.answer.", "script.entry."))}
    assert known - keys == (codes | of_answers) - keys


def test_browser_core_contains_no_sentences(pytestconfig):
    """Its texts about answers and waiting reports are keys; all others are for app developers."""
    folder = pytestconfig.rootpath / "js"
    code = "".join([file.read_text("utf-8") for file in folder.rglob("*.js")])
    said = re.findall(r'fail\((?:path \? )?"answer"(?: : "input")?, ([^,]+)', code)
    assert len(said) >= 7
    assert {f"script.answer.{key.strip(chr(34))}" for key in said} == {*ENGLISH.sentences("script.answer.")}
    assert not spoken((folder / "upload.js").read_text("utf-8").replace("application/json", ""))
    assert spoken("reason: `no study: ${reason}`") == ["`no study: ${reason}`"]
