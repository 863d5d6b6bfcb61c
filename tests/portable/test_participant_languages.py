"""The participant's page in other languages, in a browser: numbers, plural forms, direction, what is sent."""

import json

from babel import Locale
from selenium.webdriver.common.by import By

from collector.languages import LANGUAGES
from tests import studies
from tests.portable import npm
from tests.portable.participant import TEXT
from tests.portable.vector_languages import WHOLE

HOURS = {**studies.NUMBER, **TEXT, "bounds": ["-10", "2000000"]}
# What is typed in each language, and what the page takes it for; None: it has two readings, or none.
TYPED = {
    "de": {
        "1.234,5": "1234,5",
        "1.234.567": "1234567",
        "-3,25": "-3,25",
        "1.234": None,
        "1,234.5": None,
        "1.23.456": None,
    },
    "ar": {"١٬٢٣٤٫٥": "1234.5", "1,234.5": "1234.5", "1,234": None},
    "en": {"1,234.5": "1234.5", "1,234,567": "1234567", "1.234,5": None},
}


def in_language(person, language, fragment=""):
    person.browser.get("about:blank")
    person.browser.get(f"{person.server.url}/s/{person.study.id}?lang={language}{fragment}")
    person.until("ask")


def test_numbers_are_read_as_the_language_writes_them(meet):
    person = meet(studies.document(HOURS))
    for language, cases in TYPED.items():
        in_language(person, language)
        for typed, read in cases.items():
            box = person.find("[name=hours]")
            box.clear()
            box.send_keys(typed)
            person.click("#answers button[type=submit]")
            person.until("check" if read else "problem")
            if read:
                said = person.find("#entered").text.splitlines()[1]
                assert said.replace("\N{LEFT-TO-RIGHT MARK}", "") == read, typed
                person.click("#change")
                person.until("ask")


def test_arabic_is_mirrored_and_a_report_is_the_same(meet):
    person = meet(studies.document(HOURS, studies.YES_NO, purpose="To see how long."))
    in_language(person, "ar", "#invitation=abc")
    # A text in another language is read in its own direction, from the page's edge.
    style = "const { textAlign, direction } = getComputedStyle(arguments[0]); return [textAlign, direction];"
    purpose = person.browser.execute_script(style, person.find("h1 + p"))
    assert purpose == ["right", "ltr"]
    assert person.browser.execute_script(style, person.find("h1"))[0] == "right"
    edges = "const {left, right} = arguments[0].getBoundingClientRect(); return [left, right];"
    button, label = [
        person.browser.execute_script(edges, found)
        for found in person.browser.find_elements(By.CSS_SELECTOR, ".choice:has([value=yes]) > *")
    ]
    assert button[0] >= label[1]
    # The menu keeps what the address carries behind its #.
    person.click(".languages summary")
    german = person.find(".languages a[hreflang=de]")
    assert german.text == "Deutsch"
    assert german.get_attribute("href").endswith("?lang=de#invitation=abc")
    german.click()
    person.until("ask")
    assert person.find("html").get_attribute("lang") == "de"
    person.answer(hours="1.234,5", ever="yes")
    person.until("report")
    report = json.loads(person.body)
    assert set(report["payloads"]) == {"hours", "ever"}
    assert report["digest"] == person.study.digest


def test_translated_study_is_answered_in_its_own_language(meet):
    """Counts and public values use the study's own labels, whatever language a participant reads."""
    person = meet(WHOLE)
    in_language(person, "de")
    assert person.find("h1").text == "Gewohnheiten"
    person.fill(region="Norden", occupation="Arbeiter", ever="yes", hours="7,5", age="42")
    person.click("#answers button[type=submit]")
    person.until("check")
    entered = person.find("#entered").text.splitlines()
    assert entered[3] == "Arbeiter"
    assert entered[6:8] == ["Wo wohnen Sie?", "Norden – gesendet, wie es ist, im Klartext"]
    person.click("#confirm button")
    person.until("report")
    assert "Norden (north)" in person.find("#in-words").text
    report = json.loads(person.body)
    assert report["public"] == {"age": "42", "region": "north"}
    assert report["digest"] == person.study.digest
    # Of a report that waits, too, each reader reads it in her language.
    person.browser.get(f"{person.server.url}/s/{person.study.id}?lang=ar")
    person.until("report")
    assert "الشمال (north)" in person.find("#in-words").text
    assert json.loads(person.body) == report


def test_browsers_and_collector_use_the_same_plural_forms():
    """Plural forms and marks in numbers come from two libraries."""
    script = f"""
    console.log(JSON.stringify({json.dumps(LANGUAGES)}.map((language) => {{
      const rules = new Intl.PluralRules(language);
      const parts = new Intl.NumberFormat(language, {{ numberingSystem: "latn" }}).formatToParts(123456.5);
      return [
        Array.from({{ length: 205 }}, (_, count) => rules.select(count)),
        parts.find(({{ type }}) => type === "decimal").value,
        parts.find(({{ type }}) => type === "group").value,
      ];
    }})))"""
    for language, found in zip(
        LANGUAGES, json.loads(npm.node("--input-type=module", "-e", script)), strict=True
    ):
        locale = Locale.parse(language)
        marks = locale.number_symbols["latn"]
        assert found == [[locale.plural_form(one) for one in range(205)], marks["decimal"], marks["group"]]
