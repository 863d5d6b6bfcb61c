"""Reports from Parquet to a summary, by one process or several: reports a CPU-second, memory, result.

python -m benchmarks.engines [--reports 4000000] [--kinds number,oue16,olh] [--workers 2,4] [--folder DIR]

Reports of three studies are simulated in bulk and written as datasets: a number, a choice of 16 under OUE,
and one of 10⁶ under OLH. Of the last one no exact summary is cheap (each report takes a hash for every
choice), so that its reports are read, checked and counted once, but not reduced; what a hash costs is
measured with fewer choices. CPU is that of all processes that worked, by the system's accounts; decoding
Parquet alone, with the same reader, is measured beside it and taken off.

Each number of processes gets a dataset of an eighth, twice, then the large one. What the large one costs more
than the second small one is the work, a report; what the first small one costs more than its reports is the
start.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldp_client import mechanisms_of
from ldp_client.bulk.perturbing import randomise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries import QuestionSummary, summarize_dataset
from summaries.engines.dataset import find_dataset
from summaries.engines.rows import once
from summaries.engines.running import Worker

BUCKETS = 64
PER_FILE = 1 << 17
NUMBER = {"ask": "number", "bounds": ["0", "100"], "mechanism": {"name": "laplace", "epsilon": "1"}}
CHOICE = {"ask": "choice", "choices": {"count": 16}, "mechanism": {"name": "oue", "epsilon": "1"}}
MANY = {"ask": "choice", "choices": {"count": 10**6}, "mechanism": {"name": "olh", "epsilon": "1"}}
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "number": (NUMBER, "normal"),
    "oue16": (CHOICE, "multinomial"),
    "olh": (MANY, "multinomial"),
}


def study_of(kind: str) -> Study:
    """The study with this one question."""
    return _study(kind, *KINDS[kind])


def _study(name: str, question: dict[str, Any], model: str) -> Study:
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


class Family:
    """CPU seconds and largest memory of this process and of all that it, or they, started."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self.largest: dict[int, int] = {}
        self._over, self._looking = Event(), 0.0
        self._watcher = Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.look()
        # To look costs too, and is no work.
        self._looking = time.thread_time()

    def look(self) -> None:
        """Note what each process has used so far; one that ends keeps what was seen last."""
        parents, used = {}, {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                status = Path("/proc", name, "status").read_text()
            except OSError:
                continue
            parents[int(name)] = int(fields[1])
            ticks = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
            used[int(name)] = ticks, peak
        for one, (ticks, peak) in used.items():
            if _is_under(one, parents):
                self.seconds[one], self.largest[one] = ticks, peak

    def __enter__(self) -> Family:
        self.look()
        self._before = sum(self.seconds.values())
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()
        self.look()

    @property
    def cpu(self) -> float:
        """CPU seconds since it was entered."""
        return sum(self.seconds.values()) - self._before - self._looking

    @property
    def worker_mib(self) -> float:
        """The largest peak of a process other than this one; of this one where there is no other."""
        others = [peak for one, peak in self.largest.items() if one != os.getpid()]
        return max(others or [self.largest[os.getpid()]]) / 1024


def _is_under(one: int, parents: dict[int, int]) -> bool:
    while one in parents and one != os.getpid():
        one = parents[one]
    return one == os.getpid()


@contextmanager
def _cpu(found: list[float]) -> Iterator[None]:
    begin = time.process_time()
    yield
    found.append(time.process_time() - begin)


def decoding(study: Study, root: Path) -> float:
    """CPU seconds that it takes to decode the files, and nothing more."""
    found: list[float] = []
    with _cpu(found):
        for file in find_dataset(study, root).files:
            for _ in file.batches():
                pass
    return found[0]


def reading(study: Study, root: Path) -> float:
    """CPU seconds to decode, check and count once, in one process, without reducing."""
    found: list[float] = []
    dataset = find_dataset(study, root)
    worker = Worker(study.to_json(), dataset.files)
    with _cpu(found):
        for bucket in range(BUCKETS):
            files = [file for file in dataset.files if file.bucket == bucket]
            rows = [some for file in files for some in worker.pack(file.number, file.batches())]
            once(np.concatenate(rows))
    assert not worker.found.refused
    return found[0]


def hashing(choices: int, reports: int) -> float:
    """CPU nanoseconds that reducing a report takes for each choice, under OLH."""
    question = {**MANY, "choices": {"count": choices}}
    (mechanism,) = mechanisms_of(_study("hashing", question, "multinomial")).values()
    random = np.random.default_rng(1)
    answers = random.integers(0, choices, reports)
    payloads = randomise_many(mechanism, answers, NotForRealAnswers(random.bytes))
    found: list[float] = []
    with _cpu(found):
        QuestionSummary.of(mechanism, payloads)
    return found[0] / reports / choices * 1e9


class Costs(NamedTuple):
    """CPU seconds. start: before and beside the reports. work: of a report. summary: of all reports."""

    start: float
    work: float
    memory: float
    wall: float
    summary: str


def costs(study: Study, roots: dict[int, Path], workers: int) -> Costs:
    """Measure so many processes on a small dataset, twice, and on a large one. roots: of each size."""
    small, large = sorted(roots)
    seconds: list[float] = []
    with Family() as family:
        for size in (small, small, large):
            begin = time.monotonic()
            found = summarize_dataset(study, roots[size], workers=workers)
            family.look()
            seconds.append(family.cpu)
        wall = time.monotonic() - begin
    first, second, third = np.diff([0.0, *seconds])
    work = (third - second) / (large - small)
    return Costs(first - work * small, work, family.worker_mib, wall, found.to_json())


def _print(name: str, found: Costs, decode: float, base: Costs) -> None:
    rate = 1e-6 / max(found.work - decode, 1e-12)
    same = "the same" if found.summary == base.summary else "ANOTHER SUMMARY"
    ratio = found.work / base.work
    print(
        f"{name:22} start {found.start:5.1f} CPU s, {found.work * 1e9:4.0f} ns a report, "
        f"{decode * 1e9:.0f} of them decoding: {rate:5.2f} M a CPU-second net, "
        f"{ratio:.2f} times one process; {found.memory:4.0f} MiB a worker, wall {found.wall:.0f} s, {same}",
        flush=True,
    )


def _decode(study: Study, root: Path, reports: int) -> float:
    return decoding(study, root) / reports


def measure(kind: str, folder: Path, reports: int, workers: list[int]) -> None:
    """Print a line for each way, and whether all give the same."""
    study = study_of(kind)
    roots = {size: folder / str(size) for size in (reports // 8, reports)}
    for size, root in roots.items():
        write_dataset(root, study, size, np.random.default_rng(size))
    if kind == "olh":
        decode = _decode(study, roots[reports], reports)
        work = min(reading(study, roots[reports]) for _ in range(3)) / reports
        print(f"{kind}, not reduced: {work * 1e9:.0f} ns a report, {1e-6 / (work - decode):.2f} M net")
        for choices in (1000, 10**6):
            cost = hashing(choices, 20 * 10**6 // choices)
            print(f"{kind}, reducing: {cost:.1f} ns for each of {choices:,} choices")
        return
    # In turn, as other work comes and goes; of each the least.
    tries = [(_decode(study, roots[reports], reports), costs(study, roots, 1)) for _ in range(3)]
    decode, base = min(one for one, _ in tries), min((one for _, one in tries), key=lambda one: one.work)
    _print(f"{kind}, one process", base, decode, base)
    for many in workers:
        _print(f"{kind}, {many} processes", costs(study, roots, many), decode, base)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all kinds of reports."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=4_000_000)
    parser.add_argument("--kinds", default="number,oue16,olh")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--folder", help="where datasets are written; a temporary one is removed")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for kind in given.kinds.split(","):
            measure(kind, Path(folder), given.reports, [int(one) for one in given.workers.split(",")])


if __name__ == "__main__":
    main()
