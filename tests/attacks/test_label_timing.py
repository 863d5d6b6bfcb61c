"""The number of steps that it takes to find a label among many reveals the label."""

import json
import os
from typing import ClassVar

import pytest

from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT
from tests.kit.clocks import InstructionClock

LABELS = [f"label {number:05}" for number in range(10_000)]
LONG = {**studies.CHOICE, "choices": LABELS, "mechanism": {"name": "randomized_response", "epsilon": "1"}}
NUMBERED = {**LONG, "choices": {"count": 1_000_000}}


def steps(mechanism, answer):
    with InstructionClock() as clock:
        mechanism.quantise(answer)
    return clock.count


def asked(question):
    return mechanism_for(Study(studies.document(question)).questions[0])


def test_every_label_is_found_in_the_same_number_of_steps():
    mechanism = asked(LONG)
    places = [0, 1, 2, 4095, 4096, 8191, 8192, 9998, 9999]
    assert [mechanism.quantise(LABELS[place]) for place in places] == places
    assert len({steps(mechanism, LABELS[place]) for place in places}) == 1
    assert len({steps(asked(NUMBERED), text) for text in ("7", "42", "999999", "0000000")}) == 1


def test_lookup_steps_do_not_depend_on_length_or_spelling():
    labels = ["a", "a" * 200, "a" * 199 + "b", "𝄞" * 200, *["z" * n for n in range(2, 90)]]
    mechanism = asked({**LONG, "choices": labels})
    assert [mechanism.quantise(label) for label in labels] == list(range(len(labels)))
    assert len({steps(mechanism, label) for label in labels}) == 1


@pytest.mark.parametrize(
    "wrong", ["", "label", "label 00000\0", "\ud800", "x" * 5000, 3, None, b"label 00000"]
)
def test_unknown_label_is_refused(wrong):
    with pytest.raises(AnswerError):
        asked(LONG).quantise(wrong)


class Place(int):
    """A choice that notes how far anything is shifted by it."""

    shifts: ClassVar[list[int]] = []

    def __rlshift__(self, value):
        self.shifts.append(int(self))
        return value << int(self)


@pytest.mark.parametrize("name", ["oue", "sue", "subset_selection"])
def test_randomiser_does_not_shift_by_the_position_of_the_answer(name):
    """Python takes longer to calculate with integers shifted by a large number of bits."""
    mechanism = asked({**LONG, "mechanism": {"name": name, "epsilon": "1"}})
    Place.shifts.clear()
    mechanism.randomise(Place(9999), os.urandom)
    assert max(Place.shifts, default=0) < 8


COUNTED = """
const {{ mechanismFor, parseStudy }} = await import("{port}");
const [asked] = (await parseStudy({text})).questions;
const labels = asked.choices;
let looks = 0;
const counting = {{ get: (target, name) => (looks++, target[name]) }};
const mechanism = mechanismFor({{ ...asked, choices: new Proxy(labels, counting) }});
function looksFor(label) {{
  looks = 0;
  mechanism.quantise(label);
  return looks;
}}
console.log(JSON.stringify([labels[0], labels[500], labels.at(-1)].map(looksFor)));
"""


def test_javascript_compares_equally_many_labels_for_any_answer():
    text = json.dumps(json.dumps(studies.document({**LONG, "choices": LABELS[:1000]})))
    script = COUNTED.format(port=JAVASCRIPT / "index.js", text=text)
    looks = json.loads(npm.node("--input-type=module", "-e", script))
    assert len(set(looks)) == 1
    assert looks[0] < 10
