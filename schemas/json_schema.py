"""Generate the JSON Schema files from the shapes: `python -m schemas.json_schema` writes them."""

import json
from pathlib import Path
from typing import Any

from ldp_client.documents.report import REPORT
from ldp_client.documents.signed import SIGNED_STUDY
from schemas.study import STUDY

FOLDER = Path(__file__).parent
SHAPES = {
    "study.schema.json": ("A study of ldpkit", STUDY),
    "report.schema.json": ("A report of ldpkit", REPORT),
    "signed.schema.json": ("A signed study of ldpkit", SIGNED_STUDY),
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one document kind, by file name."""
    title, shape = SHAPES[name]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **shape.json_schema()}


def render(name: str) -> str:
    """Return the text of one schema file."""
    return json.dumps(schema(name), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for file in SHAPES:
        (FOLDER / file).write_text(render(file), encoding="utf-8")
