"""A source of random bytes that is short, stuck, biased or a simulator's is used for an answer.

The device must refuse all of these before it makes a report, in Python, in bulk and in JavaScript.
"""

import functools
import hashlib
import itertools
import json
import math
import os
import random
import secrets
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.core import randomness
from ldp_client.core.randomness import PROPORTION_CUTOFF, REPETITION_CUTOFF, WINDOW, NotForRealAnswers
from ldp_client.documents.errors import RandomnessError
from ldp_client.mechanisms import mechanism_for
from ldp_client.mechanisms.memoized import Remembering
from ldp_client.secure_sum.messages import split
from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

STUDY = Study(studies.document(*studies.ALL, *studies.NEWER))
ANSWERS = {**studies.ANSWERS, **studies.NEWER_ANSWERS}
MECHANISMS = {question.id: mechanism_for(question) for question in STUDY.questions}
MEMOIZED = {name for name, mechanism in MECHANISMS.items() if hasattr(mechanism, "permanent")}
AT_ONCE = Study(
    studies.document(*[asked for asked in (*studies.ALL, *studies.NEWER) if asked["id"] not in MEMOIZED])
)


def of_one_person():
    """Memoized mechanisms with a memory in which nothing is kept yet: without one no report is made."""
    return {name: Remembering(m, None) if name in MEMOIZED else m for name, m in MECHANISMS.items()}


def mostly_seven(size):
    return bytes(7 if byte < 64 else byte for byte in os.urandom(size))


class Breaking:
    """Sound for a while, then stuck."""

    def __init__(self):
        self.left = 5000

    def __call__(self, size):
        self.left -= size
        return os.urandom(size) if self.left > 0 else bytes(size)


BROKEN = {
    "short": lambda size: os.urandom(size)[:-1],
    "none": lambda _size: b"",
    "long": lambda size: os.urandom(size + 1),
    "text": lambda size: "x" * size,
    "list": lambda size: list(os.urandom(size)),
    "zeros": bytes,
    "ones": lambda size: b"\xff" * size,
    "biased": mostly_seven,
    "restarted": lambda size: hashlib.shake_128(b"seed").digest(size),
    "getrandbits": random.getrandbits,
    "randbytes": random.randbytes,
    "seeded": random.Random(3).randbytes,
    "partial": functools.partial(random.Random(3).randbytes),
    "random": random.random,
    "numpy": np.random.default_rng(1).bytes,
    "numpy's old": np.random.RandomState(1).bytes,
    "numpy's own": np.random.bytes,
}


def ways(source):
    """Every way in for a source, as a function without arguments."""
    for name, m in MECHANISMS.items():
        yield lambda m=m, name=name: m.perturb(ANSWERS[name], source)
        yield lambda m=m, name=name: m.randomise(m.quantise(ANSWERS[name]), source)
        if name not in MEMOIZED:
            yield lambda m=m, name=name: perturb_many(m, [ANSWERS[name]] * 3, source)
    yield lambda: perturb_answers(STUDY, of_one_person(), ANSWERS, source)
    yield lambda: split(bytes(16), 2, "chacha20", source)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_random_source_makes_no_report(name):
    for way in ways(BROKEN[name]):
        with pytest.raises(RandomnessError):
            way()


def test_source_that_breaks_later_stays_rejected():
    source, m = Breaking(), MECHANISMS["hours"]
    source.left = 10**6
    for _ in range(300):
        m.perturb(3, source)
    source.left = 0
    with pytest.raises(RandomnessError):
        m.perturb(3, source)
    source.left = 10**6
    with pytest.raises(RandomnessError):
        m.perturb(3, source)


@pytest.mark.parametrize("others", [False, True])
def test_source_that_failed_at_start_stays_rejected(others):
    """A source that returned zeros at its start may still be partly broken."""
    left, m = [1100], MECHANISMS["hours"]

    def starting(size):
        left[0] -= size
        return os.urandom(size) if left[0] < 0 else bytes(size)

    for _ in range(4):
        with pytest.raises(RandomnessError):
            m.perturb(3, starting)
        if others:
            m.perturb(3, secrets.token_bytes)


def test_source_that_failed_stays_rejected_despite_other_threads():
    asked, m = [], MECHANISMS["hours"]

    def broken_at_first(size):
        asked.append(size)
        m.perturb(3, secrets.token_bytes)
        return bytes(size) if len(asked) < 3 else os.urandom(size)

    for _ in range(4):
        with pytest.raises(RandomnessError):
            m.perturb(3, broken_at_first)


@pytest.mark.parametrize("source", [os.urandom, secrets.token_bytes, random.SystemRandom().randbytes])
def test_sound_random_sources_pass(source):
    for _ in range(300):
        perturb_answers(STUDY, of_one_person(), ANSWERS, source)


def test_recorded_bytes_need_explicit_wrapper_and_exact_length():
    m = MECHANISMS["hours"]
    assert m.words(m.perturb(12, NotForRealAnswers(bytes))) == [m.levels]
    with pytest.raises(RandomnessError):
        m.perturb(12, NotForRealAnswers(lambda size: bytes(size - 1)))


def test_health_test_cutoffs_have_the_stated_false_alarm_rate():
    assert 256.0 ** -(REPETITION_CUTOFF - 1) <= 2.0**-64
    counts = range(PROPORTION_CUTOFF - 2, WINDOW)

    def chance(least):
        ways = sum(math.comb(WINDOW - 1, n) * 255 ** (WINDOW - 1 - n) for n in range(least, WINDOW))
        return Fraction(ways, 256 ** (WINDOW - 1))

    assert chance(counts[1]) <= 2.0**-64 < chance(counts[0])


@pytest.mark.parametrize("step", [1, 3, 12, 700, 1500])
@pytest.mark.parametrize("start", range(0, 40, 7))
def test_health_test_cutoffs_are_exact_for_every_read_size(step, start):
    """A run of one byte less than the cutoff passes, one at the cutoff does not; the same for counts."""
    ground = bytes(itertools.islice(itertools.cycle(range(256)), 4096))

    def verdict(content):
        health = randomness.Health.__new__(randomness.Health)
        health._last, health._window, health.problem, health._is_started = b"", b"", "", True
        places = iter(range(0, len(content), step))
        health.source = lambda _size: content[(at := next(places)) : at + step]
        try:
            for _ in range(len(content) // step):
                health.read(step)
        except RandomnessError:
            return False
        return True

    for length, passes in ((REPETITION_CUTOFF - 1, True), (REPETITION_CUTOFF, False)):
        place = 1000 + start
        run = bytes([ground[place - 1] ^ 128]) * length
        assert verdict(ground[:place] + run + ground[place + length :]) == passes
    for count, passes in ((PROPORTION_CUTOFF - 1, True), (PROPORTION_CUTOFF, False)):
        window = bytearray(byte or 1 for byte in ground[:WINDOW])
        window[0 : 2 * count : 2] = bytes(count)
        assert verdict(bytes(window) + ground) == passes


JAVASCRIPT_ATTACK = """
const {{ mechanismFor, parseStudy }} = await import("{port}");
const perturbAnswers = await (await import("{perturbing}")).perturbingBy("{port}");
globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const study = await parseStudy({text});
const atOnce = await parseStudy({at_once});
const answers = {answers};
const some = Object.fromEntries(atOnce.questions.map((asked) => [asked.id, answers[asked.id]]));
const sources = [
  () => Math.random(),
  Math.random,
  (size) => Uint8Array.from({{ length: size }}, () => 256 * Math.random()),
  (size) => new Uint8Array(size),
  (size) => new Uint8Array(size - 1),
  Object.assign((size) => new Uint8Array(size - 1), {{ forTests: true }}),
  null,
];
let made = 0;
for (const source of sources) {{
  for (const asked of study.questions) {{
    try {{ mechanismFor(asked).perturb(answers[asked.id], source); made++; }} catch {{}}
  }}
  try {{ await perturbAnswers(atOnce, some, source); made++; }} catch {{}}
}}
for (const asked of study.questions) mechanismFor(asked).perturb(answers[asked.id]);
await perturbAnswers(atOnce, some);
console.log(made);
"""


def test_javascript_accepts_only_the_browsers_random_source():
    script = JAVASCRIPT_ATTACK.format(
        port=(JAVASCRIPT / "index.js").as_uri(),
        perturbing=npm.PERTURBING.as_uri(),
        text=json.dumps(STUDY.to_json()),
        at_once=json.dumps(AT_ONCE.to_json()),
        answers=json.dumps(ANSWERS),
    )
    assert npm.node("--input-type=module", "-e", script).strip() == "0"
