"""A board's ledger in MicroPython keeps private what an earlier version asked behind noise."""

import json

import pytest

from tests import studies
from tests.portable.embedding_guide import BOARD_LEDGER
from tests.portable.platforms import run_micropython

EVER = {**studies.YES_NO, "text": "Have you ever had an affair?"}
TEA = {**studies.YES_NO, "id": "tea", "text": "Do you like tea?"}
TURNED = {"id": "ever", "text": "Since when?", "choices": ["no", "yes"]}
BOARD = """
import json
from ldp_client.documents.study import Study

first, turned = json.loads(open(PLACE + "studies.json").read())
stream = [7]

def random(size):
    stream[0] += 1
    return bytes([(stream[0] * 101 + place * 17) % 256 for place in range(size)])

def outcome(study, answers, public=None):
    try:
        return answer_once(Study(study), answers, random, public=public).public
    except RuntimeError as error:
        return str(error)

fruit, field = {"tea": "no"}, {"ever": "yes"}
print([outcome(turned, dict(fruit, ever="yes")), outcome(turned, dict(fruit), dict(field, tea="no"))])
print(outcome(turned, fruit, field))
LEDGER = "other.json"
print(outcome(first, {"ever": "yes"}))
print(outcome(turned, fruit, field))
print(len(read_ledger()["outbox"]))
"""


@pytest.mark.attack(8)
@pytest.mark.parametrize("platform", ["this Python", "MicroPython"])
def test_board_sends_no_private_or_implicit_value_in_clear(tmp_path, platform, monkeypatch, capsys):
    """A later version asks a noisy question as a public field, and the board's answers stay the same."""
    first, later = studies.document(EVER), studies.document(TEA, public=[TURNED], version=2)
    (tmp_path / "studies.json").write_text(json.dumps([first, later]))
    source = BOARD_LEDGER + BOARD
    if platform == "MicroPython":
        told = run_micropython(tmp_path, f"PLACE = '/data/'\n{source}")
    else:
        monkeypatch.chdir(tmp_path)
        exec(f"PLACE = ''\n{source}", {})
        told = capsys.readouterr().out
    unmeant, meant, asked, refused, count = told.splitlines()
    assert unmeant == str(["public values, and nothing else, are given as public"] * 2)
    assert (meant, asked) == (str({"ever": "yes"}), "{}")
    assert refused == "would leave in clear, and was behind noise before"
    assert count == "1"
