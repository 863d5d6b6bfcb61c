"""A device sends public values as they are, once they are checked; noise and memory are as without them."""

import pytest

from ldp_client import answering
from ldp_client.answering import quantise_answers, report_of
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import say
from ldpkit import perturbing
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import consenting

NO_CHOICE = say("core.public_choice")
PUBLIC = [
    {"id": "region", "choices": ["north", 'the "south"', "none"]},
    {"id": "age", "bounds": ["18", "99"], "step": "1"},
    {"id": "stratum", "choices": ["town", "country"], "source": "ticket"},
]
DOCUMENT = studies.document(studies.YES_NO, studies.NUMBER, public=PUBLIC)
STUDY = Study(DOCUMENT)
ANSWERS = {"ever": True, "hours": 3, "region": "north", "age": 42}
CSV = "region,ever,age,hours,stratum\nnorth,yes,42,3,town\nnone,no, 99.0 ,4,country\n"


def split(answers):
    """Answers, and what leaves in clear: apart, as a device wants them that records no consent."""
    private = {name: answers[name] for name in answers if name in ("ever", "hours", "habit", "height")}
    return private, {name: answers[name] for name in answers if name not in private}


def answer(device, study, answers):
    private, public = split(answers)
    return device.answer(study, private, public=public)


def queued(device):
    return [Report.from_json(item.body) for item in device.ledger.queued()]


def test_report_contains_public_values_and_noisy_payloads(tmp_path):
    device = consenting(tmp_path, "2")
    # A ticket carries the stratum, which may be stated too.
    answer(device, STUDY, {**ANSWERS, "stratum": "town"})
    (report,) = queued(device)
    assert report.public == {"region": "north", "age": "42", "stratum": "town"}
    assert set(report.payloads) == {"ever", "hours"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"region": "North"}, "region"),
        ({"age": 17}, "age"),
        ({"age": 42.5}, "age"),
        ({"age": None}, "age"),
        ({"stratum": "village"}, "stratum"),
        ({"height": 180}, "height"),
    ],
)
def test_a_bad_value_is_refused_before_anything_is_spent(tmp_path, monkeypatch, change, field):
    device = consenting(tmp_path, "2")
    monkeypatch.setattr(answering, "uniform_below", None)
    monkeypatch.setattr(answering, "read", None)
    with pytest.raises(AnswerError) as caught:
        answer(device, STUDY, {**ANSWERS, **change})
    assert caught.value.field == field
    assert device.epsilon_left == 2
    assert not device.ledger.queued()
    assert not device.ledger.spent()


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_a_file_of_answers_has_a_column_for_each_field(tmp_path, sample_one_question):
    rows = [
        {"region": "north", "age": 42, "stratum": "town"},
        {"region": "none", "age": "99", "stratum": "country"},
    ]
    (tmp_path / "answers.csv").write_text(CSV)
    study = Study({**DOCUMENT, "sample_one_question": sample_one_question})
    assert perturbing.perturb_file(study, str(tmp_path / "answers.csv"), str(tmp_path / "reports")) == 2
    reports = [Report.from_json(line) for line in (tmp_path / "reports").read_text().splitlines()]
    assert [report.public for report in reports] == [{key: str(row[key]) for key in row} for row in rows]
    assert all(study.wrong_public(report.public) is None for report in reports)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("none,no", "nowhere,no", ("answer.line_invalid", "answers.csv, row 2: region: ", NO_CHOICE)),
        (" 99.0 ", "", ("answer.line_invalid", "answers.csv, row 2: age: ", "18", "99")),
        (",stratum\n", ",else\n", ("files.column_missing", "column stratum")),
        (",country", ",", ("answer.line_invalid", "row 2: stratum: ", NO_CHOICE)),
    ],
)
def test_wrong_public_value_writes_no_file(tmp_path, old, new, code):
    (tmp_path / "answers.csv").write_text(CSV.replace(old, new))
    with raises(InputError, code):
        perturbing.perturb_file(STUDY, str(tmp_path / "answers.csv"), str(tmp_path / "reports"))
    assert not (tmp_path / "reports").exists()


def test_report_is_not_built_without_its_public_values():
    mechanisms = mechanisms_of(STUDY)
    quantised = quantise_answers(STUDY, mechanisms, ANSWERS)
    with raises(AnswerError, "answer.public_invalid", say("core.missing"), field="region"):
        report_of(STUDY, mechanisms, quantised, urandom)
    with raises(AnswerError, "answer.public_invalid", field="age") as caught:
        report_of(STUDY, mechanisms, quantised, urandom, {"region": "north", "age": "42.0"})
    assert say("core.missing") not in str(caught.value)
