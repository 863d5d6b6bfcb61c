"""Studies whose models or priors are good or bad. Devices read all; authors refuse the bad ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from schemas import Study, StudyError
from tests import studies
from tests.portable.run_vectors import study_outcome
from tests.portable.vector_texts import OF_AUTHORS, bad_studies

OFFERED = {**studies.YES_NO, "refusal": True}
OFFERED_NUMBER = {**studies.NUMBER, "refusal": {"share": "0.5"}}
REFUSED = {"refused": {"distribution": "beta", "a": "1", "b": "9"}}
OF_YES_NO = {"model": {"name": "bernoulli", "prior": REFUSED}}
OF_NUMBER = {"model": {"name": "exponential", "prior": REFUSED}}
OTHERS: dict[str, dict[str, Any]] = {
    "prior-of-refusal": studies.document({**OFFERED, **OF_YES_NO}),
    "prior-of-no-refusal": studies.document({**studies.YES_NO, **OF_YES_NO}),
    "prior-of-a-numbers-refusal": studies.document({**OFFERED_NUMBER, **OF_NUMBER}),
    "prior-of-a-numbers-no-refusal": studies.document({**studies.NUMBER, **OF_NUMBER}),
    "no-model": studies.document({name: studies.YES_NO[name] for name in studies.YES_NO if name != "model"}),
    "id-like-a-field": studies.document(studies.LINEAR, {**studies.YES_NO, "id": "rating.other"}),
    "model-of-another-program": studies.document(
        {**studies.YES_NO, "model": {"name": "é", "of": [[], {}, True, -1, (1 << 53) - 1]}}
    ),
}


def author_studies() -> Iterator[dict[str, Any]]:
    """Each study with what devices make of it, and the field that its author must change."""
    texts = {name: json.dumps(document) for name, document in OTHERS.items()}
    texts |= {name: text for name, text in bad_studies().items() if name in OF_AUTHORS}
    for name, text in texts.items():
        yield {"name": name, "text": text, **study_outcome(text), **author_outcome(text)}


def author_outcome(text: str) -> dict[str, str]:
    """The field of a study that its author must change; nothing of a good study."""
    try:
        Study.from_json(text)
    except StudyError as error:
        return {"author_refused": error.field}
    return {}
