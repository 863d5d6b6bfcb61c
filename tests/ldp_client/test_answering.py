"""Whole reports by every path: their parts are the mechanisms', and nothing else tells an answer."""

import json

import pytest

from ldp_client import Device
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import read
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.explain import report_size
from ldp_client.mechanisms import mechanism_for, mechanisms_of
from schemas import Study
from tests import studies
from tests.statistics import Stream

PUBLIC = [
    {"id": "region", "choices": ["n", 'a "quoted" name', "größer als alle anderen", "𝄞"]},
    {"id": "offset", "bounds": ["-10.5", "1000"], "step": "0.5"},
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
    }
    for place in range(12)
]


def parts_of(person, source):
    """Each question's payload in the study's order, then the id's secret, from one stream of bytes."""
    payloads = {
        name: mechanism_for(STUDY.question(name)).perturb(person[name], source) for name in MECHANISMS
    }
    secret = read(source, SECRET_BYTES)
    fields = {"region": person["region"], "offset": f"{person['offset']:g}"}
    report = Report(report_id_of(secret), STUDY.id, 1, STUDY.digest, payloads, public=fields)
    return report.to_document()


@pytest.mark.attack(1)
@pytest.mark.parametrize("by_device", [False, True])
def test_a_report_has_its_parts_and_nothing_else(tmp_path, by_device):
    """Ship sound mechanisms, and let the report around them tell: its id, its clear part, shared noise."""
    for seed, person in enumerate(PEOPLE[:4]):
        if by_device:
            device = Device(tmp_path / str(seed), "100", require_consent=False)
            device._random = Stream(seed)
            private = {name: person[name] for name in MECHANISMS}
            device.answer(STUDY, private, public={field["id"]: person[field["id"]] for field in PUBLIC})
            text = device.ledger.queued()[0].body
        else:
            text = perturb_answers(STUDY, MECHANISMS, person, Stream(seed)).to_json()
        assert json.loads(text) == parts_of(person, Stream(seed))


@pytest.mark.attack(8)
@pytest.mark.parametrize("study", [STUDY, ONE_OF], ids=["all questions", "one question"])
def test_report_size_reveals_neither_public_value_nor_question(study):
    """Watch the sizes of encrypted reports on the wire: each is padded to the longest."""
    source = Stream(2)
    reports = [perturb_answers(study, MECHANISMS, person, source) for person in PEOPLE]
    texts = [report.to_json().encode() for report in reports]
    assert len({len(text) for text in texts}) == 1
    assert len({len(text.rstrip()) for text in texts}) > 4
    assert {len(text) for text in texts} == {report_size(study)}


def test_the_question_is_drawn_by_the_first_word_whatever_the_answers():
    for word in range(8):
        report = perturb_answers(ONE_OF, MECHANISMS, PEOPLE[word], Stream(word, word.to_bytes(4, "big")))
        assert list(report.payloads) == [list(MECHANISMS)[word % 4]]
