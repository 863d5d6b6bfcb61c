"""The browser's device answers and rejects studies, in headless Chromium."""

import re
from collections import Counter

import pytest

from schemas import Report, Study
from tests import studies
from tests.portable.browser_device import (
    ANSWERS,
    DOCUMENT,
    OPEN,
    SEEDED,
    answered,
    flush,
    reports_of_vectors,
    status,
)
from tests.portable.chromium import attempt, run
from tests.portable.platforms import JAVASCRIPT
from tests.statistics import share_is


def test_report_is_stored_before_it_is_sent(page, site):
    report = answered(page)
    assert report["state"] == "held"
    parsed = Report.from_json(report["body"])
    assert (parsed.id, parsed.digest) == (report["id"], Study(DOCUMENT).digest)
    assert flush(page) == report
    assert site.requests == []


def test_a_reload_finds_the_same_report(page):
    report = answered(page)
    page.refresh()
    assert status(page) == {"answered": True, "report": report}


def test_the_device_reads_the_vectors_streams(page):
    for wanted, made in reports_of_vectors(page):
        assert made == wanted


def test_a_question_is_answered_once(page):
    report = answered(page)
    again = attempt(page, OPEN + "return device.answer(study, answers);", DOCUMENT, ANSWERS)
    assert again == {"error": "answered", "field": "hours"}
    later = {**studies.document(studies.CHOICE), "version": 2}
    script = OPEN + "return device.answer(study, { occupation: 'student' });"
    assert attempt(page, script, later, None) == {"error": "answered", "field": "occupation"}
    assert status(page)["report"] == report


def test_only_newer_versions_are_answered_after_an_answer(page):
    """As in Python, an older version and another document of the same version are rejected."""
    refused = "answered"
    for version, question, error in ((2, "a", None), (1, "b", refused), (2, "c", refused), (3, "d", None)):
        document = {**studies.document({**studies.YES_NO, "id": question}), "version": version}
        script = OPEN + "return device.answer(study, answers);"
        outcome = attempt(page, script, document, {question: True})
        assert outcome.get("error") == error
        assert status(page, document)["answered"]
    assert run(page, OPEN + "return device.epsilonLeft();", document, None) == 2


@pytest.mark.parametrize("answers", [None, 3, [4]])
def test_answers_other_than_an_object_are_rejected(page, answers):
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, DOCUMENT, answers) == {"error": "input", "field": "answers"}
    assert status(page) == {"answered": False, "report": None}


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ({"hours": 3}, "occupation"),
        ({**ANSWERS, "more": 1}, "more"),
        ({**ANSWERS, "occupation": "queen"}, "occupation"),
        ({**ANSWERS, "hours": "3"}, "hours"),
    ],
)
def test_a_wrong_answer_spends_nothing(page, answers, field):
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, DOCUMENT, answers) == {"error": "answer", "field": field}
    assert status(page) == {"answered": False, "report": None}


def test_the_budget_is_exact_and_spans_studies(page):
    """0.1 + 0.2 is all of 0.3, which floats would call too much."""
    script = """
    const device = await openDevice({ maxEpsilon: "0.3" });
    const outcomes = [];
    for (const document of args[0]) {
      const study = await parseStudy(JSON.stringify(document));
      const outcome = device.answer(study, { hours: 3 });
      outcomes.push(await outcome.then(() => "written", (error) => error.code));
      outcomes.push((await device.status(study)).answered);
    }
    return [...outcomes, await device.epsilonLeft()];
    """
    costs = {"a": "0.1", "b": "0.2", "c": "0.000001"}
    documents = [
        studies.document(studies.with_epsilon(studies.NUMBER, cost), id=name) for name, cost in costs.items()
    ]
    assert run(page, script, documents) == ["written", True, "written", True, "budget", False, 0]


def test_delta_is_a_budget_too(page):
    """A loose one lets nearly every answer through, however small epsilon is."""
    script = """
    const [documents, answers, options] = args;
    const outcomes = [];
    for (const document of documents) {
      const study = await parseStudy(JSON.stringify(document));
      const device = await openDevice({ maxEpsilon: "64", ...options });
      outcomes.push(await device.answer(study, answers).then(() => "written", (error) => error.code));
    }
    return outcomes;
    """

    def costing(name, *deltas, **fields):
        parts = [
            {**studies.LINEAR, "id": f"q{place}", "mechanism": {**studies.GAUSSIAN, "delta": delta}}
            for place, delta in enumerate(deltas)
        ]
        return studies.document(*parts, id=name, **fields)

    record = studies.ANSWERS["rating"]
    one = [costing(*pair) for pair in (("a", "0.5"), ("b", "6e-5"), ("c", "6e-5"), ("d", "4e-5"))]
    assert run(page, script, one, {"q0": record}) == ["budget", "written", "budget", "written"]
    two = {"q0": record, "q1": record}
    both = [
        costing("e", "6e-5", "5e-5"),
        costing("f", "6e-5", "5e-5", sample_one_question=True),
        costing("g", "6e-5", "0.5"),
    ]
    options = {"name": "other"}
    assert run(page, script, both, two, options) == ["budget", "written", "budget"]
    assert run(page, script, both[:1], two, {**options, "maxDelta": "0.01"}) == ["written"]


@pytest.mark.parametrize("days", [{"opens": "2999-01-01"}, {"closes": "2020-01-01"}])
def test_study_outside_its_days_is_not_answered(page, days):
    document = {**DOCUMENT, **days}
    script = OPEN + "return device.answer(study, answers);"
    assert attempt(page, script, document, ANSWERS)["error"] == "closed"
    assert not status(page, document)["answered"]


ONE = studies.document(studies.NUMBER, studies.CHOICE, studies.LINEAR, sample_one_question=True)
ONE_ANSWERS = {**ANSWERS, "rating": studies.ANSWERS["rating"]}
ASK_ONE = f"""{SEEDED}
const [document, answers, count] = args;
const study = await parseStudy(JSON.stringify(document));
const found = [], random = seeded(1);
for (let number = 0; number < count; number++) {{
  const device = await openDevice({{ maxEpsilon: "4", name: `one-${{number}}`, random }});
  const {{ body }} = await device.answer(study, answers);
  found.push([Object.keys(JSON.parse(body).payloads).join(), body.length, await device.epsilonLeft()]);
}}
return found;
"""


@pytest.mark.slow
def test_one_question_is_drawn_evenly_in_reports_of_one_size(page):
    count = 300
    found = run(page, ASK_ONE, ONE, ONE_ANSWERS, count)
    drawn = Counter(name for name, _, _ in found)
    assert set(drawn) == {"hours", "occupation", "rating"}
    assert all(share_is(times, count, 1 / 3) for times in drawn.values())
    assert not share_is(drawn["hours"], count, 0.6)
    assert len({size for _, size, _ in found}) == 1
    assert {left for *_, left in found} == {3}


def test_a_memoized_question_of_one_drawn_costs_its_own_epsilon(page):
    """Each version may draw another one, which is paid alone; questions asked once cost their largest."""
    memoized = {
        **studies.MEMOIZED_BITS,
        "mechanism": {
            **studies.MEMOIZED_BITS["mechanism"],
            "epsilon": "0.75",
            "instantaneous_epsilon": "0.5",
        },
    }
    dearer = {**studies.MEMOIZED_BITS, "id": "brands"}
    costly = studies.with_epsilon(studies.NUMBER, "1.5")
    document = studies.document(memoized, dearer, costly, studies.CHOICE, sample_one_question=True)
    answers = {"brand": "worker", "brands": "worker", **ANSWERS}
    found = run(page, ASK_ONE, document, answers, 60)
    spent = {"brand": 0.75, "brands": 2, "hours": 1.5, "occupation": 1.5}
    assert {drawn: 4 - left for drawn, _, left in found} == spent
    assert all(4 - left == spent[drawn] for drawn, _, left in found)


def test_sample_one_study_marks_every_question_as_asked(page):
    answered(page, ONE, ONE_ANSWERS)
    for question in (studies.NUMBER, studies.CHOICE, studies.LINEAR):
        script = OPEN + "return device.answer(study, answers);"
        document = {**studies.document(question), "version": 2}
        assert (
            attempt(page, script, document, {question["id"]: ONE_ANSWERS[question["id"]]})["error"]
            == "answered"
        )


def test_drawn_question_stays_the_same(page):
    script = """
    const [document, answers] = args;
    const study = await parseStudy(JSON.stringify(document));
    const device = await openDevice({ maxEpsilon: "4" });
    const place = await device.draw(study);
    const again = await (await openDevice({ maxEpsilon: "4" })).draw(study);
    const { id } = study.questions[place];
    const refused = await device.answer(study, answers).catch(({ code, field }) => code);
    const { body } = await device.answer(study, { [id]: answers[id] });
    const all = JSON.stringify({ ...document, sample_one_question: false });
    const whole = await device.draw(await parseStudy(all));
    return [again === place, refused, Object.keys(JSON.parse(body).payloads).join() === id, whole];
    """
    assert run(page, script, ONE, ONE_ANSWERS) == [True, "answer", True, -1]


def test_device_types_match_the_device(page):
    interface = (
        (JAVASCRIPT / "index.d.ts").read_text().partition("export interface Device {")[2].partition("\n}")[0]
    )
    typed = re.findall(r"^  (?:readonly )?(\w+)[(:]", interface, re.M)
    assert sorted(typed) == run(page, "return Object.keys(await openDevice({ maxEpsilon: '1' })).sort();")


@pytest.mark.parametrize("budget", ["0", "-1", "four", "1e99"])
def test_a_bad_budget_is_refused(page, budget):
    script = "return openDevice({ maxEpsilon: args[0] });"
    assert attempt(page, script, budget) == {"error": "input", "field": "maxEpsilon"}
    script = "return openDevice({ maxEpsilon: '1', maxDelta: args[0] });"
    assert attempt(page, script, budget) == {"error": "input", "field": "maxDelta"}
