"""A public field keeps its id and values from one wave to the next, but asks something else.

Defence: `ldpkit fit`: notes changed words, bounds and steps.
"""

from __future__ import annotations

from typing import Any

import pytest

from inference.analyses.waves import table_of_waves
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from schemas import Report, Study
from tests import studies

LIVE = {"id": "region", "text": "Where do you live?", "choices": ["north", "south"]}
AGE = {"id": "age", "text": "Your age?", "bounds": ["20", "60"], "step": "10"}


def wave(version: int, *fields: dict[str, Any]) -> tuple[Study, list[Report]]:
    study = Study({**studies.document(studies.YES_NO), "version": version, "public": list(fields)})
    values = {field.id: field.value(1) for field in study.public}
    mechanisms = mechanisms_of(study)
    return study, [perturb_answers(study, mechanisms, {"ever": True, **values}) for _ in range(5)]


def notes(first: list[dict[str, Any]], second: list[dict[str, Any]], *names: str) -> list[str]:
    table = table_of_waves({"1": wave(1, *first), "2": wave(2, *second)}, ["ever", "wave", *names])
    return [one for one in table.notes if one.startswith(("region", "age"))]


CHANGED = [
    (LIVE, {"text": "Where were you born?"}, "region is worded differently in wave 2 than in wave 1"),
    (LIVE, {"source": "invitation"}, "region comes from another source"),
    (AGE, {"text": "Your mother's age?"}, "age is worded differently in wave 2 than in wave 1"),
    (AGE, {"bounds": ["0", "60"]}, "age has other bounds or steps in wave 2"),
    (AGE, {"step": "5"}, "age has other bounds or steps in wave 2"),
]


@pytest.mark.parametrize(("field", "changed", "said"), CHANGED)
def test_changed_public_field_is_noted(field: dict[str, Any], changed: dict[str, Any], said: str) -> None:
    (note,) = notes([field], [{**field, **changed}], field["id"])
    assert note.startswith(said)


def test_unchanged_or_unused_fields_are_not_noted() -> None:
    assert notes([LIVE, AGE], [AGE, LIVE], "region", "age") == []
    assert notes([LIVE, AGE], [{**LIVE, "text": "Where were you born?"}, AGE], "age") == []
