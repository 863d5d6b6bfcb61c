"""End a board's program, or have it wait for ever, by odd words of an issuer, a collector or a proxy."""

import json

import pytest

from tests.portable.boards import ANOTHER, STUDY, run_trials, with_tokens

STRATA = with_tokens("north", "south")
OTHER = "urn:ldpkit:problem:token-key-other"


@pytest.mark.parametrize("study", [STUDY, STRATA], ids=["receipt", "token"])
def test_board_accepts_every_spelling_of_media_type(tmp_path, study):
    spelt = [{"spells": "{}; charset=x"}, {"spells": "{} ; charset=x"}, {"shouts": True}]
    for found in run_trials(tmp_path / "data", *spelt, study=study):
        assert (found["stored"], found["puts"], found["left"]["outbox"]) == (1, 1, [])


ODD = [None, True, 1.0, -1, 2, 10**30, "1", [], {}, [1], {"a": 1}]


def test_odd_issuer_answers_do_not_crash_board(tmp_path):
    said = [{"type": OTHER, "key_id": one} for one in ODD]
    said += [{"type": one, "key": 1} for one in ODD]
    words = [
        *map(json.dumps, [*said, *ODD]),
        "",
        "{",
        '{"type"',
        "{[]: 1}",
        "{1: 2}",
        "1e999",
        "[" * 5000,
        "\xff",
    ]
    trials = [
        {"issuer": [f"says {one}" for one in words[start : start + 30]]} for start in range(0, len(words), 30)
    ]
    # One each: a key that was named once is asked for, and after that none.
    trials += [{"issuer": [f"says {json.dumps({'type': OTHER, 'key': one})}"]} for one in ODD]
    for found in run_trials(tmp_path / "data", *trials, study=STRATA):
        assert (found["stored"], found["left"]["outbox"]) == (1, [])


DATES = [
    "",
    "x",
    "Wed, xx Jul 2026",
    "Wed, -5 Jul 2026",
    "Wed, 22 Jul x",
    "Wed, 22 Jul 2-0-2",
    "Wed, 22 Jum 2026",
]


def test_odd_collector_answers_do_not_crash_board(tmp_path):
    """An invalid date is ignored: the report keeps waiting, as after any answer that settles nothing."""
    parts = [{"type": one} for one in ODD] + [{"digest": one} for one in ODD]
    texts = [
        json.dumps({"type": "urn:ldpkit:problem:report-invalid", "digest": STUDY.digest, **one})
        for one in parts
    ]
    receipts = [json.dumps({"id": one, "result": two}) for one in ODD for two in ("stored", ANOTHER)]
    trials = [{"script": ["well", *[f"says {one}" for one in some]]} for some in (texts, receipts)]
    for found in run_trials(tmp_path / "data", *trials):
        assert (found["stored"], found["later"]) == (1, [])
    closed = {"script": ["well", *["problem study-closed"] * 5], "days": [[2026, 6, 15], [2026, 7, 22]]}
    for found in run_trials(tmp_path / "data", *[{**closed, "date": date} for date in DATES]):
        assert (found["stored"], found["later"]) == (1, [])
