"""A board sends in clear what it was asked behind noise, because it cannot compare signs and letter case."""

import json
import unicodedata

import pytest

from schemas import Study
from tests import studies
from tests.portable.embedding_guide import BOARD_LEDGER
from tests.portable.platforms import run_micropython

REFUSED = "would leave in clear, and was behind noise before"
# What was asked behind noise, and how a public field of the next version asks it.
THE_SAME = [
    ("Did you drink?", "DID YOU, DRINK"),
    ("Did you drink?", "Did you drink…"),
    ("Did you drink?", "Did\u00a0you «drink»\u200b?"),
    ("Don't you drink?", "Don’t you drink?"),
    ("Avez-vous avorté ?", "Avez-vous avorté\u00a0?"),
    ("Avez-vous avorté ?", unicodedata.normalize("NFD", "AVEZ-VOUS AVORTÉ ?")),
    ("Trinken Sie täglich?", "TRINKEN SIE TÄGLICH?"),
    ("Trinken Sie täglich?", unicodedata.normalize("NFD", "Trinken Sie täglich?")),
    ("War der Schaden groß?", "WAR DER SCHADEN GROSS?"),
    ("Do you fish?", "Do you \ufb01sh?"),
    ("Пили ли вы?", "ПИЛИ ЛИ ВЫ?"),
    ("Wypiłeś 5 piw?", "WYPIŁEŚ 5 PIW?"),
]
ANOTHER = [
    ("Ever?", "region"),
    ("Trinken Sie täglich?", "Rauchen Sie täglich?"),
    ("Trinken Sie täglich?", "Wo wohnen Sie?"),
    ("Пили ли вы?", "region"),
    ("Пили вы 5 раз?", "Пили вы 7 раз?"),
]
BOARD = """
import json
import os
from ldp_client.documents.study import Study

stream = [7]

def random(size):
    stream[0] += 1
    return bytes([(stream[0] * 101 + place * 17) % 256 for place in range(size)])

def outcome(*versions):
    if LEDGER in os.listdir():
        os.remove(LEDGER)
    try:
        for study, answers, public in versions:
            report = answer_once(Study(study), answers, random, public=public)
        return report.public
    except RuntimeError as error:
        return str(error)

print(json.dumps([outcome(*versions) for versions in json.loads(open(PLACE + "studies.json").read())]))
"""


def versions(text, respelt, **more):
    """What a board is given in turn: study, answers, public values."""
    first = studies.document({**studies.YES_NO, "text": text})
    field = {"id": "b", "text": respelt, "choices": ["no", "yes"]}
    tea = {**studies.YES_NO, "id": "tea", "text": "Do you like tea?"}
    later = studies.document(tea, public=[field], **{"version": 2, **more})
    return [(first, {Study(first).questions[0].id: "yes"}, None), (later, {"tea": "no"}, {"b": "yes"})]


@pytest.fixture(params=["this Python", "MicroPython"])
def told(request, tmp_path, monkeypatch, capsys):
    """The outcome of the last version of each pair, each on a new board."""

    def told(pairs):
        (tmp_path / "studies.json").write_text(json.dumps(pairs))
        if request.param == "MicroPython":
            return json.loads(run_micropython(tmp_path, f"PLACE = '/data/'\n{BOARD_LEDGER}{BOARD}"))
        monkeypatch.chdir(tmp_path)
        exec(f"PLACE = ''\n{BOARD_LEDGER}{BOARD}", {})
        return json.loads(capsys.readouterr().out)

    return told


def test_board_recognises_question_in_other_spellings(told):
    assert told([versions(*pair) for pair in THE_SAME]) == [REFUSED] * len(THE_SAME)
    assert told([versions(*reversed(pair)) for pair in THE_SAME]) == [REFUSED] * len(THE_SAME)


def test_board_accepts_other_questions_and_other_studies(told):
    asked = [versions(*pair) for pair in ANOTHER] + [versions("täglich?", "TÄGLICH?", id="other", version=1)]
    assert told(asked) == [{"b": "yes"}] * len(asked)
