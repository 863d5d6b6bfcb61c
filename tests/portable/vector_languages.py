"""Studies with texts in several languages, good and bad, and reports on one: labels are those of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.run_vectors import public_outcome, study_outcome
from tests.portable.vector_texts import GOLDEN

GOLDEN_TEXT = (GOLDEN / "studies" / "languages.json").read_text(encoding="utf-8")
WHOLE = json.loads(GOLDEN_TEXT)
BOTH = {"en": "one", "de": "eins"}
LANGUAGES: dict[str, Any] = {"languages": ["en", "de"]}


def labelled(
    feature: dict[str, Any], response: dict[str, Any], record: dict[str, Any] = studies.LINEAR
) -> dict[str, Any]:
    """A record whose first feature and response say more of themselves."""
    first, *others = record["features"]
    own = {"features": [{**first, **feature}, *others], "response": {**record["response"], **response}}
    return {**record, **own}


GOOD: dict[str, dict[str, Any]] = {
    "one-language": {"languages": ["pt-BR"], "title": {"pt-BR": "Um"}},
    "plain-texts": {"languages": ["zh-Hant-TW", "de"]},
    "both": {**LANGUAGES, "title": BOTH},
    "a-unit": {
        **LANGUAGES,
        "questions": [{**studies.NUMBER, "unit": {"en": "hours", "de": "Stunden"}}],
    },
    "fields-with-texts": {
        **LANGUAGES,
        "questions": [labelled({"text": BOTH, "unit": "years"}, {"text": "how often"})],
    },
    "levels-with-texts": {
        **LANGUAGES,
        "questions": [
            labelled({"text": BOTH, "unit": BOTH, "cuts": ["30"]}, {}, studies.PRODUCTS),
        ],
    },
}
BAD: dict[str, dict[str, Any]] = {
    "a-unit-lacks-one": {**LANGUAGES, "questions": [{**studies.NUMBER, "unit": {"en": "hours"}}]},
    "a-unit-without-languages": {"questions": [{**studies.NUMBER, "unit": BOTH}]},
    "an-empty-unit": {"questions": [{**studies.NUMBER, "unit": ""}]},
    "a-long-unit": {"questions": [{**studies.NUMBER, "unit": "x" * 41}]},
    "a-unit-of-a-choice": {"questions": [{**studies.CHOICE, "unit": "hours"}]},
    "a-field-with-an-empty-text": {"questions": [labelled({"text": ""}, {})]},
    "no-languages": {"title": BOTH},
    "languages-empty": {"languages": []},
    "languages-a-text": {"languages": "en"},
    "languages-none": {"languages": None},
    "language-twice": {"languages": ["en", "en"]},
    "language-in-capitals": {"languages": ["DE"]},
    "language-of-one-letter": {"languages": ["d"]},
    "language-with-a-blank": {"languages": ["de "]},
    "language-ends-with-a-hyphen": {"languages": ["de-"]},
    "language-kelvin": {"languages": ["de-\N{KELVIN SIGN}a"]},
    "language-a-number": {"languages": [1]},
    "one-is-missing": {**LANGUAGES, "title": {"en": "one"}},
    "one-too-many": {**LANGUAGES, "title": {**BOTH, "fr": "un"}},
    "one-is-empty": {**LANGUAGES, "title": {"en": "one", "de": ""}},
    "own-is-empty": {**LANGUAGES, "title": {"en": "", "de": "eins"}},
    "one-is-no-text": {**LANGUAGES, "title": {"en": "one", "de": 1}},
    "one-is-too-long": {**LANGUAGES, "purpose": {"en": "one", "de": "x" * 5001}},
    "a-list-of-texts": {**LANGUAGES, "title": ["one"]},
    "an-id": {**LANGUAGES, "id": BOTH},
    "a-day": {**LANGUAGES, "opens": BOTH},
    "labels-alike-in-one": {
        **LANGUAGES,
        "questions": [{**studies.CHOICE, "choices": [{"en": "a", "de": "x"}, {"en": "b", "de": "x"}]}],
    },
    "a-label-is-anothers-own": {
        **LANGUAGES,
        "questions": [
            {**studies.CHOICE, "choices": [{"en": "once", "de": "einmal"}, {"en": "daily", "de": "once"}]}
        ],
    },
    "a-label-lacks-one": {
        **LANGUAGES,
        "questions": [{**studies.CHOICE, "choices": ["a", {"en": "b"}]}],
    },
    "an-id-of-a-feature": {
        **LANGUAGES,
        "questions": [{**studies.LINEAR, "features": [{"id": BOTH, "bounds": ["0", "1"]}]}],
    },
    "public-labels-alike-in-one": {
        **LANGUAGES,
        "public": [{"id": "region", "choices": [{"en": "a", "de": "x"}, {"en": "b", "de": "x"}]}],
    },
    "a-public-text-lacks-one": {
        **LANGUAGES,
        "public": [{"id": "region", "text": {"de": "wo"}, "choices": ["a", "b"]}],
    },
}
ANSWERS: dict[str, Any] = {"region": "north", "age": "42", "ever": True, "occupation": "worker", "hours": 7.5}
CHANGED: dict[str, dict[str, Any]] = {
    "own": {},
    "same-in-all": {"region": "süd", "occupation": "CEO"},
    # Whatever a person reads: a label of another language is none of the study's.
    "german-label": {"occupation": "Arbeiter"},
    "german-public-label": {"region": "Norden"},
}


def language_studies() -> Iterator[dict[str, Any]]:
    """The golden study, others that are good, and others that are not."""
    texts = {"languages": GOLDEN_TEXT}
    for name, change in {**GOOD, **BAD}.items():
        document = {**studies.document(studies.YES_NO), **change}
        texts[name] = json.dumps(document, separators=(",", ":"))
    for name, text in texts.items():
        yield {"name": name, "text": text, **study_outcome(text)}


def language_reports() -> Iterator[dict[str, Any]]:
    """Reports on the golden study, or the field that is refused."""
    for name, change in CHANGED.items():
        entry = {"study": WHOLE, "answers": {**ANSWERS, **change}, "seed": name}
        yield {**entry, **public_outcome(entry)}
