"""Kept answers in the browser: drawn once, charged once, erased permanently."""

import base64

import pytest

from ldp_client import mechanism_for
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


def test_question_is_known_by_its_id_whatever_its_words(page):
    """The collector rejects a version that changes what a memoized question asks; the device knows the id."""
    asked = {**studies.MEMOIZED_BITS, "text": {"en": "Which one?", "de": "Welche?"}, "ordered": True}
    later = {**rounds(2, question=asked)[0], "title": "Other brands", "languages": ["en", "de"]}
    found = run(page, ROUNDS, [*rounds(1), later], {"brand": "worker"})
    assert [left for _, _, left in found] == [2, 2]
    assert len(kept_answers(page)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": studies.CHOICE["mechanism"]},
        {"mechanism": {**studies.MEMOIZED_BITS["mechanism"], "epsilon": "1.5"}},
        {"choices": [*studies.MEMOIZED_BITS["choices"], "another"]},
    ],
    ids=["not memoized", "other epsilon", "more choices"],
)
def test_question_with_changed_noise_is_rejected(page, change):
    changed = rounds(2, question={**studies.MEMOIZED_BITS, **change})
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


def test_question_once_noised_is_not_sent_in_clear(page):
    """A later version sends the value of a field in clear whose id was a question; another id may be sent."""
    kept = {**studies.ONE_OF, "mechanism": studies.KEPT}
    first = studies.document(kept, studies.YES_NO)
    run(page, ROUNDS, [first], {"colour": "teacher", "ever": "yes"})
    field = {"id": "ever", "choices": ["no", "yes"]}
    turned = {**studies.document(kept, public=[field]), "version": 2}
    ((refused, is_answered, left),) = run(page, ROUNDS, [turned], {"colour": "teacher", "ever": "yes"})
    assert (refused, is_answered) == ("answered", True)
    other = {**turned, "public": [{**field, "id": "region"}]}
    ((sent, _, left_then),) = run(page, ROUNDS, [other], {"colour": "teacher", "region": "yes"})
    assert sent["public"] == {"region": "yes"}
    assert left_then == left


def test_version_that_was_only_drawn_does_not_block_lower_versions(page):
    script = """
    const [document, answers] = args;
    const device = await openDevice({ maxEpsilon: "9" });
    const read = (version) => parseStudy(JSON.stringify({ ...document, version }));
    await device.draw(await read(2));
    const { version } = await device.answer(await read(1), answers);
    return version;
    """
    document = studies.document(studies.YES_NO, studies.NUMBER, sample_one_question=True)
    assert run(page, script, document, {"ever": "yes", "hours": 3}) == 1
