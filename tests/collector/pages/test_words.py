"""The participant's page in each language: all of it, with the language's numbers and plural forms."""

from __future__ import annotations

import html
import json
import re

import pytest
from babel import Locale
from werkzeug.datastructures import LanguageAccept

from collector.pages.words import ENGLISH, LANGUAGES, chosen, words_of
from tests import studies
from tests.portable.vector_languages import WHOLE

# What a participant's page says; the rest is for commands, operators and data holders, in English.
SAID = (
    *("page.", "script.", "hundred.", "mechanism.", "odds.person", "odds.exception"),
    *("public.one_of", "public.number", "study.more_choices"),
)
OTHERS = ("page.holder", "mechanism.summed_gaussian")


def needed():
    """The sentences of the page, in English."""
    found = {key: said for prefix in SAID for key, said in ENGLISH.sentences(prefix).items()}
    return {key: said for key, said in found.items() if not key.startswith(OTHERS)}


PLACE = re.compile(r"\{[^{}]*\}")
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def faults_of_form(key, english, said):
    places = [set(PLACE.findall(text)) - {"{count}"} for text in (english, said)]
    numbers = [sorted(NUMBER.findall(PLACE.sub("", text).replace("0,", "0."))) for text in (english, said)]
    found = [f"{key}: is empty"] if not said.strip() else []
    if places[0] != places[1]:
        found.append(f"{key}: has the facts {sorted(places[1])}, in English {sorted(places[0])}")
    if numbers[0] != numbers[1]:
        found.append(f"{key}: has the numbers {numbers[1]}, in English {numbers[0]}")
    return found


def faults(key, english, said, categories):
    """List the faults of one translated sentence."""
    if isinstance(english, str) != isinstance(said, str):
        return [f"{key}: must have plural forms where the English sentence has them, and only there"]
    if isinstance(said, str):
        return faults_of_form(key, english, said)
    if set(said) != categories:
        return [f"{key}: must have the forms {', '.join(sorted(categories))}, has {', '.join(said)}"]
    forms = [(f"{key}.{one}", english.get(one, english["other"]), said[one]) for one in said]
    return [fault for form in forms for fault in faults_of_form(*form)]


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_catalogue_is_complete(language, pytestconfig):
    """A new sentence of the page must be added, translated, to each of these files."""
    file = pytestconfig.rootpath / "collector" / "words" / f"{language}.json"
    said, english = json.loads(file.read_text("utf-8")), needed()
    missing = {key: english[key] for key in english if key not in said}
    assert not missing, f"add to {file.name}, translated: {json.dumps(missing, indent=1, ensure_ascii=False)}"
    assert not set(said) - set(english), f"leave out of {file.name}: no page says it"
    categories = {*Locale.parse(language).plural_form.tags, "other"}
    wrong = [fault for key in english for fault in faults(key, english[key], said[key], categories)]
    assert not wrong, f"{file.name}: " + "\n".join(wrong)


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("Of 100, {told}", "Von 10, {told}"),
        ("{p:.4f}", "{p:.2f}"),
        ("of {told}", "von"),
        ("of", " "),
        ("of", {"one": "von", "other": "von"}),
        ({"one": "{count} a", "other": "{count} b"}, {"other": "{count} c"}),
    ],
)
def test_faulty_catalogue_is_detected(english, said):
    assert faults("key", english, said, {"one", "other"})
    assert not faults("key", english, english, {"one", "other"})


@pytest.mark.parametrize(
    ("asked", "accepted", "found"),
    [
        (None, [], "en"),
        (None, [("de-AT", 1), ("en", 0.5)], "de"),
        (None, [("xx", 1), ("ar", 0.5)], "ar"),
        (None, [("xx", 1)], "en"),
        ("de", [("ar", 1)], "de"),
        ("../etc", [("ar", 1)], "ar"),
    ],
)
def test_chosen_language_takes_precedence_over_accept_header(asked, accepted, found):
    assert chosen(asked, LanguageAccept(accepted), ("en", "de", "ar"), "en") == found


def test_numbers_are_written_as_the_language_does():
    german = words_of("de-CH")
    assert german.number("20,000.50") == "20.000,50"
    assert german.number("0.0125") == "0,0125"
    assert german.number("1e+44") == "1e+44"
    assert german.percent("73.2") == "73,2\N{NO-BREAK SPACE}%"
    assert german.say("hundred.number", most=90, width="x").startswith("Von 100 Berichten")
    assert german.say("mechanism.supports", choices=3, p=0.75, q=0.5).count("0,7500") == 1
    assert words_of("ar").say("script.size", count=2) == "بايتان (2)"
    assert words_of("xx") is ENGLISH


def page_of(client, study_id, **asked):
    got = client.get(f"/s/{study_id}", **asked)
    return got, html.unescape(re.sub(r"<script.*?</script>", "", got.get_data(as_text=True), flags=re.S))


def publish(harness, document):
    return harness.client.post("/v1/studies", json=document, headers=harness.operator)


@pytest.fixture
def published(empty):
    asked = [studies.NUMBER, studies.YES_NO, studies.CHOICE]
    assert publish(empty, studies.document(*asked)).status_code == 201
    return empty.client, studies.document()["id"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_in_one_language(published, language):
    client, study_id = published
    got, text = page_of(client, study_id, query_string={"lang": language})
    assert got.headers["Content-Language"] == language
    assert "Accept-Language" in got.headers["Vary"]
    direction = "rtl" if language == "ar" else "ltr"
    assert f'<html lang="{language}" dir="{direction}">' in text
    assert words_of(language).say("page.decide") in text
    # No sentence of another one.
    foreign = [words_of(other).sentences("page.") for other in LANGUAGES if other != language]
    assert not [said for one in foreign for said in one.values() if len(said) > 60 and said in text]
    told = got.get_data(as_text=True)
    (words,) = re.findall(r'id="words">(.*?)</script>', told, re.S)
    assert json.loads(words) == words_of(language).sentences("script.")


def test_caches_keep_the_languages_apart(published):
    client, study_id = published
    tags = {page_of(client, study_id, query_string={"lang": one})[0].headers["ETag"] for one in LANGUAGES}
    assert len(tags) == len(LANGUAGES)
    got, _ = page_of(client, study_id, headers={"Accept-Language": "de-CH, en;q=0.5"})
    assert got.headers["Content-Language"] == "de"
    assert got.headers["ETag"] in tags
    _, missing = page_of(client, "nothing", headers={"Accept-Language": "ar"})
    assert words_of("ar").say("page.missing.hint") in missing


def test_data_holders_are_told_in_english(empty):
    document = studies.document(studies.TABLE, **studies.HOLDER)
    assert publish(empty, document).status_code == 201
    got, text = page_of(empty.client, document["id"], query_string={"lang": "de"})
    assert got.headers["Content-Language"] == "en"
    assert '<html lang="en" dir="ltr">' in text
    assert "?lang=" not in text


def test_texts_use_the_visitors_language_or_the_studys(empty):
    swedish = {**WHOLE, "id": "swedish", "languages": ["sv", "de"], "questions": [studies.YES_NO]}
    swedish |= {"title": {"sv": "Vanor", "de": "Gewohnheiten"}, "purpose": "?"}
    del swedish["public"]
    for document in (WHOLE, swedish):
        assert publish(empty, document).status_code == 201

    def shown(study_id, **asked):
        got, text = page_of(empty.client, study_id, **asked)
        return got.headers["Content-Language"], text

    language, text = shown(WHOLE["id"], query_string={"lang": "de"})
    assert language == "de"
    assert "<h1>Gewohnheiten</h1>" in text
    assert "student<" not in text
    # The page's words are there in French or not, the study's are not: they say which language they are in.
    assert '<h1 lang="sv">Vanor</h1>' in shown("swedish", query_string={"lang": "ar"})[1]
    language, text = shown("swedish", query_string={"lang": "sv"})
    assert language == "sv"
    assert '<html lang="en" dir="ltr">' in text
    assert 'hreflang="sv" aria-current="true">Svenska</a>' in text
    for accepted, best in (
        ("fr, de;q=0.5", "de"),
        ("fr, sv;q=0.5, de;q=0.4", "fr"),
        ("fr, de-AT;q=0.5", "de"),
        ("fr", "fr"),
    ):
        assert shown("swedish", headers={"Accept-Language": accepted})[0] == best, accepted
    assert shown("swedish", query_string={"lang": "fr"}, headers={"Accept-Language": "de"})[0] == "fr"
    # Who says nothing reads the study's own.
    assert shown("swedish")[0] == "sv"


def test_page_names_the_owner_before_the_questions(empty):
    owner = {"en": "One <clinic>", "de": "Eine Klinik"}
    said = {**studies.ASKER, "owner": owner, "languages": ["en", "de"]}
    closing = {"closes": "2999-12-31", "contact": "https://a.org/?b"}
    for study_id, change in (("kept", {}), ("closes", closing)):
        document = studies.document(studies.YES_NO, id=study_id, **{**said, **change})
        assert publish(empty, document).status_code == 201
    texts = {one: page_of(empty.client, "kept", query_string={"lang": one})[1] for one in ("en", "de", "pl")}
    who, _, rest = texts["en"].partition('id="answers"')
    assert rest
    assert "One <clinic>" in who
    assert 'href="mailto:study@example.org"' in who
    assert "365 days from the day they arrive" in who
    assert "Eine Klinik" in texts["de"]
    assert "365 dni od dnia nadejścia" in texts["pl"]
    closes = page_of(empty.client, "closes", query_string={"lang": "en"})[1]
    assert "until 365 days after 2999-12-31" in closes
    assert 'href="https://a.org/?b"' in closes


TEMPLATES = ("participant", "questions", "holder", "layout", "missing")
COMMANDS = {"ldpkit holders  table.csv --max-epsilon EPSILON"}
# What a reader or a screen reader says; the rest of an attribute is for machines.
ATTRIBUTES = re.compile(r'(?:aria-label|title|placeholder|alt|value)="([^"]*)"')


def literal(template):
    """The letters of a template that come from no key and no study."""
    plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", template, flags=re.S)
    texts = [*ATTRIBUTES.findall(plain), *re.sub(r"<[^>]*>", "\n", plain).split("\n")]
    return {text.strip() for text in texts if re.search("[A-Za-z]", text)} - COMMANDS


SCRIPTS = ("participant", "entries", "parts", "words", "told", "leaves")


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


def spoken(script):
    """List a script's string literals of two words or more, without selectors and comments."""
    code = re.sub(r"/\*.*?\*/|^\s*//.*$", "", script, flags=re.S | re.M)
    literals = re.findall(r'"[^"\n]*"|`[^`]*`', code)
    return [text for text in literals if re.search(r"[A-Za-z][,.:]? [A-Za-z]{2}", text)]


def test_scripts_contain_no_literal_text(sources):
    assert [spoken(script) for script in sources[1]] == [[]] * len(SCRIPTS)
    assert spoken('find("x").textContent = `Last time: ${reason}`;') == ["`Last time: ${reason}`"]


REPORT_STATES = ("held", "queued", "ticketless", "sent", "refused", "withdrawn", "gone")


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
