"""A browser sends in clear, or draws again, what it was asked in another language, spelling or folder.

Also: a part of its module fails to load, which must cost nothing and be retried.
"""

import pytest

from tests import studies
from tests.portable.chromium import attempt, run, set_offline
from tests.portable.conftest import browser, page, site

__all__ = ["browser", "page", "site"]

SAME = "Haben Sie je betrogen?"
LANGUAGES = {"languages": ["en", "de"]}
BOTH = {**studies.YES_NO, "text": {"en": "Have you ever cheated?", "de": SAME}}
PLAIN = {**studies.YES_NO, "text": SAME}
RECORD = {
    **studies.LOGISTIC,
    "id": "record",
    "features": [{"id": "drinks", "ask": "yes_no"}],
    "response": {"id": "cheats", "text": "Ever unfaithful?", "ask": "yes_no"},
    "mechanism": {"name": "sampled_products", "epsilon": "1"},
}
del RECORD["norm"]
OTHER = {**studies.YES_NO, "id": "other"}
CLEAR = {"id": "asked", "choices": ["no", "yes"]}
# The first question, the public field of the next study, and whether that is refused.
TURNED = [
    (studies.document(BOTH, **LANGUAGES), {**CLEAR, "text": {"en": "Did it happen?", "de": SAME}}, True),
    (studies.document(BOTH, **LANGUAGES), {**CLEAR, "text": SAME}, True),
    (studies.document(PLAIN), {**CLEAR, "text": {"en": "Did it happen?", "de": SAME}}, True),
    (studies.document(PLAIN), {**CLEAR, "text": "haben sie JE betrogen"}, True),
    (studies.document(RECORD), {**CLEAR, "id": "cheats"}, True),
    (studies.document(RECORD), {**CLEAR, "text": "Cheats?"}, True),
    (studies.document(RECORD), {**CLEAR, "text": "ever unfaithful"}, True),
    (studies.document(RECORD), {**CLEAR, "text": "Is it warm?"}, False),
]
TURN = """
const outcomes = [];
for (const [name, first, second, field] of args[0]) {
  const device = await openDevice({ maxEpsilon: "40", name });
  const given = { ever: "yes", record: { drinks: "yes", cheats: "yes" } };
  const { id } = first.questions[0];
  await device.answer(await parseStudy(JSON.stringify(first)), { [id]: given[id] });
  const answer = device.answer(await parseStudy(JSON.stringify(second)), { other: "yes", [field]: "yes" });
  outcomes.push(await answer.then(() => "sent", ({ code }) => code));
}
return outcomes;
"""
ROUNDS = """
const [documents, name] = args;
const left = [];
const device = await openDevice({ maxEpsilon: "8", name });
for (const document of documents) {
  await device.answer(await parseStudy(JSON.stringify(document)), { habit: true });
  left.push(await device.epsilonLeft());
}
return left;
"""
ENGLISH, WARM = "Have you ever cheated?", {"en": "Have you ever cheated?", "de": "Ist es warm?"}
CHEATS = {"en": ENGLISH, "de": SAME}


def spoken(text):
    return {"languages": list(text)} if isinstance(text, dict) else {}


def test_browser_does_not_send_in_clear_what_was_asked_behind_noise(page):
    cases = []
    for number, (first, field, _) in enumerate(TURNED):
        second = studies.document(OTHER, version=2, public=[field], **spoken(field.get("text")))
        cases.append([f"turned-{number}", first, second, field["id"]])
    assert run(page, TURN, cases) == ["answered" if refused else "sent" for *_, refused in TURNED]


def test_browser_reuses_permanent_answer_across_languages(page):
    for number, (texts, draws) in enumerate(
        [
            ((ENGLISH, CHEATS, {**CHEATS, "fr": "Jamais ?"}, SAME), [1, 1, 1, 1]),
            ((CHEATS, WARM, CHEATS), [1, 2, 2]),
            ((ENGLISH, CHEATS, WARM), [1, 1, 2]),
        ]
    ):
        documents = [
            studies.document({**studies.MEMOIZED, "text": text}, version=version, **spoken(text))
            for version, text in enumerate(texts, 1)
        ]
        left = run(page, ROUNDS, documents, f"rounds-{number}")
        assert [(8 - one) / (8 - left[0]) for one in left] == pytest.approx(draws)


def test_module_part_that_fails_to_load_costs_nothing_and_is_retried(page):
    script = """
    const [document] = args;
    const study = await parseStudy(JSON.stringify(document));
    return (await (await openDevice({ maxEpsilon: "4" })).answer(study, { ever: true })).study;
    """
    document = studies.document(BOTH, public=[{**CLEAR, "source": "invitation"}], **LANGUAGES)
    run(page, "return null;")
    set_offline(page, True)
    try:
        assert attempt(page, script, document) == {"error": "module", "field": ""}
    finally:
        set_offline(page, False)
    assert run(page, script, document) == "survey"
