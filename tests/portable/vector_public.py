"""Studies with public fields, good and bad, and reports that carry values in clear."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.run_vectors import public_outcome, study_outcome
from tests.portable.vector_texts import GOLDEN

REGION = {"id": "region", "choices": ["north", "south"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "1"}
GOLDEN_TEXT = (GOLDEN / "studies" / "public-fields.json").read_text(encoding="utf-8")
WHOLE = json.loads(GOLDEN_TEXT)
GOOD = {"region": "north", "age": 42, "offset": "0.5", "ever": "yes", "occupation": "worker"}
CHANGED: dict[str, Any] = {
    "other-labels": {"region": 'Süd "am See"', "age": "18", "offset": 1.5},
    "beyond-the-basic-plane": {"region": "𝄞", "age": 99, "offset": "-75e-2"},
    "with-the-tickets-value": {"stratum": "b"},
    "zero": {"offset": 0},
    "another-spelling": {"age": "42.00"},
    "no-label": {"region": "North"},
    "no-text": {"region": 1},
    "below": {"age": 17},
    "above": {"age": 100},
    "off-the-grid": {"age": 42.5},
    "no-number": {"age": "old"},
    "a-blank": {"age": " 42"},
    "a-boolean": {"age": True},
    "nothing": {"age": None},
    "no-stratum": {"stratum": "c"},
}
# A value in tenths, and thousandths; whole numbers on a grid of ten thousands.
GRIDS = [
    {"id": "tenth", "bounds": ["-5", "100"], "step": "0.1"},
    {"id": "small", "bounds": ["0", "99.999"], "step": "0.001"},
    {"id": "large", "bounds": ["0", "1000000"], "step": "10000"},
]
ON_GRIDS = {"tenth": 8.2, "small": 12.345, "large": 50000}
FLOATS: dict[str, Any] = {
    "a-float": {},
    "a-sum-of-floats": {"tenth": 30 + 3 * 0.1, "small": 0.1 + 0.2},
    "a-negative-float": {"tenth": -4.9, "small": 99.999},
    "almost-nothing": {"tenth": 0.3 - 3 * 0.1},
    "a-float-beside-the-grid": {"tenth": 8.2003},
    "a-text-beside-the-grid": {"tenth": "8.199999999999999"},
    "a-whole-number-beside-the-grid": {"large": 50001},
    "a-float-above": {"small": 100.0005},
    "huge": {"large": 1e30},
}
BAD: dict[str, list[Any]] = {
    "none": [],
    "seventeen": [{**REGION, "id": f"f{number}"} for number in range(17)],
    "twice": [REGION, REGION],
    "a-question": [{**REGION, "id": "ever"}],
    "a-questions-column": [{**REGION, "id": "rating.age"}],
    "a-responses-column": [{**REGION, "id": "rating.rate"}],
    "one-choice": [{**REGION, "choices": ["one"]}],
    "same-choices": [{**REGION, "choices": ["one", "one"]}],
    "counted-choices": [{**REGION, "choices": {"count": 5}}],
    "unknown-source": [REGION, {**REGION, "id": "other", "source": "person"}],
    "both": [{**REGION, "bounds": ["0", "1"], "step": "1"}],
    "infinite": [{**AGE, "bounds": ["18", "Infinity"]}],
    "huge": [{**AGE, "bounds": ["18", "1e13"]}],
    "many-decimals": [{**AGE, "bounds": ["0.0000000001", "99"]}],
    "equal": [{**AGE, "bounds": ["18", "18"]}],
    "no-step": [{"id": "age", "bounds": ["18", "99"]}],
    "zero-step": [{**AGE, "step": "0"}],
    "step-of-many-decimals": [{**AGE, "step": "1e-10"}],
    "odd-step": [{**AGE, "step": "2"}],
    "tiny-step": [{**AGE, "step": "1e-7"}],
    "unknown-field": [{**REGION, "measure": "km"}],
    "long-text": [{**REGION, "text": "x" * 1001}],
}


def public_studies() -> Iterator[dict[str, Any]]:
    """The golden study, which is good, and others that are not."""
    texts = {"public-fields": GOLDEN_TEXT}
    for name, fields in BAD.items():
        document = studies.document(studies.YES_NO, studies.LINEAR, public=fields)
        texts[name] = json.dumps(document, separators=(",", ":"))
    for name, text in texts.items():
        yield {"name": name, "text": text, **study_outcome(text)}


def public_reports() -> Iterator[dict[str, Any]]:
    """Reports on the golden study, or the field that is refused; and one that draws a question."""
    cases = [("good", WHOLE, GOOD), *[(name, WHOLE, {**GOOD, **some}) for name, some in CHANGED.items()]]
    missing = {name: GOOD[name] for name in GOOD if name != "region"}
    cases += [("missing", WHOLE, missing), ("not-asked", WHOLE, {**GOOD, "height": "180"})]
    invited = {**WHOLE, "public": WHOLE["public"][-1:]}
    cases.append(("nothing-but-the-tickets", invited, {name: GOOD[name] for name in ("ever", "occupation")}))
    cases.append(("one-drawn", {**WHOLE, "sample_one_question": True}, GOOD))
    gridded = {**WHOLE, "public": GRIDS}
    private = {name: GOOD[name] for name in ("ever", "occupation")}
    cases += [(name, gridded, {**private, **ON_GRIDS, **some}) for name, some in FLOATS.items()]
    for name, document, answers in cases:
        entry = {"study": document, "answers": answers, "seed": name}
        yield {**entry, **public_outcome(entry)}
