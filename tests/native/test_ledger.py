"""The ledger in C: one answer, once, durable and within the budget, after kills and power losses."""

import json
from collections import deque
from random import Random

import pytest

from tests import studies
from tests.kit.programs import need
from tests.native.compiled import STUDIES, Device, Storage, library_of, source

ANSWERED, BUDGET, JOURNAL, ANSWER, STORAGE = -5, -6, -7, -1, -8


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    need("gcc")
    return library_of(STUDIES, tmp_path_factory.mktemp("studies"))


def device(core, storage, seed=1, epsilon=100, **more):
    started = Device(core, storage, source(seed), epsilon, **more)
    assert started.opened == 0
    return started


@pytest.fixture
def started(core):
    return device(core, Storage())


@pytest.mark.attack(4)
def test_question_is_answered_once(core, started):
    assert started.answer("first", [3.5, 1]) == 0
    assert started.answer("first", [3.5, 1]) == ANSWERED
    assert device(core, started.storage, 2).answer("first", [3.5, 1]) == ANSWERED
    assert started.answer("again", [3.5]) == ANSWERED
    assert started.answer("elsewhere", [3.5]) == 0
    assert len(started.parcels()) == 2


@pytest.mark.attack(4)
def test_permanent_answer_is_drawn_once(core, started):
    assert started.answer("first", [3.5, 1]) == 0
    spent = started.ledger.epsilon
    assert spent == 3 << 32
    assert started.answer("second", [0]) == 0
    assert started.ledger.epsilon == spent
    assert started.answer("second", [0]) == ANSWERED
    assert started.answer("other_noise", [0]) == ANSWERED
    assert started.answer("third", [0, 30.0]) == 0
    assert device(core, started.storage).ledger.epsilon == started.ledger.epsilon == 4 << 32


@pytest.mark.attack(4)
def test_instantaneous_answers_repeat_one_permanent_answer(core):
    """The second answer differs, and no report can tell: all reports come from the first."""
    shares = []
    for answer in (0, 1):
        told = 0
        for seed in range(200):
            started = device(core, Storage(), seed)
            assert started.answer("first", [3.5, 1]) == 0
            assert started.answer("second", [answer]) == 0
            report = json.loads(started.parcels()[1][2])
            told += report["payloads"][studies.MEMOIZED["id"]] == "AQ=="
        shares.append(told)
    assert shares[0] == shares[1]


@pytest.mark.attack(7)
def test_budget_holds(core):
    storage = Storage()
    started = device(core, storage, epsilon=3)
    assert started.answer("first", [3.5, 1]) == 0
    taken = len(storage.bytes)
    assert started.answer("elsewhere", [3.5]) == BUDGET
    assert len(storage.bytes) == taken
    assert device(core, storage, epsilon=50).answer("elsewhere", [3.5]) == BUDGET
    assert device(core, storage, epsilon=50, raised=1).answer("elsewhere", [3.5]) == 0
    assert device(core, storage, epsilon=4).answer("sampled", [3.5, 30.0]) == BUDGET


def test_sampled_study_costs_its_dearest_question(started):
    assert started.answer("sampled", [3.5, 30.0]) == 0
    assert started.ledger.epsilon == 2 << 32
    assert len(json.loads(started.parcels()[0][2])["payloads"]) == 1


def test_wrong_answer_spends_nothing(started):
    before = bytes(started.storage.bytes)
    assert started.answer("first", [float("nan"), 1]) == ANSWER
    assert started.answer("first", [3.5, 2]) == ANSWER
    assert (bytes(started.storage.bytes), started.ledger.epsilon) == (before, 0)
    assert started.answer("first", [3.5, 1]) == 0


def test_withdrawn_report_is_deleted_and_not_answered_again(core, started):
    assert started.answer("first", [3.5, 1]) == 0
    assert started.done() == 0
    assert started.parcels() == []
    assert started.answer("elsewhere", [3.5]) == 0
    assert started.withdraw("first") == 0
    again = device(core, started.storage)
    assert [withdrawn for _, withdrawn, _ in again.parcels()] == [1, 0]
    assert again.answer("second", [1]) == ANSWERED
    assert again.done() == 0
    assert [withdrawn for _, withdrawn, _ in again.parcels()] == [0]


@pytest.mark.parametrize("place", range(0, 400, 37))
def test_damaged_record_is_refused(core, started, place):
    """But not the last one: its damage looks like a loss of power."""
    assert started.answer("first", [3.5, 1]) == 0
    assert len(started.storage.bytes) > 400
    assert started.answer("elsewhere", [3.5]) == 0
    started.storage.bytes[place] ^= 1
    assert Device(core, started.storage, source(1)).opened == JOURNAL


def test_failed_append_closes_the_ledger(core, started):
    started.storage.fuse = 20
    assert started.answer("first", [3.5, 1]) == STORAGE
    started.storage.fuse = None
    assert started.answer("elsewhere", [3.5]) == STORAGE
    assert device(core, started.storage).answer("first", [3.5, 1]) == 0


STEPS = (
    lambda started: started.answer("first", [3.5, 1]),
    lambda started: started.answer("elsewhere", [3.5]),
    lambda started: started.answer("second", [1]),
    lambda started: started.withdraw("elsewhere"),
    lambda started: started.answer("third", [1, 30.0]),
)


def one_life(core, random, power):
    """Run a device that dies again and again. Return how often."""
    # sent: all bytes that ever left, by report.
    storage, sent, costs, deaths = Storage(), {}, 0, 0
    steps = list(STEPS)
    while True:
        storage.fuse = random.randint(0, 1500)
        started = Device(core, storage, source(random.getrandbits(64)))
        alive = started.opened == 0
        assert alive or started.opened == STORAGE
        if alive:
            # What left was paid for, and what was paid for never falls.
            assert started.ledger.epsilon >= costs
            costs = started.ledger.epsilon
        while alive:
            for name, _withdrawn, body in started.parcels():
                document = json.loads(body)
                assert sent.setdefault(name, body) == body
                assert document["id"] == name
                assert costs > 0
            if not steps:
                break
            result = steps[0](started)
            assert result in (0, ANSWERED, STORAGE)
            alive = result != STORAGE
            if alive:
                costs = started.ledger.epsilon
                steps.pop(0)
        if alive:
            break
        deaths += 1
        # After a kill the bytes are there, but not durable.
        if power and random.random() < 0.5:
            storage.lose_power(random)
    asked = [(json.loads(body)["study"], json.loads(body)["version"]) for body in sent.values()]
    assert len(asked) == len(set(asked))
    # first 3, elsewhere 1, third's age 1
    assert costs == 5 << 32
    return deaths


@pytest.mark.slow
@pytest.mark.attack(5)
@pytest.mark.parametrize("power", [False, True], ids=["kill", "power loss"])
def test_deaths_lose_no_report_and_no_spend(core, power):
    random, deaths = Random(5), 0
    while deaths < (1000 if power else 500):
        deaths += one_life(core, random, power)


FAULTS = {
    "no sync of a record": (" || journal->sync(journal->context)) {", ") {"),
    "bytes that were cut off stay": ("if (!result && cut) result", "if (0) result"),
    "no checksum": ("return ldp_from_big(chunk, CHECK_BYTES) == crc ? head[2] : 0;", "return head[2];"),
    "the spend is not added up": ("ledger->epsilon += ldp_from_big(given.fixed + 20, 8);", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_faulty_ledger_is_detected(name, tmp_path):
    need("gcc")
    core, random = library_of(STUDIES, tmp_path, ("ledger.c", *FAULTS[name])), Random(6)
    with pytest.raises((AssertionError, ValueError)):
        deque((one_life(core, random, power=True) for _ in range(40)), maxlen=0)
