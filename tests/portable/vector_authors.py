"""Studies whose models, priors or paper are good or bad. Devices read all; authors refuse the bad ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from schemas import Study, StudyError
from tests import studies
from tests.portable.run_vectors import study_outcome
from tests.portable.vector_channels import tokens
from tests.portable.vector_texts import GOLDEN, OF_AUTHORS, bad_studies

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
    "a-number-of-json": {"questions": [{**EVER, "matrix": [[0, 1], ["1/6", "5/6"]]}]},
}


OFFERED = {**studies.YES_NO, "refusal": True}
OFFERED_NUMBER = {**studies.NUMBER, "refusal": {"share": "0.5"}}
REFUSED = {"refused": {"distribution": "beta", "a": "1", "b": "9"}}
OF_YES_NO = {"model": {"name": "bernoulli", "prior": REFUSED}}
OF_NUMBER = {"model": {"name": "exponential", "prior": REFUSED}}
OTHER = {**studies.YES_NO, "id": "habit"}
OTHERS: dict[str, dict[str, Any]] = {
    "one-asked": studies.document(
        studies.YES_NO, studies.NUMBER, paper={"questions": [EVER]}, sample_one_question=True
    ),
    "refusal-beside-paper": studies.document(OFFERED, OTHER, paper={"questions": [{**EVER, "id": "habit"}]}),
    "refusal-on-paper": studies.document(OFFERED, paper={"questions": [EVER]}),
    "prior-of-refusal": studies.document({**OFFERED, **OF_YES_NO}),
    "prior-of-no-refusal": studies.document({**studies.YES_NO, **OF_YES_NO}),
    "prior-of-a-numbers-refusal": studies.document({**OFFERED_NUMBER, **OF_NUMBER}),
    "prior-of-a-numbers-no-refusal": studies.document({**studies.NUMBER, **OF_NUMBER}),
    "tokens-on-paper": studies.document(studies.YES_NO, channel=tokens(), paper={"questions": [EVER]}),
    "batches-on-paper": studies.document(
        studies.YES_NO, channel={"batches": {"hours": 24}}, paper={"questions": [EVER]}
    ),
    "no-model": studies.document({name: studies.YES_NO[name] for name in studies.YES_NO if name != "model"}),
    "id-like-a-field": studies.document(studies.LINEAR, {**studies.YES_NO, "id": "rating.other"}),
    "model-of-another-program": studies.document(
        {**studies.YES_NO, "model": {"name": "é", "of": [[], {}, True, -1, (1 << 53) - 1]}}
    ),
}


def author_studies() -> Iterator[dict[str, Any]]:
    """Each study with what devices make of it, and the field that its author must change."""
    texts = {"paper": (GOLDEN / "studies" / "paper.json").read_text(encoding="utf-8")}
    texts |= {name: json.dumps(document) for name, document in _documents().items()}
    texts |= {name: text for name, text in bad_studies().items() if name in OF_AUTHORS}
    for name, text in texts.items():
        yield {"name": name, "text": text, **study_outcome(text), **author_outcome(text)}


def _documents() -> dict[str, Any]:
    asked = (studies.YES_NO, studies.NUMBER, studies.ONE_OF, COUNTED)
    documents = {
        f"paper-{name}": studies.document(*asked, paper=paper) for name, paper in {**GOOD, **BAD}.items()
    }
    for name, question in {"memoized": studies.MEMOIZED, "memoized-choice": studies.MEMOIZED_BITS}.items():
        labels = question.get("choices", [False, True])
        even = [
            [f"{1 + (row == column)}/{len(labels) + 1}" for column in range(len(labels))]
            for row in range(len(labels))
        ]
        paper = {"questions": [{**EVER, "id": question["id"], "matrix": even}]}
        documents[name] = studies.document(studies.YES_NO, question, paper=paper)
    return documents | OTHERS


def author_outcome(text: str) -> dict[str, str]:
    """The field of a study that its author must change; nothing of a good study."""
    try:
        Study.from_json(text)
    except StudyError as error:
        return {"author_refused": error.field}
    return {}
