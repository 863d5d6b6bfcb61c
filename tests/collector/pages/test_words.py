"""The participant's page in each language: all of it, with the language's numbers and plural forms.

`python -m tests.collector.pages.test_words` brings the catalogues up to date after a sentence has changed. A
new sentence is then empty in each of them, until it is translated.
"""

import html
import json
import re
from functools import cache
from io import BytesIO

import pytest
from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_file
from babel.messages.pofile import read_po, write_po
from babel.plural import to_gettext

from collector.pages.words import LANGUAGES, catalogue_path, plural_categories, words_of
from ldp_client.words.text import ENGLISH
from tests import studies
from tests.kit.collectors import REPOSITORY

PLACE = re.compile(r"\{[^{}]*\}")
TEMPLATES = ("participant", "questions", "layout", "missing")
SCRIPTS = ("participant", "entries", "parts", "words", "told", "leaves")
# Where sentences of the page are: files, and how Babel reads them.
SOURCES = (
    *((f"collector/pages/templates/{name}.html", "jinja2.ext:babel_extract") for name in TEMPLATES),
    ("collector/pages/illustration.py", "python"),
    *((f"collector/pages/assets/{name}.js", "javascript") for name in SCRIPTS),
)
KEYWORDS = {**DEFAULT_KEYWORDS, "say": None, "sayCount": (1, 2), "sentence": None}
# Sentences of the device library that a participant's page shows, by the start of their keys.
DEVICE = (
    "mechanism.",
    "odds.person",
    "odds.exception",
    "public.one_of",
    "public.number",
    "study.more_choices",
)
NOT_SHOWN = "mechanism.summed_gaussian"


@cache
def sentences():
    """All sentences of the page, without translations."""
    found = Catalog(charset="utf-8")
    device = {key: said for start in DEVICE for key, said in ENGLISH.sentences(start).items()}
    for key, said in device.items():
        if not key.startswith(NOT_SHOWN):
            forms = said if isinstance(said, str) else (said["one"], said["other"])
            found.add(forms, locations=[("ldp_client/words/en.json", 0)])
    for path, method in SOURCES:
        for _, message, *_ in extract_from_file(method, REPOSITORY / path, KEYWORDS):
            found.add(message, locations=[(path, 0)])
    return found


def read_catalogue(language):
    with catalogue_path(language).open("rb") as file:
        return read_po(file, language)


HEADER = """# The participant's page: a beta translation until native speakers have read it.
msgid ""
msgstr ""
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {plurals}\\n"

"""


def updated(language):
    """Return a language's catalogue brought up to date, with the plural forms of the CLDR."""
    catalogue, content = read_catalogue(language), BytesIO()
    catalogue.update(sentences(), no_fuzzy_matching=True)
    write_po(content, catalogue, width=110, omit_header=True, include_lineno=False, ignore_obsolete=True)
    plurals = to_gettext(Locale.parse(language).plural_form)
    return HEADER.format(language=language, plurals=plurals).encode() + content.getvalue()


def stated_in(text):
    numbers = re.findall(r"\d+(?:[.,]\d+)?", PLACE.sub("", text).replace("0,", "0."))
    return set(PLACE.findall(text)) - {"{count}"}, sorted(numbers)


def faults(message, categories):
    """The forms of a translated message that are blank, or have other facts or numbers than the English."""
    forms = [(message.id, message.string)]
    if not isinstance(message.id, str):
        one, other = message.id
        named = zip(categories, message.string, strict=True)
        forms = [(one if name == "one" else other, said) for name, said in named]
    return [said for english, said in forms if not said.strip() or stated_in(said) != stated_in(english)]


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_catalogue_is_complete(language):
    catalogue = read_catalogue(language)
    assert {message.id for message in catalogue} == {message.id for message in sentences()}
    assert not [message.id for message in catalogue if message.id and message.fuzzy]
    categories = plural_categories(Locale.parse(language))
    assert [fault for message in catalogue if message.id for fault in faults(message, categories)] == []
    assert updated(language) == catalogue_path(language).read_bytes()


def test_sentences_and_numbers_are_as_the_language_writes_them():
    german = words_of("de-CH")
    for text, said in (("20,000.50", "20.000,50"), ("0.0125", "0,0125"), ("1e+44", "1e+44")):
        assert german.number(text) == said
    assert german.percent("73.2") == "73,2\N{NO-BREAK SPACE}%"
    assert german.say("mechanism.supports", choices=3, p=0.75, q=0.5).count("0,7500") == 1
    assert words_of("ar").ngettext("{count} byte", "{count} bytes", 2) == "بايتان ({count})"
    assert words_of("xx").language == "en"
    # Scripts have their sentences and no others.
    said = german.script_messages()
    assert said["{count} byte"] == {"one": "{count} Byte", "other": "{count} Bytes"}
    assert (said["yes"], AGREE in said, words_of("en").script_messages()) == ("Ja", False, {})


AGREE = "I agree that this noisy report is sent to the people who run this study."


def page_of(client, study_id, **asked):
    """The language of a study's page, and its text without scripts."""
    got = client.get(f"/s/{study_id}", **asked)
    text = re.sub(r"<script.*?</script>", "", got.get_data(as_text=True), flags=re.S)
    return got.headers["Content-Language"], html.unescape(text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_in_one_language(habits, language):
    got = habits.client.get("/s/habits", query_string={"lang": language})
    text, words = html.unescape(got.text), words_of(language)
    assert "Accept-Language" in got.headers["Vary"]
    assert f'<html lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}">' in text
    assert [other for other in LANGUAGES if words_of(other).gettext(AGREE) in text] == [language]
    assert (words.gettext("Beta translation") in text) == (language != "en")
    (said,) = re.findall(r'id="words">(.*?)</script>', got.text, re.S)
    assert json.loads(said) == words.script_messages()


def test_caches_keep_the_languages_apart(habits):
    answers = [habits.client.get("/s/habits", query_string={"lang": one}) for one in LANGUAGES]
    tags = [answer.headers["ETag"] for answer in answers]
    assert len(set(tags)) == len(LANGUAGES)
    got = habits.client.get("/s/habits", headers={"Accept-Language": "de-CH, en;q=0.5"})
    assert got.headers["ETag"] == tags[LANGUAGES.index("de")]
    missing = habits.client.get("/s/nothing", headers={"Accept-Language": "ar"})
    assert words_of("ar").gettext("No such study") in missing.text


def test_texts_use_the_visitors_language_or_the_studys(empty):
    title = {"sv": "Vanor", "de": "Gewohnheiten"}
    swedish = studies.document(studies.YES_NO, id="swedish", languages=["sv", "de"], title=title)
    for document in (studies.TRANSLATED, swedish, studies.document(studies.TABLE, **studies.HOLDER)):
        assert empty.publish(document).status_code == 201
    for study_id, asked, accepted, language, shown in (
        (studies.TRANSLATED["id"], "de", "", "de", "<h1>Gewohnheiten</h1>"),
        # The page's words are there in Arabic, the study's are not: they say which language they are in.
        ("swedish", "ar", "", "ar", '<h1 lang="sv">Vanor</h1>'),
        ("swedish", "sv", "", "sv", 'hreflang="sv" aria-current="true">Svenska</a>'),
        ("swedish", "sv", "", "sv", '<html lang="en" dir="ltr">'),
        ("swedish", "fr", "de", "fr", '<h1 lang="sv">Vanor</h1>'),
        ("swedish", "", "fr, sv;q=0.5, de;q=0.4", "fr", '<h1 lang="sv">Vanor</h1>'),
        ("swedish", "../etc", "xx, de-AT;q=0.5", "de", "<h1>Gewohnheiten</h1>"),
        # Who says nothing reads the study's own.
        ("swedish", "", "", "sv", "Vanor</h1>"),
        ("plants", "de", "", "en", '<html lang="en" dir="ltr">'),
    ):
        given = {"query_string": {"lang": asked} if asked else {}, "headers": {"Accept-Language": accepted}}
        found, text = page_of(empty.client, study_id, **given)
        assert (found, shown in text) == (language, True), (study_id, asked, accepted)


def test_page_names_the_owner_before_the_questions(empty):
    said = {**studies.ASKER, "owner": {"en": "One <clinic>", "de": "Eine Klinik"}, "languages": ["en", "de"]}
    closing = {**said, "closes": "2999-12-31", "contact": "https://a.org/?b"}
    for study_id, fields in (("kept", said), ("closes", closing)):
        assert empty.publish(studies.document(studies.YES_NO, id=study_id, **fields)).status_code == 201

    def text(study_id, language):
        return page_of(empty.client, study_id, query_string={"lang": language})[1]

    who, _, rest = text("kept", "en").partition('id="answers"')
    for words in ("One <clinic>", 'href="mailto:study@example.org"', "365 days from the day they arrive"):
        assert words in who
    assert "I take part" in rest
    assert "Eine Klinik" in text("kept", "de")
    assert "365 dni od dnia nadejścia" in text("kept", "pl")
    closes = text("closes", "en")
    assert "until 365 days after December 31, 2999" in closes
    assert 'href="https://a.org/?b"' in closes


# What a reader or a screen reader says; the rest of an attribute is for machines.
ATTRIBUTES = re.compile(r'(?:aria-label|title|placeholder|alt|value)="([^"]*)"')


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_contain_no_literal_text(name, pytestconfig):
    template = (pytestconfig.rootpath / f"collector/pages/templates/{name}.html").read_text("utf-8")
    plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", template, flags=re.S)
    texts = [*ATTRIBUTES.findall(plain), *re.sub(r"<[^>]*>", "\n", plain).split("\n")]
    assert [text for text in texts if re.search("[A-Za-z]", text)] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_say_only_marked_sentences(name, pytestconfig):
    """No other string literal has two words or more."""
    script = (pytestconfig.rootpath / "collector" / "pages" / "assets" / f"{name}.js").read_text("utf-8")
    ids = [message.id for message in sentences() if message.id]
    marked = {text for id_ in ids for text in ([id_] if isinstance(id_, str) else id_)}
    code = re.sub(r"/\*.*?\*/|^\s*//.*$", "", script, flags=re.S | re.M)
    literals = {text for pair in re.findall(r'"([^"\n]*)"|`([^`]*)`', code) for text in pair}
    assert {text for text in literals if re.search(r"[A-Za-z][,.:]? [A-Za-z]{2}", text)} <= marked


if __name__ == "__main__":
    for _language in LANGUAGES[1:]:
        catalogue_path(_language).write_bytes(updated(_language))
