"""The engine Spark: `mapInArrow` on its workers, and its own shuffle where reports are in no dataset."""

from __future__ import annotations

import os
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from shutil import which
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, MissingExtraError, UsageError
from schemas import Study
from summaries.engines.dataset import Dataset, ReportFile
from summaries.engines.packing import COLUMNS, Packer, refuse_columns
from summaries.engines.parts import Part, merged, refuse_kept_reports
from summaries.engines.places import master_of
from summaries.engines.planning import TASKS, bits_for, groups_of, rows_of
from summaries.engines.rows import ROW_BITS, RowLayout, Rows
from summaries.engines.work import Ending, Job, split_files, split_rows, summarize_buckets
from summaries.reducing import study_of
from summaries.summary import Summary
from summaries.telling import tell_waiting

# What goes between workers: buckets' numbers, and their rows as bytes; or, as a bucket of its own, what was
# found.
SCHEMA = "bucket long, rows binary"
ARROW = pa.schema([("bucket", pa.int64()), ("rows", pa.binary())])
FOUND = -1
# Buckets of a frame whose rows nobody counted.
FRAME_BITS = 8
# Bytes of a bucket's rows that are one value at most; that come from Python at once; that go to it at once.
BLOCK, GIVEN, TAKEN = 1 << 22, 1 << 22, 1 << 25
# How many values go to Python at once: the program's to say, for it holds for every query of its session.
PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
# A task that a lost process took along is tried so often.
TRIES = 4
SECONDS_BETWEEN_LOOKS = 0.5
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# On this machine alone. Little is done in Java: to compile it thoroughly, by several threads, costs more than
# it saves.
HERE = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "localhost",
}
# Seconds until it is said that no worker has begun.
SECONDS_UNTIL_TOLD = 15
Batches = Iterator[pa.RecordBatch]

# A process has one Spark: while one call has begun its own, another would take it for the program's.
_one_at_a_time = Lock()


def run_spark(
    job: Job, dataset: Dataset, workers: int | None, cluster: str | None, told: Callable[[int], None]
) -> Iterator[Part]:
    """Have Spark do a job.

    Args:
        job: what to do.
        dataset: the files, at addresses that every worker reaches.
        workers: how many, of a Spark that is started for this on this machine.
        cluster: a master instead, such as spark://host:7077 or local[4].
        told: is told how many rows were read so far.

    Returns:
        What was found, in parts that add up.

    Raises:
        UsageError: the master is none, by its form, or another than that of the session that there is.
        MissingExtraError: Spark is not installed.
        InputError: Java is not, or there is no such master, or workers were lost too often.
    """
    with _session(workers, cluster) as spark:
        many = spark.sparkContext.defaultParallelism * TASKS
        groups = groups_of(dataset, many)
        tasks = spark.range(0, len(groups), 1, len(groups))
        total = rows_of(dataset)
        bits = bits_for(job, dataset)
        if dataset.is_bucketed:
            ended = tasks.mapInArrow(partial(_summarize, job, groups, bits), SCHEMA)
        else:
            packed = tasks.mapInArrow(partial(_split, job, groups, bits, _block_of(spark)), SCHEMA)
            ended = _ended(job, packed, min(many, 1 << bits))
        with _watched(spark, len(groups), total, told):
            found = _collected(ended)
    return found


def spark_summary(study: Study | str | PathLike[str], frame: Any) -> Summary:
    """Reduce the reports in a Spark DataFrame to the summary that `summarize` makes of them.

    It has the columns of an export: report_id, study, version, digest, payloads and, where the study has
    public fields, public. Workers need ldpkit as this process has it.

    Args:
        study: the document that the reports answer, or the path of its file.
        frame: a pyspark.sql.DataFrame.

    Returns:
        The summary.

    Raises:
        InputError: reports cannot belong to the study, or there are none.
        SummaryError: the study needs its reports themselves.
    """
    study = study_of(study)
    refuse_kept_reports(mechanisms_of(study))
    refuse_columns(frame.columns)
    job = Job(study.to_json())
    columns = [name for name in frame.columns if name in COLUMNS]
    packed = frame.select(*columns).mapInArrow(partial(_pack, job, _block_of(frame.sparkSession)), SCHEMA)
    ended = _ended(job, packed, _partitions(frame))
    whole = merged(study, _collected(ended))
    assert whole.summary is not None
    return whole.summary


def _partitions(frame: Any) -> int:
    """As many as the session's other shuffles have, at most one for each bucket."""
    return min(1 << FRAME_BITS, int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))


@contextmanager
def _session(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A session: the one that there is, or one that is started here, and stopped."""
    with _one_at_a_time:
        running = _running_session()
        if running is None:
            with _own_session(workers, cluster) as own:
                yield own
            return
    _refuse_other(running, cluster)
    yield running


def _running_session() -> Any:
    """The session of whatever this program has begun, in any of its threads; else None."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("spark", "pyspark") from None
    # Nothing public tells of a context without beginning one; `getActiveSession` knows this thread's alone.
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


@contextmanager
def _own_session(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A session that is started here, and stopped. Raises InputError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Before Java is started, whose log would show its stack.
    master, settings = _master(workers, cluster), SETTINGS
    java = os.environ.get("JAVA_HOME")
    if which("java", path=os.path.join(java, "bin") if java else None) is None:
        raise InputError(
            "Spark needs Java 17 or newer, and there is no java here: install it (Debian: "
            "openjdk-17-jre-headless), or set JAVA_HOME",
            code="engine.java_missing",
        )
    if master.startswith("local"):
        settings = {**SETTINGS, **HERE}
        # Workers on this machine run the Python that this is.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("ldpkit")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        raise InputError(
            f"no Spark at {master}: {_first_line(error)}", code="engine.spark_unreachable"
        ) from None
    try:
        yield spark
    finally:
        spark.stop()


def _refuse_other(running: Any, cluster: str | None) -> None:
    """Raises UsageError where another master is asked for than that of the session: a process has one."""
    master = running.sparkContext.master
    if cluster not in (None, master):
        raise UsageError(
            f"this process has a Spark session with the master {master}: stop it, or use that one",
            code="engine.other_spark_session",
        )


def _master(workers: int | None, cluster: str | None) -> str:
    """The master's address; one on this machine tries again what a killed process leaves undone.

    Raises UsageError for what is none.
    """
    return master_of(f"local[{workers or '*'}]" if cluster is None else cluster, TRIES)


def _first_line(error: BaseException) -> str:
    first, _, rest = str(error).strip().partition("\n")
    # Of an error of Java's the first says which call it was.
    return rest[2:].partition("\n")[0] if rest.startswith(": ") else first


@contextmanager
def _watched(spark: Any, tasks: int, total: int, told: Callable[[int], None]) -> Iterator[None]:
    """Tell how many rows were read, as far as the tasks that read them have ended, or that none has begun."""
    over, waiting = Event(), _Waiting(spark.sparkContext.master)
    tracker = spark.sparkContext.statusTracker()

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            stages = [
                one for one in map(tracker.getStageInfo, tracker.getActiveStageIds()) if one is not None
            ]
            waiting.look(stages)
            for stage in stages:
                if stage.numTasks == tasks and not waiting.is_idle:
                    told(total * stage.numCompletedTasks // tasks)

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    told(total)


class _Waiting:
    """Says once that no worker takes up the work."""

    def __init__(self, master: str) -> None:
        self.is_idle = True
        self._master, self._is_told = master, False
        self._since: float | None = None

    def look(self, stages: Sequence[Any]) -> None:
        """Look at the stages that there are to do."""
        if any(one.numActiveTasks or one.numCompletedTasks for one in stages):
            self.is_idle = False
        if not (stages and self.is_idle) or self._is_told:
            return
        now = monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= SECONDS_UNTIL_TOLD:
            self._is_told = True
            tell_waiting(
                f"no worker of {self._master} has begun yet: it may have none, none that is free, or none "
                "with as much memory as Spark asks for (1g, or spark.executor.memory in spark-defaults.conf)"
            )


def _block_of(spark: Any) -> int:
    """How many bytes are one value, so that the values that go to Python at once are few bytes too."""
    values = int(spark.conf.get(PER_BATCH))
    # Who has it without a limit has the memory for it.
    return min(BLOCK, TAKEN // values) if values > 0 else BLOCK


def _collected(ended: Any) -> Iterator[Part]:
    """Run it; what was found, one after the other. Raises InputError in a line where Spark gave up."""
    from pyspark.errors import PySparkException

    try:
        rows = ended.collect()
    except PySparkException as error:
        raise InputError(f"Spark gave up: {_last_line(error)}", code="engine.spark_failed") from None
    return (pickle.loads(bytes(row["rows"])) for row in rows)


def _last_line(error: BaseException) -> str:
    """What Python said on a worker, without the paths of its stack."""
    lines = [line.strip() for line in str(error).splitlines() if "Error: " in line]
    said = lines[-1] if lines else _first_line(error)
    if "ModuleNotFoundError: " in said:
        said += "; install ldpkit for the workers' Python, or name one that has it in PYSPARK_PYTHON"
    return said


def _batch(pairs: Iterable[tuple[int, bytes]]) -> pa.RecordBatch:
    numbers, rows = zip(*pairs)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int64()), pa.array(rows, pa.binary())], schema=ARROW
    )


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _summarize(job: Job, groups: Sequence[Sequence[ReportFile]], bits: int, batches: Batches) -> Batches:
    for number in _numbers(batches):
        yield _batch([(FOUND, pickle.dumps(summarize_buckets(job, groups[number], bits)))])


def _split(
    job: Job, groups: Sequence[Sequence[ReportFile]], bits: int, block: int, batches: Batches
) -> Batches:
    for number in _numbers(batches):
        found = Part.empty(job.study)
        yield from _blocks(split_files(job, groups[number], bits, found), block)
        yield _batch([(FOUND, pickle.dumps(found))])


def _pack(job: Job, block: int, batches: Batches) -> Batches:
    """Pack a partition of somebody's frame."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    study = job.study
    found = Part.empty(study)
    packer = Packer(study, found)

    def packed() -> Iterator[Rows]:
        place = number << ROW_BITS
        for batch in batches:
            yield packer.pack(batch, place, f"partition {number}")
            place += batch.num_rows

    yield from _blocks(split_rows(packed(), FRAME_BITS), block)
    yield _batch([(FOUND, pickle.dumps(found))])


def _blocks(split: Iterable[tuple[int, Rows]], block: int) -> Batches:
    """Buckets' rows as values of at most so many bytes, or of one row; many in a batch: each batch costs."""
    waiting: list[tuple[int, bytes]] = []
    size = 0
    for bucket, rows in split:
        step = max(1, block // rows.shape[1])
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step].tobytes()
            waiting.append((bucket, some))
            size += len(some)
            if size >= GIVEN:
                yield _batch(waiting)
                waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _ended(job: Job, packed: Any, partitions: int) -> Any:
    """A frame with what was found in each bucket; Spark brings the rows of one together."""
    return packed.repartition(max(1, partitions), "bucket").mapInArrow(partial(_end, job), SCHEMA)


def _end(job: Job, batches: Batches) -> Batches:
    """Count and reduce the buckets of a partition; what was found before goes on as it is."""
    study = job.study
    found, ending, width = Part.empty(study), Ending(job, study), RowLayout(study).width
    buckets: defaultdict[int, list[Rows]] = defaultdict(list)
    for batch in batches:
        for bucket, rows in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
            if bucket == FOUND:
                yield _batch([(FOUND, rows)])
            else:
                buckets[bucket].append(np.frombuffer(rows, np.uint8).reshape(-1, width))
    while buckets:
        ending.add(found, buckets.popitem()[1])
    yield _batch([(FOUND, pickle.dumps(ending.finish(found)))])
