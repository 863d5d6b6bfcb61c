"""Reports from Parquet to a summary, by processes, Dask and Spark: reports a CPU-second, memory, same result.

python -m benchmarks.engines [--reports 2000000] [--engines local,dask,spark] [--folder DIR]

Reports of three studies are simulated in bulk and written as a dataset: a number, a choice of 16 under OUE,
and one of 2²⁰ under OLH. Of the last one no exact summary is cheap (each report takes a hash for every
choice), so that its reports are read, checked and counted once, but not reduced. CPU is that of all processes
that worked, starts included, by the system's accounts; decoding Parquet alone, with the same reader, is
measured beside it and taken off.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldp_client import mechanisms_of
from ldp_client.bulk.perturbing import randomise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries.engines import summarize_dataset
from summaries.engines.dataset import find_dataset
from summaries.engines.once import once
from summaries.engines.packing import Packer
from summaries.engines.parts import Part
from summaries.engines.work import Job, batches_of, rows_of_file

BUCKETS = 64
PER_FILE = 1 << 17
NUMBER = {"ask": "number", "bounds": ["0", "100"], "mechanism": {"name": "laplace", "epsilon": "1"}}
CHOICE = {"ask": "choice", "choices": {"count": 16}, "mechanism": {"name": "oue", "epsilon": "1"}}
MANY = {"ask": "choice", "choices": {"count": 1 << 20}, "mechanism": {"name": "olh", "epsilon": "1"}}
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "number": (NUMBER, "normal"),
    "oue16": (CHOICE, "multinomial"),
    "olh": (MANY, "multinomial"),
}


def study_of(kind: str) -> Study:
    """The study with this one question."""
    question, model = KINDS[kind]
    head = {"format": "ldpkit.study/1", "id": kind, "version": 1, "title": kind}
    return Study({**head, "questions": [{"id": "asked", **question, "model": {"name": model}}]})


def write_dataset(root: Path, study: Study, reports: int, random: np.random.Generator) -> None:
    """Simulate reports, and write them as an export does: by the first bits of their ids."""
    folder, entries = root / f"study={study.id}", []
    for bucket in range(BUCKETS):
        share = reports * (bucket + 1) // BUCKETS - reports * bucket // BUCKETS
        for day, begin in enumerate(range(0, share, PER_FILE), 1):
            name = f"version=1/day=2026-01-{day:02d}/part-{bucket:02x}.parquet"
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            count = min(PER_FILE, share - begin)
            pq.write_table(_table(study, bucket, count, random), path, write_page_checksum=True)
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            entries.append({"path": name, "reports": count, "bytes": len(content), "sha256": digest})
    manifest = {"format": "ldpkit.dataset/1", "study": study.id, "documents": {study.digest: 1}}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "reports": reports, "files": entries}))


def _table(study: Study, bucket: int, count: int, random: np.random.Generator) -> pa.Table:
    (mechanism,) = mechanisms_of(study).values()
    limit = getattr(mechanism, "levels", 0) or mechanism.choices  # type: ignore[attr-defined]
    payloads = randomise_many(mechanism, random.integers(0, limit, count), NotForRealAnswers(random.bytes))
    ids = random.integers(0, 256, (count, 16), dtype=np.uint8)
    ids[:, 0] = ids[:, 0] % (256 // BUCKETS) + bucket * (256 // BUCKETS)
    names = pa.array(np.zeros(count, np.int32))
    asked = pa.array([row.tobytes() for row in payloads], pa.binary())
    return pa.table(
        {
            "report_id": pa.array([row.tobytes().hex() for row in ids]),
            "study": pa.DictionaryArray.from_arrays(names, [study.id]),
            "version": pa.array(np.ones(count, np.int64)),
            "digest": pa.DictionaryArray.from_arrays(names, [study.digest]),
            "payloads": pa.StructArray.from_arrays([asked], ["asked"]),
        }
    )


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
            for _ in batches_of(file):
                pass
    return found[0]


def reading(study: Study, root: Path) -> float:
    """CPU seconds to decode, check and count once, in one process, without reducing."""
    found: list[float] = []
    dataset = find_dataset(study, root)
    job = Job(study.to_json(), tuple(file.name for file in dataset.files))
    with _cpu(found):
        part = Part.empty(study)
        packer = Packer(study, part)
        for bucket in range(BUCKETS):
            own = [file for file in dataset.files if file.bucket == bucket]
            rows = [some for file in own for some in rows_of_file(job, packer, file)]
            once(packer.layout.joined(rows))
    assert not part.bad.count
    return found[0]


def _line(name: str, reports: int, cpu: float, decode: float, memory: float, seconds: float) -> None:
    rate = reports / max(cpu - decode, 1e-9) / 1e6
    print(
        f"{name:24} CPU {cpu:7.1f} s, decoding {decode:6.1f} s, {rate:6.2f} M reports a CPU-second net, "
        f"{memory:5.0f} MiB a worker, wall {seconds:.0f} s",
        flush=True,
    )


def _run(name: str, reports: int, decode: float, work: Callable[[], Any]) -> Any:
    begin = time.monotonic()
    with Family() as family:
        found = work()
    _line(name, reports, family.cpu, decode, family.worker_mib, time.monotonic() - begin)
    return found, family.cpu


def measure(kind: str, root: Path, reports: int, engines: list[str]) -> None:
    """Print a line for each way, and whether all give the same."""
    study = study_of(kind)
    write_dataset(root, study, reports, np.random.default_rng(1))
    # Once before: what is imported then is no cost of a report.
    summarize_dataset(study, root, workers=1) if kind != "olh" else reading(study, root)
    decode = decoding(study, root)
    if kind == "olh":
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        _line(f"{kind}, not reduced", reports, reading(study, root), decode, memory, 0)
        return
    right, base = _run(
        f"{kind}, one process", reports, decode, lambda: summarize_dataset(study, root, workers=1)
    )
    for engine in engines:
        for workers in (2, 4):
            name = f"{kind}, {engine} {workers}"
            work = lambda e=engine, w=workers: summarize_dataset(study, root, e, workers=w)  # noqa: E731
            found, cpu = _run(name, reports, decode, work)
            same = "the same" if found.to_json() == right.to_json() else "ANOTHER SUMMARY"
            print(f"{'':24} {cpu / base:.2f} times the CPU of one process; {same}")


def main() -> None:
    """Measure all kinds of reports."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=2_000_000)
    parser.add_argument("--kinds", default="number,oue16,olh")
    parser.add_argument("--engines", default="local,dask,spark")
    parser.add_argument("--folder", help="where datasets are written; a temporary one is removed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for kind in given.kinds.split(","):
            measure(kind, Path(folder), given.reports, [one for one in given.engines.split(",") if one])


if __name__ == "__main__":
    main()
