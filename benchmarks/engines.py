"""Reports from Parquet to a summary, in one process: reports a CPU-second, and memory.

python -m benchmarks.engines [--reports 4000000] [--folder DIR]

Reports of a number are simulated in bulk and written as datasets. Decoding Parquet alone, with the same
reader, is measured too and taken off. A dataset of an eighth is reduced twice, then the large one: what that
costs more than the second small one is the work. A choice under OLH takes a hash for every choice of each
report, which is measured without files.
"""

import argparse
import hashlib
import json
import multiprocessing
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.running import cost_of
from ldp_client import mechanisms_of
from ldp_client.bulk.perturbing import randomise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries import QuestionSummary, summarize_dataset
from summaries.engines.dataset import find_dataset

BUCKETS = 64
PER_FILE = 1 << 17
NUMBER = {"ask": "number", "bounds": ["0", "100"], "mechanism": {"name": "laplace", "epsilon": "1"}}
MANY = {"ask": "choice", "choices": {"count": 10**6}, "mechanism": {"name": "olh", "epsilon": "1"}}


def study_of(name: str, question: dict[str, Any], model: str) -> Study:
    """A study with this one question."""
    head = {"format": "ldpkit.study/1", "id": name, "version": 1, "title": name}
    return Study({**head, "questions": [{"id": "asked", **question, "model": {"name": model}}]})


def write_dataset(root: Path, study: Study, reports: int, random: np.random.Generator) -> None:
    """Simulate reports, and write them as an export does: by the first bits of their ids."""
    folder, entries = root / f"study_id={study.id}", []
    for bucket in range(BUCKETS):
        share = reports * (bucket + 1) // BUCKETS - reports * bucket // BUCKETS
        for day, begin in enumerate(range(0, share, PER_FILE), 1):
            name = f"study_version=1/day=2026-01-{day:02d}/part-{bucket:02x}.parquet"
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            count = min(PER_FILE, share - begin)
            pq.write_table(_table(study, bucket, count, random), path, write_page_checksum=True)
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            entries.append({"path": name, "reports": count, "bytes": len(content), "sha256": digest})
    manifest = {"format": "ldpkit.dataset/1", "study": study.id, "documents": {study.digest: 1}}
    (folder / "_manifest.json").write_text(json.dumps({**manifest, "reports": reports, "files": entries}))


def _table(study: Study, bucket: int, count: int, random: np.random.Generator) -> pa.Table:
    (mechanism,) = mechanisms_of(study).values()
    limit = getattr(mechanism, "levels", 0) or mechanism.choices  # type: ignore[attr-defined]
    payloads = randomise_many(mechanism, random.integers(0, limit, count), NotForRealAnswers(random.bytes))
    ids = random.integers(0, 256, (count, 16), dtype=np.uint8)
    ids[:, 0] = ids[:, 0] % (256 // BUCKETS) + bucket * (256 // BUCKETS)
    names = pa.array(np.zeros(count, np.int32))
    hexadecimal = np.frombuffer(ids.tobytes().hex().encode(), np.uint8).reshape(count, 32)
    return pa.table(
        {
            "report_id": _column(hexadecimal, pa.string()),
            "study": pa.DictionaryArray.from_arrays(names, [study.id]),
            "version": pa.array(np.ones(count, np.int64)),
            "digest": pa.DictionaryArray.from_arrays(names, [study.digest]),
            "payloads": pa.StructArray.from_arrays([_column(payloads, pa.binary())], ["asked"]),
        }
    )


def _column(rows: np.ndarray, kind: pa.DataType) -> pa.Array:
    """A value of each row's bytes."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(ends), pa.py_buffer(rows.tobytes())])


def decode(study: Study, root: Path) -> None:
    """Decode the files, and nothing more."""
    for file in find_dataset(study, root).files:
        for _ in file.batches():
            pass


def hashing(choices: int, reports: int) -> float:
    """CPU nanoseconds that reducing a report takes for each choice, under OLH."""
    question = {**MANY, "choices": {"count": choices}}
    (mechanism,) = mechanisms_of(study_of("hashing", question, "multinomial")).values()
    random = np.random.default_rng(1)
    answers = random.integers(0, choices, reports)
    payloads = randomise_many(mechanism, answers, NotForRealAnswers(random.bytes))
    return cost_of(lambda: QuestionSummary.of(mechanism, payloads), 1).cpu / reports / choices * 1e9


def reducing(document: str, small: Path, large: Path, more: int) -> tuple[float, float]:
    """CPU seconds of a report, and this process's largest memory in MiB.

    more: how many reports the large dataset has more.
    """
    study = Study.from_json(document)
    _first, second, third = (
        cost_of(lambda root=root: summarize_dataset(study, root, workers=1), 1).cpu
        for root in (small, small, large)
    )
    return (third - second) / more, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(folder: Path, reports: int) -> None:
    """Print what a report of a number costs."""
    study = study_of("number", NUMBER, "normal")
    small, large = (folder / str(size) for size in (reports // 8, reports))
    for root, size in ((small, reports // 8), (large, reports)):
        write_dataset(root, study, size, np.random.default_rng(size))
    decoding = cost_of(lambda: decode(study, large), 3).cpu / reports
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        work, memory = pool.apply(reducing, (study.to_json(), small, large, reports - reports // 8))
    rate = 1e-6 / max(work - decoding, 1e-12)
    print(
        f"number: {work * 1e9:.0f} ns a report, {decoding * 1e9:.0f} of them decoding: "
        f"{rate:.2f} M a CPU-second net, {memory:.0f} MiB",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both kinds of reports."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=4_000_000)
    parser.add_argument("--folder", help="where datasets are written; a temporary one is removed")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure(Path(folder), given.reports)
    for choices in (1000, 10**6):
        cost = hashing(choices, 20 * 10**6 // choices)
        print(f"olh: {cost:.1f} ns for each of {choices:,} choices", flush=True)


if __name__ == "__main__":
    main()
