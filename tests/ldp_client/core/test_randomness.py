"""A source of random bytes that is short, stuck, biased or a simulator's makes no report.

The promise about the system's generator tries unfit sources through every way in.
"""

import functools
import itertools
import json
import math
import os
import random
import secrets
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.bulk import perturb_many
from ldp_client.core import randomness
from ldp_client.core.randomness import (
    PROPORTION_CUTOFF,
    REPETITION_CUTOFF,
    WINDOW,
    NotForRealAnswers,
    uniform_below,
)
from ldp_client.documents.errors import RandomnessError
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT
from tests.statistics import seeded

STUDY = Study(studies.document(studies.NUMBER))
HOURS = mechanism_for(STUDY.questions[0])
SOUND = seeded("sound").source


def mostly_seven(size):
    return bytes(7 if byte < 64 else byte for byte in SOUND(size))


BROKEN = {
    "long": lambda size: SOUND(size + 1),
    "text": lambda size: "x" * size,
    "list": lambda size: list(SOUND(size)),
    "ones": lambda size: b"\xff" * size,
    "biased": mostly_seven,
    "getrandbits": random.getrandbits,
    "partial": functools.partial(random.Random(3).randbytes),
    "random": random.random,
    "RandomState": np.random.RandomState(1).bytes,
    "NumPy's own": np.random.bytes,
}


@pytest.mark.attack(3)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_random_source_makes_no_report(name):
    """Have an app pass a source that is broken, or whose bytes can be predicted."""
    for way in (lambda: HOURS.perturb(3, BROKEN[name]), lambda: perturb_many(HOURS, [3] * 3, BROKEN[name])):
        with pytest.raises(RandomnessError):
            way()


@pytest.mark.attack(3)
def test_source_that_breaks_later_stays_rejected():
    """Use a source that was sound for a while, and that recovers after it was stuck."""
    left = [10**6]

    def breaking(size):
        left[0] -= size
        return SOUND(size) if left[0] > 0 else bytes(size)

    for _ in range(50):
        HOURS.perturb(3, breaking)
    for remaining in (0, 10**6):
        left[0] = remaining
        with pytest.raises(RandomnessError):
            HOURS.perturb(3, breaking)


@pytest.mark.entropy
@pytest.mark.parametrize("source", [os.urandom, secrets.token_bytes, random.SystemRandom().randbytes])
def test_sound_random_sources_pass(source):
    for _ in range(100):
        HOURS.perturb(3, source)


def test_recorded_bytes_need_explicit_wrapper_and_exact_length():
    assert HOURS.words(HOURS.perturb(12, NotForRealAnswers(bytes))) == [HOURS.levels]
    with pytest.raises(RandomnessError):
        HOURS.perturb(12, NotForRealAnswers(lambda size: bytes(size - 1)))


def test_uniform_integers_are_drawn_again_beyond_the_last_whole_round():
    """2**32 is 1 more than a multiple of 3: the last word would make 0 too likely."""
    words = iter([b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"])
    assert uniform_below(3, NotForRealAnswers(lambda _size: next(words))) == 2


def test_health_test_cutoffs_have_the_stated_false_alarm_rate():
    assert 256.0 ** -(REPETITION_CUTOFF - 1) <= 2.0**-64
    counts = range(PROPORTION_CUTOFF - 2, WINDOW)

    def chance(least):
        ways = sum(math.comb(WINDOW - 1, n) * 255 ** (WINDOW - 1 - n) for n in range(least, WINDOW))
        return Fraction(ways, 256 ** (WINDOW - 1))

    assert chance(counts[1]) <= 2.0**-64 < chance(counts[0])


@pytest.mark.parametrize(("step", "start"), [(1, 0), (3, 7), (12, 14), (700, 21), (1500, 35)])
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
const [port, perturbing, text] = process.argv.slice(1);
globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const { mechanismFor, parseStudy } = await import(port);
const perturbAnswers = await (await import(perturbing)).perturbingBy(port);
const study = await parseStudy(text);
const sources = [
  () => Math.random(),
  Math.random,
  (size) => Uint8Array.from({ length: size }, () => 256 * Math.random()),
  (size) => new Uint8Array(size),
  Object.assign((size) => new Uint8Array(size - 1), { forTests: true }),
  null,
];
let made = 0;
for (const source of sources) {
  try { mechanismFor(study.questions[0]).perturb(3, source); made++; } catch {}
  try { await perturbAnswers(study, { hours: 3 }, source); made++; } catch {}
}
await perturbAnswers(study, { hours: 3 });
console.log(made);
"""


@pytest.mark.slow
@pytest.mark.needs("node")
@pytest.mark.attack(3)
def test_javascript_accepts_only_the_browsers_random_source():
    """Have a page pass Math.random, or another source than the browser's own."""
    places = (JAVASCRIPT / "index.js").as_uri(), npm.PERTURBING.as_uri(), json.dumps(STUDY.document)
    assert npm.node("--input-type=module", "-e", JAVASCRIPT_ATTACK, *places).strip() == "0"
