"""Studies that say who asks, or have sections, and texts that do so wrongly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.run_vectors import study_outcome

BOTH = {"languages": ["en", "ar"]}
STATED: dict[str, dict[str, Any]] = {
    "all": {**studies.ASKER},
    "all-in-two": {
        **BOTH,
        "owner": {"en": "One clinic", "ar": "عيادة\u200f"},
        "ethics": {"en": "Approved", "ar": "موافق عليه"},
    },
    "contact-with-a-plus": {"contact": "a.B+c_d-1@x-1.example.org"},
    "contact-with-a-port": {"contact": "https://example.org:8443/ask?x=%20#a"},
    "contact-with-a-query": {"contact": "https://example.org?x=[1]"},
    "retention-longest": {"retention": {"days": 36500}},
    "owner-empty": {"owner": ""},
    "owner-null": {"owner": None},
    "owner-too-long": {"owner": "x" * 201},
    "owner-on-two-lines": {"owner": "One\nclinic"},
    "owner-with-an-escape": {"owner": "\x1b[2J"},
    "owner-with-c1": {"owner": "a\x9bb"},
    "owner-turned-round": {"owner": "a\u202eb"},
    "owner-isolated": {"owner": "a\u2067b"},
    "owner-a-list": {"owner": ["a"]},
    "owner-lacks-one": {**BOTH, "owner": {"en": "One clinic"}},
    "owner-wrong-in-the-other": {**BOTH, "owner": {"en": "One clinic", "ar": "a\tb"}},
    "ethics-too-long": {"ethics": "x" * 1001},
    "ethics-on-two-lines": {"ethics": "a\u2028b"},
    "contact-in-two": {**BOTH, "contact": {"en": "a@example.org", "ar": "a@example.org"}},
    "contact-a-name": {"contact": "One clinic"},
    "contact-without-tls": {"contact": "http://example.org"},
    "contact-a-script": {"contact": "javascript:alert(1)"},
    "contact-mailto": {"contact": "mailto:a@example.org"},
    "contact-with-headers": {"contact": "a@example.org?bcc=b@example.org"},
    "contact-two": {"contact": "a@example.org,b@example.org"},
    "contact-as-another": {"contact": "https://example.org@example.com"},
    "contact-of-no-host": {"contact": "https:///a.org"},
    "contact-without-a-dot": {"contact": "a@localhost"},
    "contact-with-an-empty-part": {"contact": "a@example..org"},
    "contact-with-an-empty-port": {"contact": "https://example.org:/"},
    "contact-with-a-long-port": {"contact": "https://example.org:123456"},
    "contact-with-a-blank": {"contact": "https://example.org/a b"},
    "contact-with-a-quote": {"contact": 'https://example.org/"'},
    "contact-on-two-lines": {"contact": "a@example.org\n"},
    "contact-of-other-letters": {"contact": "a@exämple.org"},
    "contact-with-other-digits": {"contact": "https://example.org:٨"},
    "contact-kelvin": {"contact": "\N{KELVIN SIGN}@example.org"},
    "contact-in-capitals": {"contact": "HTTPS://example.org"},
    "contact-too-long": {"contact": f"{'a' * 190}@example.org"},
    "contact-a-number": {"contact": 1},
    "retention-zero": {"retention": {"days": 0}},
    "retention-too-long": {"retention": {"days": 36501}},
    "retention-a-text": {"retention": "a year"},
    "retention-a-number": {"retention": 365},
    "retention-half-a-day": {"retention": {"days": 0.5}},
    "retention-true": {"retention": {"days": True}},
    "retention-of-nothing": {"retention": {}},
    "retention-of-more": {"retention": {"days": 1, "hours": 1}},
}


def asker_studies() -> Iterator[dict[str, Any]]:
    """Each with what it says, or the field that is refused."""
    for name, stated in STATED.items():
        text = json.dumps({**studies.document(studies.YES_NO), **stated}, separators=(",", ":"))
        yield {"name": name, "text": text, **study_outcome(text)}


def section(title: Any, *questions: Any) -> dict[str, Any]:
    return {"title": title, "questions": list(questions)}


PAIR = [section("Work", "hours"), section("Life", "ever")]
SECTIONED: dict[str, dict[str, Any]] = {
    "two": {"sections": PAIR},
    "one-in-another-order": {"sections": [section("All", "ever", "hours")]},
    "in-two-languages": {
        **BOTH,
        "sections": [section({"en": "Work", "ar": "العمل"}, "hours"), section("Life", "ever")],
    },
    "none": {"sections": []},
    "null": {"sections": None},
    "an-object": {"sections": {"Work": ["hours", "ever"]}},
    "an-empty-one": {"sections": [*PAIR, section("More")]},
    "without-a-title": {"sections": [{"questions": ["hours", "ever"]}]},
    "with-an-empty-title": {"sections": [section("", "hours", "ever")]},
    "with-more": {"sections": [{**section("All", "hours", "ever"), "text": "and more"}]},
    "of-one-title": {"sections": [section("All", "hours"), section("All", "ever")]},
    "of-one-title-in-arabic": {
        **BOTH,
        "sections": [section({"en": "Work", "ar": "أ"}, "hours"), section({"en": "Life", "ar": "أ"}, "ever")],
    },
    "lacks-a-language": {**BOTH, "sections": [section({"en": "All"}, "hours", "ever")]},
    "of-an-unknown-question": {"sections": [*PAIR, section("More", "age")]},
    "of-one-twice": {"sections": [section("All", "hours", "ever", "hours")]},
    "of-one-in-both": {"sections": [section("Work", "hours"), section("Life", "ever", "hours")]},
    "leaves-one-out": {"sections": [section("Work", "hours")]},
    "of-what-is-no-name": {"sections": [section("All", "hours", ["ever"])]},
    "a-list": {"sections": [section("Work", "hours"), {**section("Life", "ever"), "any_of": True}]},
    "no-list": {"sections": [{**section("All", "hours", "ever"), "any_of": False}]},
    "a-list-of-a-number": {"sections": [{**section("All", "ever", "hours"), "any_of": True}]},
    "a-list-by-word": {"sections": [section("Work", "hours"), {**section("Life", "ever"), "any_of": "yes"}]},
    "a-list-that-is-kept": {
        "questions": [{**studies.YES_NO, "mechanism": studies.KEPT}],
        "sections": [{**section("All", "ever"), "any_of": True}],
    },
    "a-list-that-may-be-refused": {
        "questions": [{**studies.YES_NO, "refusal": True}],
        "sections": [{**section("All", "ever"), "any_of": True}],
    },
    "asks-one": {"sections": PAIR, "sample_one_question": True},
    "asks-all": {"sections": PAIR, "sample_one_question": False},
}


def sectioned_studies() -> Iterator[dict[str, Any]]:
    """Each with what it says, or the field that is refused."""
    for name, stated in SECTIONED.items():
        document = {**studies.document(studies.NUMBER, studies.YES_NO), **stated}
        text = json.dumps(document, separators=(",", ":"))
        yield {"name": name, "text": text, **study_outcome(text)}
