"""How a dataset of a study's reports lies in its folder, and its manifest.

    study_id=ID/study_version=NUMBER/day=YYYY-MM-DD/part-BB.parquet
    study_id=ID/_study-NUMBER.json
    study_id=ID/_manifest.json

BB is the report's bucket, the first bits of its random id, in hexadecimal. The manifest is written last: a
dataset without one is not finished. Readers of folders of Parquet leave names with _ out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from collector.storage.archived import IdRange
from ldp_client.documents.errors import InputError
from ldp_client.documents.report import ID_BYTES

FORMAT = "ldpkit.dataset/1"
MANIFEST = "_manifest.json"
# Stands beside what is not finished.
UNFINISHED = "_unfinished.json"
MOST_BUCKETS = 256
# Where the number of buckets is chosen: of a day's file at most so many reports while there are few buckets,
# and of a bucket's files so many that a worker which counts each once holds them in memory.
BUCKETS = 16
REPORTS_PER_PART = 50_000
REPORTS_PER_BUCKET = 1_000_000
PART = re.compile(r"study_version=(\d+)/day=(\d{4}-\d\d-\d\d)/part-([0-9a-f]{2})\.parquet")


class Part(NamedTuple):
    """A file of reports. path: below the study's folder. sha256: in hexadecimal."""

    path: str
    reports: int
    bytes: int
    sha256: str


class Manifest(NamedTuple):
    """What a finished dataset has. documents: {digest: version}. through: the last day, None for all days.

    collector: the identity of the database that it is of. archive: whether its reports may be nowhere else.
    """

    study: str
    documents: Mapping[str, int]
    parts: tuple[Part, ...]
    buckets: int
    through: str | None
    collector: str | None = None
    archive: bool = False

    @property
    def reports(self) -> int:
        """How many there are."""
        return sum(part.reports for part in self.parts)

    def to_json(self) -> str:
        """The text of _manifest.json."""
        document = {
            "format": FORMAT,
            "study": self.study,
            "documents": dict(self.documents),
            "buckets": self.buckets,
            "through": self.through,
            "collector": self.collector,
            "archive": self.archive,
            "reports": self.reports,
            "files": [part._asdict() for part in self.parts],
        }
        return json.dumps(document, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: bytes, where: str) -> Manifest:
        """Read it. where: names it in errors. Raises InputError for anything else."""
        try:
            found: Any = json.loads(text)
            if found["format"] != FORMAT:
                raise ValueError
            parts = tuple(sorted(Part(**file) for file in found["files"]))
            if not all(PART.fullmatch(part.path) for part in parts):
                raise ValueError
            documents = {str(digest): int(version) for digest, version in found["documents"].items()}
            if not is_bucket_count(found["buckets"]):
                raise ValueError
            of = (found.get("collector"), found.get("archive") is True)
            return cls(str(found["study"]), documents, parts, found["buckets"], found["through"], *of)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            advice = "name another folder, or move it away"
            raise InputError(
                f"{where} is no manifest of {FORMAT}: {advice}", code="export.wrong_manifest"
            ) from None


def folder_of(study_id: str) -> str:
    """The study's folder, below the dataset's root."""
    return f"study_id={study_id}"


def document_name(version: int) -> str:
    """The file of a version's document."""
    return f"_study-{version}.json"


def part_path(version: int, day: str, bucket: int) -> str:
    """A file of reports, below the study's folder."""
    return f"study_version={version}/day={day}/part-{bucket:02x}.parquet"


def is_bucket_count(number: object) -> bool:
    """Whether a dataset may have so many buckets: with others some ids would be in none."""
    return type(number) is int and 1 <= number <= MOST_BUCKETS and number & (number - 1) == 0


def least_buckets(paths: Iterable[str]) -> int | None:
    """How many buckets a folder's files have at least, by their names; None where there are none."""
    found = [int(part[3], 16) for path in paths if (part := PART.fullmatch(path))]
    return 1 << max(found).bit_length() if found else None


def bucket_of(report_id: bytes, buckets: int) -> int:
    """The bucket of a report."""
    return report_id[0] * buckets // MOST_BUCKETS


def ids_of(bucket: int, buckets: int) -> IdRange:
    """The ids of a bucket."""
    width = MOST_BUCKETS // buckets
    first = bucket * width
    # The greatest id below the first one.
    after = bytes([first - 1]) + b"\xff" * (ID_BYTES - 1) if first else b""
    return IdRange(after, bytes([first + width - 1]) + b"\xff" * (ID_BYTES - 1))


def choose_buckets(counts: Iterable[int]) -> int:
    """How many buckets there are where nobody says so. counts: of each version and day."""
    counts = list(counts)
    most, total, buckets = max(counts, default=0), sum(counts), 1
    while (buckets < BUCKETS and most > buckets * REPORTS_PER_PART) or (
        buckets < MOST_BUCKETS and total > buckets * REPORTS_PER_BUCKET
    ):
        buckets *= 2
    return buckets
