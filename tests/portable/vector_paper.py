"""Studies that are also asked on paper, good and bad: every device takes or refuses the same ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.run_vectors import study_outcome
from tests.portable.vector_texts import GOLDEN

FORCED = [["5/6", "1/6"], ["1/6", "5/6"]]
EVER = {"id": "ever", "instructions": "Roll a die.", "matrix": FORCED}
COUNTED = {**studies.ONE_OF, "id": "counted", "choices": {"count": 3}}
GOOD: dict[str, dict[str, Any]] = {
    "decimals": {"questions": [{**EVER, "matrix": [["0.75", "2.5e-1"], ["1/4", "75e-2"]]}]},
    "never": {"questions": [{**EVER, "matrix": [["0", "1"], ["1/2", "1/2"]]}]},
    "thirds": {
        "questions": [{**EVER, "reports": ["a", "b", "c"], "matrix": [["1/3"] * 3, ["0", "0.5", "1/2"]]}]
    },
    "three-answers": {
        "questions": [
            {
                **EVER,
                "id": "colour",
                "matrix": [["2/4", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "1/2"]],
            }
        ]
    },
}
BAD: dict[str, Any] = {
    "nothing": None,
    "a-list": [EVER],
    "empty": {},
    "no-questions": {"questions": []},
    "unknown-field": {"questions": [EVER], "dice": 2},
    "twice": {"questions": [EVER, EVER]},
    "not-asked": {"questions": [{**EVER, "id": "never"}]},
    "a-number": {"questions": [{**EVER, "id": "hours"}]},
    "counted-choices": {"questions": [{**EVER, "id": "counted"}]},
    "without-instructions": {"questions": [{"id": "ever", "matrix": FORCED}]},
    "blank-instructions": {"questions": [{**EVER, "instructions": ""}]},
    "three-rows": {"questions": [{**EVER, "matrix": [*FORCED, ["1/2", "1/2"]]}]},
    "three-columns": {"questions": [{**EVER, "matrix": [["1/3"] * 3, ["1/6", "5/6"]]}]},
    "fewer-reports": {"questions": [{**EVER, "reports": ["a", "b", "c"]}]},
    "same-reports": {"questions": [{**EVER, "reports": ["a", "a"]}]},
    "not-one": {"questions": [{**EVER, "matrix": [["5/6", "1/6"], ["0.333", "0.666"]]}]},
    "says-nothing": {"questions": [{**EVER, "matrix": [["1/2", "1/2"], ["0.5", "2/4"]]}]},
    "above-one": {"questions": [{**EVER, "matrix": [["7/6", "1/6"], ["1/6", "5/6"]]}]},
    "below-zero": {"questions": [{**EVER, "matrix": [["-0.5", "1.5"], ["1/6", "5/6"]]}]},
    "by-zero": {"questions": [{**EVER, "matrix": [["1/0", "1/6"], ["1/6", "5/6"]]}]},
    "negative-fraction": {"questions": [{**EVER, "matrix": [["-1/6", "1/6"], ["1/6", "5/6"]]}]},
    "many-digits": {"questions": [{**EVER, "matrix": [["1/1234567890", "1/6"], ["1/6", "5/6"]]}]},
    "a-blank": {"questions": [{**EVER, "matrix": [["5 /6", "1/6"], ["1/6", "5/6"]]}]},
    "other-digits": {"questions": [{**EVER, "matrix": [["٥/٦", "1/6"], ["1/6", "5/6"]]}]},
    "a-number-of-json": {"questions": [{**EVER, "matrix": [[0.5, 0.5], ["1/6", "5/6"]]}]},
}


def paper_studies() -> Iterator[dict[str, Any]]:
    """The golden study, which is good, and others that are good or not."""
    texts = {"paper": (GOLDEN / "studies" / "paper.json").read_text(encoding="utf-8")}
    asked = (studies.YES_NO, studies.NUMBER, studies.ONE_OF, COUNTED)
    for name, paper in {**GOOD, **BAD}.items():
        texts[name] = json.dumps(studies.document(*asked, paper=paper), separators=(",", ":"))
    one = studies.document(*asked[:2], paper={"questions": [EVER]}, sample_one_question=True)
    texts["one-asked"] = json.dumps(one, separators=(",", ":"))
    for name, question in {"memoized": studies.MEMOIZED, "memoized-choice": studies.MEMOIZED_BITS}.items():
        labels = question.get("choices", [False, True])
        even = [
            [f"{1 + (row == column)}/{len(labels) + 1}" for column in range(len(labels))]
            for row in range(len(labels))
        ]
        paper = {"questions": [{**EVER, "id": question["id"], "matrix": even}]}
        texts[name] = json.dumps(
            studies.document(studies.YES_NO, question, paper=paper), separators=(",", ":")
        )
    for name, text in texts.items():
        yield {"name": name, "text": text, **study_outcome(text)}
