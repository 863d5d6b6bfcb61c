"""Only the system's generator makes a report, unless a test or a simulation says that it passes another.

The promise about the system's generator tries unfit sources through every way in.
"""

import json

import pytest

from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers, uniform_below
from ldp_client.documents.errors import RandomnessError
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT
from tests.statistics import seeded

STUDY = Study(studies.document(studies.NUMBER))


@pytest.mark.attack(3)
def test_broken_random_source_makes_no_report():
    """Have an app pass a source that is broken, or whose bytes can be predicted."""
    sound, hours = seeded("sound").source, mechanism_for(STUDY.questions[0])
    for broken in (
        sound,
        NotForRealAnswers(lambda size: sound(size + 1)),
        NotForRealAnswers(lambda size: "x" * size),
        NotForRealAnswers(lambda size: list(sound(size))),
    ):
        with pytest.raises(RandomnessError):
            hours.perturb(3, broken)
        with pytest.raises(RandomnessError):
            perturb_many(hours, [3] * 3, broken)


def test_uniform_integers_are_drawn_again_beyond_the_last_whole_round():
    """2**32 is 1 more than a multiple of 3: the last word would make 0 too likely."""
    words = iter([b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"])
    assert uniform_below(3, NotForRealAnswers(lambda _size: next(words))) == 2


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
