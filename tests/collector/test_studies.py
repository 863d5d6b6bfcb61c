"""A published version is served at once, and many visitors read the database once."""

import re

import pytest

from collector.keys import Role, add_key
from collector.studies import _changed_part, publish
from schemas import Study
from tests import studies
from tests.kit.answers import refusal
from tests.kit.collectors import build_study
from tests.ldp_client.issuers import Key


def test_version_published_by_another_process_is_served(habits, monkeypatch):
    habits.client.get("/v1/studies/habits")
    newer = build_study(2, title="Newer habits")
    habits.write(publish, newer)
    monkeypatch.setattr("collector.studies.time.monotonic", lambda: float("inf"))
    assert habits.client.get("/v1/studies/habits").data == newer.canonical()


def test_many_visitors_read_the_database_once(habits, monkeypatch):
    monkeypatch.setattr("collector.studies.time.monotonic", lambda: 0.0)
    addresses = ("/s/habits", "/v1/studies/habits")
    for address in addresses:
        habits.client.get(address)
    monkeypatch.setattr(habits.collector.database, "read", None)
    assert [habits.client.get(address).status_code for address in addresses * 3] == [200] * 6


def test_documents_in_memory_are_bounded_in_bytes(habits, monkeypatch):
    current = habits.collector.current
    for number in range(4):
        habits.publish(build_study(id=f"study-{number}"))
    size = len(current.require("study-0").canonical)
    monkeypatch.setattr("collector.studies.MOST_BYTES", 3 * size)
    for _ in range(2):
        for number in range(4):
            current.require(f"study-{number}")
            assert size * sum(current.knows(f"study-{one}") for one in range(4)) <= 3 * size


@pytest.mark.attack(15)
def test_study_key_cannot_use_up_page_header_room(habits):
    """Someone with a key for one study names so many issuers that no page loads any more."""
    ann = {"Authorization": f"Bearer {habits.write(add_key, 'ann', Role.PUBLISH, ['mine'])}"}
    # No two studies share a token key, and hosts may have 253 characters.
    keys, label = {study_id: Key().text for study_id in ("mine", "other")}, "a" * 63
    long = [f"https://{number:02}.{label}.{label}.{label}.{label[:58]}/tokens" for number in range(1, 5)]

    def published(study_id, version, issuer, headers):
        tokens = {"issuer": issuer, "keys": [{"key": keys[study_id]}]}
        channel = {"batches": {"hours": 1}, "tickets": tokens}
        document = studies.document(studies.YES_NO, id=study_id, version=version, channel=channel)
        response = habits.client.post("/v1/studies", json=document, headers=headers)
        return "published" if response.status_code == 201 else refusal(response)

    seen = [published("mine", version, issuer, ann) for version, issuer in enumerate(long, 1)]
    assert seen == ["published"] * 2 + [("study-invalid", "channel")] * 2
    # What is named already takes no more room.
    assert published("mine", 3, long[0], ann) == "published"
    assert published("other", 1, "https://issuer.example/tokens", habits.operator) == "published"
    for path in ("/s/habits", "/assets/worker.js"):
        headers = habits.client.get(path).headers
        # nginx refuses an answer with more than 4 kB of headers.
        assert sum(len(f"{name}: {value}") for name, value in headers.items()) < 4096 - 500
        allowed = re.search("connect-src ([^;]*)", headers["Content-Security-Policy"])[1].split()
        assert len(allowed) == 4


TEXTS = {"en": "Which do you like?", "de": "Was mögen Sie?", "es": "¿Cuál le gusta?"}
OTHER = {**TEXTS, "de": "Was essen Sie?"}
APPLE = {"en": "apple", "de": "Apfel", "es": "manzana"}
BRAND = {**studies.MEMOIZED_BITS, "ordered": True, "mechanism": studies.KEPT}
PLAIN = {**BRAND, "text": TEXTS["en"], "choices": ["apple", "kiwi"]}
COUNTED = {key: value for key, value in {**PLAIN, "choices": {"count": 40}}.items() if key != "ordered"}
BARE = studies.MEMOIZED
PRIOR = {"p": {"distribution": "dirichlet", "concentration": "2"}}


def asked_in(*languages, text=TEXTS, apple=APPLE):
    choices = [{tag: apple[tag] for tag in languages}, "kiwi"]
    return {**BRAND, "text": {tag: text[tag] for tag in languages}, "choices": choices}


def version_of(version, *questions, **fields):
    """A version of the study, with the languages of its last question's text."""
    text = questions[-1].get("text")
    languages = {"languages": list(text)} if isinstance(text, dict) else {}
    return Study(studies.document(*questions, version=version, **languages, **fields))


@pytest.mark.parametrize(
    ("before", "question", "part"),
    [
        (PLAIN, PLAIN, ""),
        (PLAIN, {**PLAIN, "model": {"name": "multinomial", "prior": PRIOR}}, ""),
        # The plain text is one of the languages; one language is left, and is not stated.
        (PLAIN, asked_in("de", "en"), ""),
        (asked_in("en", "de"), asked_in("en", "es"), ""),
        (asked_in("en"), asked_in("de"), ""),
        # The text moves to the title.
        ({**BARE, "text": "A survey"}, BARE, ""),
        (PLAIN, {**BARE, "id": PLAIN["id"], "text": PLAIN["text"]}, "type"),
        (PLAIN, {**PLAIN, "mechanism": {"name": "randomized_response", "epsilon": "2"}}, "mechanism"),
        (PLAIN, {**PLAIN, "choices": ["kiwi", "apple"]}, "text or choices"),
        (COUNTED, {**COUNTED, "choices": {"count": 41}}, "text or choices"),
        (PLAIN, asked_in("de", "es"), "text or choices"),
        (asked_in("en", "de"), asked_in("en", "de", text=OTHER), "text or choices"),
        (asked_in("en", "de"), asked_in("en", "de", apple={**APPLE, "de": "Birne"}), "text or choices"),
        (BARE, {**BARE, "text": "Do you smoke?"}, "text or choices"),
    ],
)
def test_memoized_question_changes_only_in_what_it_asks(before, question, part):
    """Devices keep one answer to its id."""
    documents = [version_of(number, asked).document for number, asked in ((1, before), (2, question))]
    (first,), (second,) = (document["questions"] for document in documents)
    assert _changed_part(documents[0], first, documents[1], second) == part


def test_version_that_changes_a_memoized_question_of_any_earlier_one_is_refused(empty):
    """Also by the title above a question without a text."""
    english, both = asked_in("en"), asked_in("en", "de")
    for version, asked in ((1, [both]), (2, [english]), (3, [studies.YES_NO])):
        assert empty.publish(version_of(version, *asked)).status_code == 201
    changed = asked_in("en", "de", text=OTHER)
    response = empty.publish(version_of(4, studies.YES_NO, changed))
    assert (response.status_code, refusal(response)) == (409, ("study-conflict", "questions[1]"))
    detail = response.get_json()["detail"]
    assert "differs from version 1 in its text or choices: give it a new id" in detail
    assert len(detail) <= 160
    renamed = {**changed, "id": "renamed"}
    assert empty.publish(version_of(4, studies.YES_NO, renamed)).status_code == 201
    assert empty.publish(version_of(1, BARE, id="bare")).status_code == 201
    response = empty.publish(version_of(2, BARE, id="bare", title="Opiates"))
    assert refusal(response) == ("study-conflict", "questions[0]")
