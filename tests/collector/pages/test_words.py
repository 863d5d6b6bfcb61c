"""The participant's page in each language: all of it, with the language's numbers and plural forms."""

import html
import json
import re

import pytest
from babel import Locale
from werkzeug.datastructures import LanguageAccept

from collector.pages.words import LANGUAGES, catalogue_path, chosen, plural_categories, words_of
from tests import studies
from tests.kit import catalogues

PLACE = re.compile(r"\{[^{}]*\}")
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def faults(english, said):
    """List the faults of a translated sentence, or of a form of it."""
    places = [set(PLACE.findall(text)) - {"{count}"} for text in (english, said)]
    numbers = [sorted(NUMBER.findall(PLACE.sub("", text).replace("0,", "0."))) for text in (english, said)]
    found = [f"{english!r} is not translated"] if not said.strip() else []
    if places[0] != places[1]:
        found.append(f"{english!r}: has the facts {sorted(places[1])}, in English {sorted(places[0])}")
    if numbers[0] != numbers[1]:
        found.append(f"{english!r}: has the numbers {numbers[1]}, in English {numbers[0]}")
    return found


def faults_of(message, categories):
    """List the faults of a message of a catalogue."""
    if isinstance(message.id, str):
        return faults(message.id, message.string)
    one, other = message.id
    forms = zip(categories, message.string, strict=True)
    return [fault for name, said in forms for fault in faults(one if name == "one" else other, said)]


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_catalogue_is_complete(language):
    """`python -m tests.kit.catalogues` adds changed sentences to the catalogues."""
    catalogue = catalogues.read(language)
    assert {message.id for message in catalogue} == {message.id for message in catalogues.sentences()}
    assert not [message.id for message in catalogue if message.id and message.fuzzy]
    categories = plural_categories(Locale.parse(language))
    wrong = [fault for message in catalogue if message.id for fault in faults_of(message, categories)]
    assert not wrong, "\n".join(wrong)


def test_catalogues_are_as_the_tool_writes_them(tmp_path, monkeypatch):
    for language in ("pl", "ar"):
        before = catalogue_path(language).read_bytes()
        monkeypatch.setattr(catalogues, "catalogue_path", lambda _: tmp_path / "participant.po")
        (tmp_path / "participant.po").write_bytes(before)
        catalogues.update(language)
        assert (tmp_path / "participant.po").read_bytes() == before
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("english", "said"),
    [("Of 100, {told}", "Von 10, {told}"), ("{p:.4f}", "{p:.2f}"), ("of {told}", "von"), ("of", " ")],
)
def test_faulty_translation_is_detected(english, said):
    assert faults(english, said)
    assert not faults(english, english)


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
    assert german.say("mechanism.supports", choices=3, p=0.75, q=0.5).count("0,7500") == 1
    assert words_of("ar").ngettext("{count} byte", "{count} bytes", 2) == "بايتان ({count})"
    assert words_of("xx").language == "en"


AGREE = "I agree that this noisy report is sent to the people who run this study."


def page_of(client, study_id, **asked):
    got = client.get(f"/s/{study_id}", **asked)
    return got, html.unescape(re.sub(r"<script.*?</script>", "", got.get_data(as_text=True), flags=re.S))


@pytest.fixture
def published(empty):
    asked = [studies.NUMBER, studies.YES_NO, studies.CHOICE]
    assert empty.publish(studies.document(*asked)).status_code == 201
    return empty.client, studies.document()["id"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_in_one_language(published, language):
    client, study_id = published
    got, text = page_of(client, study_id, query_string={"lang": language})
    assert got.headers["Content-Language"] == language
    assert "Accept-Language" in got.headers["Vary"]
    direction = "rtl" if language == "ar" else "ltr"
    assert f'<html lang="{language}" dir="{direction}">' in text
    assert words_of(language).gettext(AGREE) in text
    # No sentence of another one.
    foreign = [words_of(other).gettext(AGREE) for other in LANGUAGES if other != language]
    assert not [said for said in foreign if said in text]
    assert (words_of(language).gettext("Beta translation") in text) == (language != "en")
    told = got.get_data(as_text=True)
    (words,) = re.findall(r'id="words">(.*?)</script>', told, re.S)
    assert json.loads(words) == words_of(language).script_messages()


def test_scripts_have_their_sentences_and_no_others():
    german = words_of("de").script_messages()
    assert german["yes"] == "Ja"
    assert german["{count} byte"] == {"one": "{count} Byte", "other": "{count} Bytes"}
    assert AGREE not in german
    assert words_of("en").script_messages() == {}


def test_caches_keep_the_languages_apart(published):
    client, study_id = published
    tags = {page_of(client, study_id, query_string={"lang": one})[0].headers["ETag"] for one in LANGUAGES}
    assert len(tags) == len(LANGUAGES)
    got, _ = page_of(client, study_id, headers={"Accept-Language": "de-CH, en;q=0.5"})
    assert got.headers["Content-Language"] == "de"
    assert got.headers["ETag"] in tags
    _, missing = page_of(client, "nothing", headers={"Accept-Language": "ar"})
    assert words_of("ar").gettext("No such study") in missing


def test_data_holders_are_told_in_english(empty):
    document = studies.document(studies.TABLE, **studies.HOLDER)
    assert empty.publish(document).status_code == 201
    got, text = page_of(empty.client, document["id"], query_string={"lang": "de"})
    assert got.headers["Content-Language"] == "en"
    assert '<html lang="en" dir="ltr">' in text
    assert "?lang=" not in text


def test_texts_use_the_visitors_language_or_the_studys(empty):
    swedish = {
        **studies.TRANSLATED,
        "id": "swedish",
        "languages": ["sv", "de"],
        "questions": [studies.YES_NO],
    }
    swedish |= {"title": {"sv": "Vanor", "de": "Gewohnheiten"}, "purpose": "?"}
    del swedish["public"]
    for document in (studies.TRANSLATED, swedish):
        assert empty.publish(document).status_code == 201

    def shown(study_id, **asked):
        got, text = page_of(empty.client, study_id, **asked)
        return got.headers["Content-Language"], text

    language, text = shown(studies.TRANSLATED["id"], query_string={"lang": "de"})
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
        assert empty.publish(document).status_code == 201
    texts = {one: page_of(empty.client, "kept", query_string={"lang": one})[1] for one in ("en", "de", "pl")}
    who, _, rest = texts["en"].partition('id="answers"')
    assert rest
    assert "One <clinic>" in who
    assert 'href="mailto:study@example.org"' in who
    assert "365 days from the day they arrive" in who
    assert "I take part" in rest
    assert "Eine Klinik" in texts["de"]
    assert "365 dni od dnia nadejścia" in texts["pl"]
    closes = page_of(empty.client, "closes", query_string={"lang": "en"})[1]
    assert "until 365 days after December 31, 2999" in closes
    assert 'href="https://a.org/?b"' in closes


TEMPLATES = ("participant", "questions", "layout", "missing")
# What a reader or a screen reader says; the rest of an attribute is for machines.
ATTRIBUTES = re.compile(r'(?:aria-label|title|placeholder|alt|value)="([^"]*)"')


def literal(template):
    """The letters of a template that are not translated."""
    plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", template, flags=re.S)
    texts = [*ATTRIBUTES.findall(plain), *re.sub(r"<[^>]*>", "\n", plain).split("\n")]
    return {text.strip() for text in texts if re.search("[A-Za-z]", text)}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_contain_no_literal_text(name, pytestconfig):
    template = (pytestconfig.rootpath / f"collector/pages/templates/{name}.html").read_text("utf-8")
    assert literal(template) == set()
    assert literal('<p>{{ x }} Thank you</p><i title="To you">{% if %}') == {"Thank you", "To you"}


def spoken(script):
    """List a script's string literals of two words or more, without comments."""
    code = re.sub(r"/\*.*?\*/|^\s*//.*$", "", script, flags=re.S | re.M)
    literals = re.findall(r'"([^"\n]*)"|`([^`]*)`', code)
    return [text for pair in literals for text in pair if re.search(r"[A-Za-z][,.:]? [A-Za-z]{2}", text)]


@pytest.mark.parametrize("name", catalogues.SCRIPTS)
def test_scripts_say_only_marked_sentences(name, pytestconfig):
    script = (pytestconfig.rootpath / "collector" / "pages" / "assets" / f"{name}.js").read_text("utf-8")
    ids = [message.id for message in catalogues.sentences() if message.id]
    marked = {text for id_ in ids for text in ([id_] if isinstance(id_, str) else id_)}
    assert [text for text in spoken(script) if text not in marked] == []
    assert spoken('find("x").textContent = `Last time: ${reason}`;') == ["Last time: ${reason}"]
