"""The catalogues of the participant's page: the sentences that templates, scripts and code have in English.

`python -m tests.kit.catalogues` brings the catalogues up to date after a sentence has changed. A new sentence
is then empty in each of them, until it is translated.
"""

from functools import cache
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_file
from babel.messages.pofile import read_po, write_po
from babel.plural import to_gettext

from collector.pages.words import LANGUAGES, catalogue_path
from ldp_client.words.text import ENGLISH

ROOT = Path(__file__).parents[2]
SCRIPTS = ("participant", "entries", "parts", "words", "told", "leaves")
# Where sentences of the page are: files, and how Babel reads them.
SOURCES = (
    ("collector/pages/templates/participant.html", "jinja2.ext:babel_extract"),
    ("collector/pages/templates/questions.html", "jinja2.ext:babel_extract"),
    ("collector/pages/templates/layout.html", "jinja2.ext:babel_extract"),
    ("collector/pages/templates/missing.html", "jinja2.ext:babel_extract"),
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
    """Return all sentences of the page, without translations."""
    found = Catalog(charset="utf-8")
    device = {key: said for start in DEVICE for key, said in ENGLISH.sentences(start).items()}
    for key, said in device.items():
        if not key.startswith(NOT_SHOWN):
            forms = said if isinstance(said, str) else (said["one"], said["other"])
            found.add(forms, locations=[("ldp_client/words/en.json", 0)])
    for path, method in SOURCES:
        for _, message, *_ in extract_from_file(method, ROOT / path, KEYWORDS):
            found.add(message, locations=[(path, 0)])
    return found


def read(language):
    """Return a language's catalogue."""
    with catalogue_path(language).open("rb") as file:
        return read_po(file, language)


def update(language):
    """Bring a language's catalogue up to date."""
    catalogue = read(language)
    catalogue.update(sentences(), no_fuzzy_matching=True)
    write(language, catalogue)


HEADER = """# The participant's page: a beta translation until native speakers have read it.
msgid ""
msgstr ""
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {plurals}\\n"

"""


def write(language, catalogue):
    """Write a catalogue, with the plural forms of the CLDR."""
    plurals = to_gettext(Locale.parse(language).plural_form)
    with catalogue_path(language).open("wb") as file:
        file.write(HEADER.format(language=language, plurals=plurals).encode())
        write_po(file, catalogue, width=110, omit_header=True, include_lineno=False, ignore_obsolete=True)


if __name__ == "__main__":
    for _language in LANGUAGES[1:]:
        update(_language)
