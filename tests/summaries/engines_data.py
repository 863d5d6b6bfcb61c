"""Datasets and files of reports on all kinds of questions, as tests of engines read them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ldp_client import mechanisms_of
from ldpkit.cli import dataset
from ldpkit.cli.dataset import rows_batch, schema_of
from schemas import Report, Study
from summaries import summarize
from tests import studies
from tests.statistics import seeded

REGION = {"id": "region", "choices": ["north", "south"]}
YEARS = {"id": "years", "bounds": ["0", "4"], "step": "1"}
# A summary has no room for a record with a yes/no response.
QUESTIONS = [one for one in [*studies.ALL, *studies.NEWER] if one["id"] != "chance"]
ANSWERS = {**studies.ANSWERS, **studies.NEWER_ANSWERS}
STUDY = Study(studies.document(*QUESTIONS, public=[REGION, YEARS]))
OTHER = Study(studies.document(*QUESTIONS, public=[REGION, YEARS], version=2))
FEW = Study(studies.document(studies.YES_NO, studies.CHOICE, public=[REGION]))


def made(study: Study, count: int) -> list[Report]:
    """So many reports of people whose answers are all alike, but for their public values."""
    random, mechanisms = seeded(study.digest), mechanisms_of(study)
    reports = []
    for number in range(count):
        payloads = {name: one.perturb(ANSWERS[name], random) for name, one in mechanisms.items()}
        values = {"region": REGION["choices"][number % 2], "years": str(number % 5)}
        public = {field.id: values[field.id] for field in study.public}
        about = (random.source(16).hex(), study.id, study.version, study.digest)
        reports.append(Report(*about, payloads, public=public))
    return reports


def changed(report: Report, **fields: Any) -> Report:
    return Report(**{**vars(report), **fields})


def table(reports: list[Report]) -> pa.Table:
    """Reports in the columns of an export."""
    questions, public = (
        dict.fromkeys(name for one in reports for name in getattr(one, field))
        for field in ("payloads", "public")
    )
    batch = rows_batch(schema_of(questions, [*public]), [(one, {}) for one in reports])
    return pa.Table.from_batches([batch])


def write(path: Path, reports: list[Report]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(reports), path, write_page_checksum=True)
    return str(path)


def write_dataset(root: Path, reports: list[Report]) -> Path:
    """A finished dataset; returns the folder of its study."""
    known = {study.digest: study for study in (STUDY, OTHER, FEW)}
    ordered = sorted(reports, key=lambda one: one.id)
    dataset.write_dataset(ordered, "survey", str(root), lambda _version, digest: known[digest])
    return root / "study_id=survey"


REPORTS = made(STUDY, 300)
# In another file too, and twice in one.
REPEATED = [*REPORTS[:20], REPORTS[5]]
RIGHT = summarize(STUDY, REPORTS).to_json()
