"""The core in C: vectors, which find faults, bad sources of randomness, and secrets in memory."""

import ctypes
import itertools
import os
import random as simulated
import runpy
import signal
import tomllib
from pathlib import Path

import pytest

from conformance.native import CHOICE, CORE, FILL, RANDOM_BYTES, Port, Value, compiled, table_of
from conformance.run import cases
from ldp_client.documents.study import Study
from tests import studies
from tests.kit.programs import need
from tests.native.compiled import sources_in
from tests.native.vectors_in_c import NOT_IN_C

SHORT, BROKEN, MEMORY = -2, -3, -4
POOL = 1024


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    need("gcc")
    return Port(compiled(tmp_path_factory.mktemp("core")))


@pytest.fixture(scope="module")
def asked():
    return list(cases())


def test_core_passes_every_vector(port, asked):
    failed, unsupported = [], set()
    for case, expected in asked:
        answer = port.answer(case)
        if answer == {"unsupported": True}:
            unsupported.add(case["case"].split()[0])
        elif answer != expected:
            failed.append(case["case"])
    assert failed == []
    assert unsupported == NOT_IN_C


# (file, name of the vectors, behaviour, before, after)
FAULTS = [
    (file, name, behaviour, *texts)
    for file, by_name in tomllib.loads(Path(__file__).with_name("faults.toml").read_text()).items()
    for name, faults in by_name.items()
    for behaviour, texts in faults.items()
]
# A fault may loop or crash.
SECONDS = 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name", "behaviour", "before", "after"), FAULTS, ids=[fault[2] for fault in FAULTS]
)
def test_faulty_core_fails_a_vector(file, name, behaviour, before, after, port, asked, tmp_path):
    pairs = [(case, expected) for case, expected in asked if case["case"].split()[0] == name]
    assert all(port.answer(case) == expected for case, expected in pairs)
    library = compiled(tmp_path, sources_in(tmp_path / "core", file, before, after), ("-std=c99", "-w"))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS)
            faulty = Port(library)
            faulty.tables = port.tables
            status = int(any(faulty.answer(case) != expected for case, expected in pairs))
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] != 0, behaviour


def test_tables_come_from_python():
    script = runpy.run_path(str(CORE / "make_tables.py"))
    assert (CORE / "tables.c").read_text() == script["render"]()


class Source:
    """A callback over an endless iterator of bytes; `lacking` bytes are missing from each call."""

    def __init__(self, stream, lacking=0):
        self.stream, self.lacking, self.given = iter(stream), lacking, b""
        self.fill = FILL(self._fill)

    def _fill(self, _context, out, size):
        fresh = bytes(itertools.islice(self.stream, size))
        self.given += fresh
        ctypes.memmove(out, fresh, size)
        return size - self.lacking


def begun(port, source):
    state = (ctypes.c_ubyte * RANDOM_BYTES)()
    return state, port.core.ldp_random_begin(state, source.fill, None)


def fresh_bytes(seed=1):
    return iter(simulated.Random(seed).randbytes(64 * POOL))


def drawn(port, state, answer=0):
    table = table_of(Study(studies.document(studies.YES_NO)).questions[0])
    payload = (ctypes.c_ubyte * 1)(7)
    value = Value(CHOICE, answer, 0)
    return port.core.ldp_draw(ctypes.byref(table), ctypes.byref(value), state, None, payload), payload[0]


def biased():
    """Bytes of which every 16th is the same."""
    for index, byte in enumerate(fresh_bytes()):
        yield 65 if index % 16 == 9 else byte


def later(*given):
    """A source that is good at its start alone."""
    return lambda: itertools.chain(simulated.Random(2).randbytes(POOL), *given, fresh_bytes(3))


# {source: (its bytes, how many each call lacks, what the start gives, what a draw gives)}
BAD = {
    "zeros": (lambda: itertools.repeat(0), 0, BROKEN, BROKEN),
    "counter": (lambda: itertools.cycle(range(256)), 0, BROKEN, BROKEN),
    "period of 300": (lambda: itertools.cycle([*fresh_bytes()][:300]), 0, BROKEN, BROKEN),
    "one byte too often": (biased, 0, BROKEN, BROKEN),
    "one byte less": (fresh_bytes, 1, SHORT, SHORT),
    "more bytes than asked": (fresh_bytes, -1, SHORT, SHORT),
    "run of 9 bytes later": (later(b"\x07" * 9), 0, 0, BROKEN),
    "27 of a window later": (later(*(bytes([5, byte]) for byte in range(100, 127))), 0, 0, BROKEN),
}


@pytest.mark.attack(3)
@pytest.mark.parametrize("name", BAD)
def test_bad_source_is_refused(port, name):
    stream, lacking, start, draw = BAD[name]
    state, result = begun(port, Source(stream(), lacking))
    assert (result, drawn(port, state)) == (start, (draw, 0))


@pytest.mark.attack(3)
def test_source_that_repeats_its_calls_is_refused(port):
    first, second = (simulated.Random(seed).randbytes(POOL) for seed in (1, 2))
    state, result = begun(port, Source(itertools.chain(first, itertools.cycle(second))))
    assert result == 0
    results = [drawn(port, state)[0] for _ in range(POOL // 8 + 1)]
    assert (results[:-1], results[-1]) == ([0] * (POOL // 8), BROKEN)


def test_read_bytes_leave_the_pool(port):
    source = Source(fresh_bytes())
    state, result = begun(port, source)
    assert result == 0
    assert source.given[:16] not in bytes(state)
    assert drawn(port, state)[0] == 0
    assert source.given[POOL : POOL + 8] not in bytes(state)
    assert source.given[POOL + 8 : POOL + 24] in bytes(state)
    port.core.ldp_random_end(state)
    assert source.given[POOL + 8 : POOL + 24] not in bytes(state)
    assert drawn(port, state) == (SHORT, 0)


@pytest.mark.attack(3)
def test_memoized_question_has_no_direct_draw(port):
    table = table_of(Study(studies.document(studies.MEMOIZED)).questions[0])
    state, _ = begun(port, Source(fresh_bytes()))
    value, payload = Value(CHOICE, 1, 0), (ctypes.c_ubyte * 1)()
    assert port.core.ldp_draw(ctypes.byref(table), ctypes.byref(value), state, None, payload) == MEMORY


def test_pooled_bytes_give_the_same_payloads_as_recorded_bytes(port):
    source = Source(fresh_bytes())
    state, _ = begun(port, source)
    pooled = [drawn(port, state, index % 2) for index in range(300)]
    recorded = Source(source.given[POOL:])
    port.core.ldp_random_begin_recorded(state, recorded.fill, None)
    assert pooled == [drawn(port, state, index % 2) for index in range(300)]
