"""Datasets and files of reports on all kinds of questions, as tests of engines read them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ldp_client import mechanisms_of
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
    names = ("id", "study", "version", "digest", "payloads", "public")
    return Report(**{**{name: getattr(report, name) for name in names}, **fields})


def table(reports: list[Report]) -> pa.Table:
    names = ("study", "version", "digest", "public", "payloads")
    rows = [{"report_id": one.id, **{name: getattr(one, name) for name in names}} for one in reports]
    # Parquet has no struct without fields.
    found = pa.Table.from_pylist(rows)
    return found if reports[0].public else found.drop_columns("public")


def write(path: Path, reports: list[Report]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(reports), path, write_page_checksum=True)
    return str(path)


def write_dataset(root: Path, reports: list[Report], buckets: int = 4, days: int = 2) -> Path:
    """A finished dataset; returns the folder of its study."""
    folder = root / f"study_id={reports[0].study}"
    sorted_out: dict[str, list[Report]] = {}
    for number, one in enumerate(reports):
        part = f"part-{bytes.fromhex(one.id)[0] * buckets // 256:02x}.parquet"
        name = f"study_version={one.version}/day=2026-01-0{number % days + 1}/{part}"
        sorted_out.setdefault(name, []).append(one)
    files = []
    for name, some in sorted(sorted_out.items()):
        content = Path(write(folder / name, some)).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        files.append({"path": name, "reports": len(some), "bytes": len(content), "sha256": digest})
    manifest = {
        "format": "ldpkit.dataset/1",
        "study": reports[0].study,
        "documents": {one.digest: one.version for one in reports},
        "files": files,
        "reports": len(reports),
    }
    (folder / "_manifest.json").write_text(json.dumps(manifest))
    return folder


REPORTS = made(STUDY, 300)
# In another file too, and twice in one.
REPEATED = [*REPORTS[:20], REPORTS[5]]
RIGHT = summarize(STUDY, REPORTS).to_json()
