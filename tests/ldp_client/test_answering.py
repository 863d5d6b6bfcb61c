"""Whole reports by every path: their parts are the mechanisms', and nothing else tells an answer."""

import json

import pytest

from ldp_client import Device, describe
from ldp_client.answering import perturb_answers, quantise_answers, report_of
from ldp_client.core.randomness import read, urandom
from ldp_client.documents.errors import AnswerError, InputError, ReportError
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.explain import report_size
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import say
from ldpkit import perturbing
from schemas import Rational, Study
from summaries import check_report
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import consenting
from tests.statistics import Stream, no_noise

PUBLIC = [
    {"id": "region", "choices": ["n", 'a "quoted" name', "größer als alle anderen", "𝄞"]},
    {"id": "offset", "bounds": ["-10.5", "1000"], "step": "0.5"},
    {"id": "stratum", "choices": ["town", "country"], "source": "ticket"},
]
ASKED = [studies.YES_NO, studies.NUMBER, studies.CHOICE, studies.PRODUCTS]
STUDY = Study(studies.document(*ASKED, public=PUBLIC))
ONE_OF = Study(studies.document(*ASKED, public=PUBLIC, sample_one_question=True))
MECHANISMS = mechanisms_of(STUDY)
PEOPLE = [
    {
        "ever": place % 2 == 0,
        "hours": place,
        "occupation": studies.CHOICE["choices"][place % 3],
        "salary": {"age": 20 + place, "married": place % 3 == 0, "rate": 1 + place % 4},
        "region": PUBLIC[0]["choices"][place % 4],
        "offset": (-10.5, -1, 0, 0.5, 999.5, 1000)[place % 6],
        "stratum": PUBLIC[2]["choices"][place % 2],
    }
    for place in range(12)
]


def answer(device, study, answers):
    public = {field.id: answers[field.id] for field in study.public if field.id in answers}
    device.answer(study, {name: answers[name] for name in answers if name not in public}, public=public)
    return [queued.body for queued in device.ledger.queued()]


@pytest.mark.attack(1)
@pytest.mark.parametrize("by_device", [False, True])
def test_a_report_has_its_parts_and_nothing_else(tmp_path, by_device):
    """Ship sound mechanisms, and let the report around them tell: its id, its clear part, shared noise."""
    for seed, person in enumerate(PEOPLE[:4]):
        if by_device:
            device = Device(tmp_path / str(seed), "100", require_consent=False)
            device._random = Stream(seed)
            (text,) = answer(device, STUDY, person)
        else:
            text = perturb_answers(STUDY, MECHANISMS, person, Stream(seed)).to_json()
        # Each question's payload in the study's order, then the id's secret, from one stream of bytes.
        source = Stream(seed)
        payloads = {name: MECHANISMS[name].perturb(person[name], source) for name in MECHANISMS}
        secret = read(source, SECRET_BYTES)
        public = {**{field["id"]: person[field["id"]] for field in PUBLIC}, "offset": f"{person['offset']:g}"}
        report = Report(report_id_of(secret), STUDY.id, 1, STUDY.digest, payloads, public=public)
        assert json.loads(text) == report.to_document()


@pytest.mark.attack(8)
@pytest.mark.parametrize("study", [STUDY, ONE_OF], ids=["all questions", "one question"])
def test_report_size_reveals_neither_public_value_nor_question(study):
    """Watch the sizes of encrypted reports on the wire: each is padded to the longest."""
    source = Stream(2)
    reports = [perturb_answers(study, MECHANISMS, person, source) for person in PEOPLE]
    texts = [report.to_json().encode() for report in reports]
    assert {len(text) for text in texts} == {report_size(study)}
    assert len({len(text.rstrip()) for text in texts}) > 4


def test_the_question_is_drawn_by_the_first_word_whatever_the_answers():
    for word in range(8):
        report = perturb_answers(ONE_OF, MECHANISMS, PEOPLE[word], Stream(word, word.to_bytes(4, "big")))
        assert list(report.payloads) == [list(MECHANISMS)[word % 4]]


@pytest.mark.parametrize(
    "wrong", [{"ever": "maybe"}, {"hours": "x"}, {"occupation": "judge"}, {"region": "N"}]
)
def test_every_answer_is_checked_before_anything_is_drawn(wrong):
    with pytest.raises(AnswerError):
        perturb_answers(ONE_OF, MECHANISMS, {**PEOPLE[0], **wrong}, no_noise)
    (name,) = wrong
    without = {key: PEOPLE[0][key] for key in PEOPLE[0] if key != name}
    with raises(AnswerError, "core.no_answer", field=name):
        perturb_answers(ONE_OF, MECHANISMS, without, no_noise)


def test_reports_with_more_or_other_payloads_are_refused():
    report = perturb_answers(ONE_OF, MECHANISMS, PEOPLE[0])
    payloads = {name: m.perturb(PEOPLE[0][name]) for name, m in MECHANISMS.items()}
    for bad in (payloads, {"else": b"\x00"}, {"ever": payloads["ever"], "hours": payloads["hours"]}):
        report.payloads = bad
        with raises(ReportError, "report.payload_invalid", "payloads"):
            check_report(ONE_OF, MECHANISMS, report)
    for name, payload in payloads.items():
        report.payloads = {name: payload}
        check_report(ONE_OF, MECHANISMS, report)
        report.payloads = {name: payload + b"\x00"}
        with raises(ReportError, "report.payload_impossible", field=f"payloads.{name}"):
            check_report(ONE_OF, MECHANISMS, report)


# Memoized questions cost their sum, as each version may draw another; a device answers one of the others.
ONCE = [studies.with_epsilon(studies.YES_NO, "0.5"), studies.with_epsilon(studies.NUMBER, "0.25")]
KEPT = [studies.MEMOIZED, {**studies.MEMOIZED, "id": "other"}]


@pytest.mark.parametrize(
    ("questions", "draws", "epsilon", "says"),
    [
        ([*ONCE, studies.LINEAR], True, "1", "epsilon 1, delta 1e-06 (the largest"),
        ([*ONCE, studies.LINEAR], False, "1.75", "epsilon 1.75, delta 1e-06 (their sum)"),
        (KEPT, True, "4", "(the sum over the memoized questions: over"),
        ([*ONCE, *KEPT], True, "4.5", "memoized questions and the largest of the others: over"),
        ([*ONCE, KEPT[0]], False, "2.75", "(their sum)"),
    ],
)
def test_a_study_costs_what_its_drawn_questions_may_cost(questions, draws, epsilon, says):
    study = Study(studies.document(*questions, sample_one_question=draws))
    assert study.epsilon == Rational.parse(epsilon)
    assert says in describe(study)[-1]


PLACES = [
    {"id": "region", "choices": ["north", 'the "south"', "none"]},
    {"id": "age", "bounds": ["18", "99"], "step": "1"},
    PUBLIC[2],
]
PLACED = Study(studies.document(studies.YES_NO, studies.NUMBER, public=PLACES))
ANSWERS = {"ever": True, "hours": 3, "region": "north", "age": 42}


@pytest.mark.parametrize("change", [{"age": 17}, {"stratum": "village"}, {"height": 180}])
def test_bad_public_value_is_refused_before_anything_is_spent(tmp_path, change):
    """The tests of public fields have more wrong values."""
    device = consenting(tmp_path, "2")
    with pytest.raises(AnswerError) as caught:
        answer(device, PLACED, {**ANSWERS, **change})
    assert caught.value.field in change
    assert device.ledger.spent() == device.ledger.queued() == []


def test_report_is_not_built_without_its_public_values():
    mechanisms = mechanisms_of(PLACED)
    quantised = quantise_answers(PLACED, mechanisms, ANSWERS)
    with raises(AnswerError, "answer.public_invalid", say("core.missing"), field="region"):
        report_of(PLACED, mechanisms, quantised, urandom)
    with raises(AnswerError, "answer.public_invalid", field="age") as caught:
        report_of(PLACED, mechanisms, quantised, urandom, {"region": "north", "age": "42.0"})
    assert say("core.missing") not in str(caught.value)


@pytest.mark.parametrize("draws", [False, True])
def test_a_file_of_answers_has_a_column_for_each_public_field(tmp_path, draws):
    study = Study({**PLACED.document, "sample_one_question": draws})
    file, out = tmp_path / "answers.csv", tmp_path / "reports"
    table = "region,ever,age,hours,stratum\nnorth,yes,42,3,town\nnone,no, 99.0 ,4,country\n"
    choice = say("core.public_choice")
    for old, new, code in (
        ("none,no", "nowhere,no", ("answer.line_invalid", "answers.csv, row 2: region: ", choice)),
        (" 99.0 ", "", ("answer.line_invalid", "answers.csv, row 2: age: ", "18", "99")),
        (",stratum\n", ",else\n", ("files.column_missing", "column stratum")),
        (",country", ",", ("answer.line_invalid", "row 2: stratum: ", choice)),
    ):
        file.write_text(table.replace(old, new))
        with raises(InputError, code):
            perturbing.perturb_file(study, str(file), str(out))
        assert not out.exists()
    file.write_text(table)
    assert perturbing.perturb_file(study, str(file), str(out)) == 2
    reports = [Report.from_json(line) for line in out.read_text().splitlines()]
    assert [report.public for report in reports] == [
        {"region": "north", "age": "42", "stratum": "town"},
        {"region": "none", "age": "99", "stratum": "country"},
    ]
