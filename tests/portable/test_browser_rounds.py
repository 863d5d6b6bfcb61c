"""Kept answers in the browser: drawn once, charged once, erased permanently."""

import base64
from itertools import product

import pytest

from ldp_client import mechanism_for
from ldp_client.documents.sections import names_in
from schemas import Study
from tests import studies
from tests.portable.browser_device import (
    SEEDED,
    answered,
    withdraw,
)
from tests.portable.chromium import run
from tests.statistics import share_is

ROUNDS = """
const [documents, answers] = args;
const outcomes = [];
for (const document of documents) {
  const study = await parseStudy(JSON.stringify(document));
  const device = await openDevice({ maxEpsilon: "4" });
  const answer = device.answer(study, answers);
  const outcome = await answer.then(({ body }) => JSON.parse(body), ({ code }) => code);
  outcomes.push([outcome, (await device.status(study)).answered, await device.epsilonLeft()]);
}
return outcomes;
"""


def rounds(*versions, question=studies.MEMOIZED_BITS):
    return [{**studies.document(question), "version": version} for version in versions]


def kept_answers(page):
    script = """
    await openDevice({ maxEpsilon: "4" });
    return new Promise((resolve) => {
      indexedDB.open("ldpkit").onsuccess = ({ target: { result: database } }) => {
        database.transaction("ledger").objectStore("ledger").get(0).onsuccess = ({ target: { result } }) => {
          database.close();
          resolve(result.permanent.map(({ question, answer }) => [question, [...answer]]));
        };
      };
    });
    """
    return run(page, script)


def test_a_memoized_answer_is_drawn_once_and_paid_once(page):
    """The permanent answer stays, whatever is answered later; each version has one report."""
    first, again, second = run(page, ROUNDS, rounds(1, 1, 2), {"brand": "worker"})
    assert again == ["answered", True, 2]
    assert [outcome[0]["version"] for outcome in (first, second)] == [1, 2]
    assert [outcome[1:] for outcome in (first, second)] == [[True, 2], [True, 2]]
    ((question, answer),) = kept_answers(page)
    assert (question, len(answer)) == ("brand", 1)
    ((_, older, _),) = run(page, ROUNDS, rounds(1), {"brand": "worker"})
    assert older
    run(page, ROUNDS, rounds(3, 4), {"brand": "student"})
    assert kept_answers(page) == [[question, answer]]


def test_round_without_consent_is_dropped_by_the_next(page):
    script = """
    const [first, second, other, answers] = args;
    const device = await openDevice({ maxEpsilon: "9" });
    const read = (document) => parseStudy(JSON.stringify(document));
    await device.answer(await read(other), answers);
    await device.answer(await read(first), answers);
    await device.answer(await read(second), answers);
    await device.consent(await read(second));
    await device.answer(await read({ ...second, version: 3 }), answers);
    return new Promise((resolve) => {
      indexedDB.open("ldpkit").onsuccess = ({ target: { result: database } }) => {
        database.transaction("ledger").objectStore("ledger").get(0).onsuccess = ({ target: { result } }) => {
          database.close();
          resolve(result.reports.map(({ study, version, state }) => `${study} ${version} ${state}`));
        };
      };
    });
    """
    first, second = rounds(1, 2)
    kept = run(page, script, first, second, {**first, "id": "other"}, {"brand": "worker"})
    assert kept == ["other 1 held", f"{first['id']} 2 queued", f"{first['id']} 3 held"]


def test_a_memoized_report_follows_the_permanent_answer_and_not_the_true_one(page):
    """500 rounds whose true answer changes: one law, that of the permanent bits flipped again."""
    study = Study(studies.document(studies.MEMOIZED_BITS))
    mechanism = mechanism_for(study.questions[0])
    script = """
    const [document, versions] = args;
    const device = await openDevice({ maxEpsilon: "4", random: seeded(1) });
    const study = await parseStudy(JSON.stringify(document));
    const payloads = [];
    for (let version = 1; version <= versions; version++) {
      const brand = version % 2 ? "worker" : "teacher";
      const { body } = await device.answer(Object.freeze({ ...study, version }), { brand });
      payloads.push(JSON.parse(body).payloads.brand);
    }
    return payloads;
    """
    count = 500
    payloads = [base64.b64decode(text)[0] for text in run(page, SEEDED + script, study.document, count)]
    ((_, (permanent,)),) = kept_answers(page)
    share = mechanism.again / 2**32
    for bit in range(3):
        flips = sum((payload ^ permanent) >> bit & 1 for payload in payloads)
        assert share_is(flips, count, share)
        assert not share_is(flips, count, share + 0.25)


@pytest.mark.parametrize(
    "change", [{"choices": ["a", "b", "worker"]}, {"text": "Which of these?"}, {"title": "Other brands"}]
)
def test_reused_question_id_does_not_reuse_the_old_answer(page, change):
    """It is a new question, charged again; both are then stored."""
    other = {**rounds(2, question={**studies.MEMOIZED_BITS, **change})[0]}
    if "title" in change:
        del other["questions"][0]["title"]
        other["title"] = change["title"]
    again = [{**other, "version": 3}, *rounds(4)]
    answers = {"brand": "worker"}
    first, changed, *later = run(page, ROUNDS, [*rounds(1), other, *again], answers)
    assert [left for _, _, left in (first, changed, *later)] == [2, 0, 0, 0]
    assert len(kept_answers(page)) == 2


def test_question_with_changed_noise_is_rejected(page):
    for noise in (studies.CHOICE["mechanism"], {**studies.MEMOIZED_BITS["mechanism"], "epsilon": "1.5"}):
        changed = rounds(2, question={**studies.MEMOIZED_BITS, "mechanism": noise})
        *_, (refused, _, left) = run(page, ROUNDS, rounds(1) + changed, {"brand": "worker"})
        assert (refused, left) == ("answered", 2)


def test_answered_question_is_not_asked_again_as_memoized(page):
    """Otherwise noise would be drawn twice and charged only the second time."""
    once = {**studies.MEMOIZED_BITS, "mechanism": studies.CHOICE["mechanism"]}
    documents = [studies.document(once), *rounds(2)]
    *_, (refused, was_answered, left) = run(page, ROUNDS, documents, {"brand": "worker"})
    assert (refused, was_answered, left) == ("answered", True, 3)


def test_withdrawal_erases_the_permanent_answer(page):
    (document,) = rounds(1)
    answered(page, document, {"brand": "worker"})
    assert withdraw(page, document) == 0
    assert kept_answers(page) == [["brand", []]]
    ((refused, was_answered, _),) = run(page, ROUNDS, rounds(2), {"brand": "worker"})
    assert (refused, was_answered) == ("answered", True)


def test_two_versions_race_for_one_permanent_answer(page):
    script = """
    const [documents, answers] = args;
    const studies = await Promise.all(documents.map((document) => parseStudy(JSON.stringify(document))));
    for (let round = 0; round < 10; round++) {
      const name = `two-${round}`;
      const devices = await Promise.all(studies.map(() => openDevice({ maxEpsilon: "4", name })));
      await Promise.all(studies.map((study, index) => devices[index].answer(study, answers)));
    }
    return Promise.all(Array.from({ length: 10 }, async (_, round) => {
      const device = await openDevice({ maxEpsilon: "4", name: `two-${round}` });
      return device.epsilonLeft();
    }));
    """
    assert run(page, script, rounds(1, 2), {"brand": "worker"}) == [2] * 10


def test_question_once_noised_in_an_older_round_is_not_sent_in_clear(page):
    """The question's text changed in between."""
    old, new = ({**studies.MEMOIZED, "text": text} for text in ("Have you ever?", "Have you lately?"))
    versions = [{**studies.document(old), "version": 1}, {**studies.document(new), "version": 2}]
    answers = {studies.MEMOIZED["id"]: "yes"}
    assert all(isinstance(outcome, dict) for outcome, _, _ in run(page, ROUNDS, versions, answers))
    public = [{"id": "status", "text": "Have you ever?", "choices": ["no", "yes"]}]
    cheap = {**studies.ONE_OF, "mechanism": {**studies.ONE_OF["mechanism"], "epsilon": "0.01"}}
    turned = {**studies.document(cheap, public=public), "version": 3}
    ((refused, _, _),) = run(page, ROUNDS, [turned], {"colour": "teacher", "status": "yes"})
    assert refused == "answered"


def test_question_is_identified_by_its_nearest_title(page):
    """By its own text, else its section's title, else the study's title, as in Python."""
    script = """
    return Promise.all(args[0].map(async (versions, index) => {
      const device = await openDevice({ maxEpsilon: "4", name: `titles-${index}` });
      const studies = await Promise.all(versions.map((one) => parseStudy(JSON.stringify(one))));
      await device.answer(studies[0], { colour: "teacher" });
      const again = device.answer(studies[1], { colour: "teacher", other: "yes" });
      return again.then(() => "", ({ code }) => code);
    }));
    """
    rounds, known = [], []
    titles = [{}, {"sections": [{"title": "Colours", "questions": ["colour"]}]}]
    for words, titled in product([{"text": "Which one?"}, {}], titles):
        first = studies.document(
            {**studies.ONE_OF, "mechanism": studies.KEPT, **words}, title="My survey", **titled
        )
        for name in ("Which one?", "Colours", "My survey"):
            public = [{"id": "other", "text": name, "choices": ["no", "yes"]}]
            rounds.append([first, {**first, "public": public, "version": 2}])
            known.append(name in names_in(first, "colour"))
    assert run(page, script, rounds) == ["answered" if one else "" for one in known]
    assert known.count(True) == 4


@pytest.mark.parametrize(
    "field",
    [
        {"id": "ever"},
        *[
            {"id": "other", "text": text}
            for text in ("Have you ever?", "Which of these?", "Ever?", "Colours", "rating.rate")
        ],
    ],
)
def test_question_once_noised_is_not_sent_in_clear(page, field):
    """A later version asks in clear what an earlier one protected: by its id, text, title or column."""
    kept = {**studies.ONE_OF, "mechanism": studies.KEPT}
    rating = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "delta": "1e-7"}}
    first = studies.document(kept, {**studies.YES_NO, "text": "Have you ever?"}, rating)
    a_list = {"title": "Which of these?", "questions": ["ever"], "any_of": True}
    first["sections"] = [{"title": "Colours", "questions": ["colour", "rating"]}, a_list]
    public = [{"choices": ["no", "yes"], **field}]
    answers = {"colour": "teacher", "ever": "yes", "rating": {"age": 30, "years": 4, "rate": 4}}
    ((report, _, _),) = run(page, ROUNDS, [first], answers)
    assert set(report["payloads"]) == {"colour", "ever", "rating"}
    later = {"colour": "teacher", field["id"]: "yes"}
    colours = [{"title": "Colours", "questions": ["colour"]}]
    turned = {**studies.document(kept, public=public, sections=colours), "version": 2}
    ((refused, is_answered, left),) = run(page, ROUNDS, [turned], later)
    assert (refused, is_answered, left) == ("answered", True, 0)
    region = {**turned, "public": [{"id": "region", "choices": ["yes", "n"]}]}
    ((sent, _, _),) = run(page, ROUNDS, [region], {"colour": "teacher", "region": "yes"})
    assert sent["public"] == {"region": "yes"}
