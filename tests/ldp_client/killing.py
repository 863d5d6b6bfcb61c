"""Ending a device's life ahead of a chosen write, flush, removal or renaming of a file.

Each life is cut short once and then lived again to its end. Where power is lost too, what was not flushed
is gone in between.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections import defaultdict
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from random import SystemRandom

from ldp_client import Device
from ldp_client.device.ledger import Ledger
from ldp_client.documents.errors import RefusedError
from ldp_client.mechanisms import MECHANISMS
from schemas import Report, Study
from tests import studies
from tests.kit.failing_disk import FailingDisk
from tests.ldp_client.devices import Memoized, Server

FINISHED, KILLED = 0, 9
# A life has some 480 points at which it can end.
STEP = 59
# Where flushing costs nothing: a killed process does not lose what it wrote to a file.
MEMORY = "/dev/shm"
ONCE = Study(studies.document(studies.NUMBER, studies.CHOICE, id="once"))
WITHDRAWN = Study(studies.document(studies.CHOICE, id="withdrawn"))
WAVES = [Study(studies.document(studies.YES_NO, id="waves", version=version)) for version in (1, 2)]


def live(folder, url):
    """Consent, answer, send, answer again and withdraw; true answers differ from life to life."""
    MECHANISMS["randomized_response"] = Memoized
    device, random = Device(folder, "8", url), SystemRandom()

    def answer(study):
        answers = {
            "hours": random.uniform(0, 12),
            "occupation": random.choice(studies.CHOICE["choices"]),
            "ever": random.random() < 0.5,
        }
        with suppress(RefusedError):
            device.consent(study)
            device.answer(study, {question.id: answers[question.id] for question in study.questions})

    for study in (ONCE, WITHDRAWN, WAVES[0]):
        answer(study)
    device.flush(attempts=1)
    answer(WAVES[1])
    device.withdraw(WITHDRAWN.id)
    device.flush(attempts=1)


def check(folder, requests, is_over=False):
    """Compare the ledger with what the collector received; `is_over` after a whole life."""
    # 1. One report of each version, one permanent answer, and no report after its deletion.
    bodies, states, deleted = defaultdict(set), set(), set()
    for method, path, body, _ in requests:
        report_id = path.rsplit("/", 1)[1]
        if method == "DELETE":
            deleted.add(report_id)
        else:
            assert report_id not in deleted
            report = Report.from_json(body)
            bodies[report.study, report.version].add(body)
            states |= {report.payloads["ever"][:9]} if report.study == "waves" else set()
    assert max(map(len, [*bodies.values(), states])) <= 1
    # 2. All of a study's questions are spent, or none; each spend has its report, each report its spend.
    with Ledger(str(folder)).reading() as connection:
        spent = connection.execute("SELECT study, version FROM spent").fetchall()
        reports = connection.execute("SELECT study, state FROM reports").fetchall()
        consents = connection.execute("SELECT study FROM consents").fetchall()
        permanent = connection.execute("SELECT study FROM permanent").fetchall()
    for study in (ONCE, WITHDRAWN, WAVES[0]):
        versions = [version for name, version in spent if name == study.id]
        kept = len([name for name, _ in reports if name == study.id])
        assert len(versions) in (0, len(study.questions))
        expected = max(versions, default=0)
        is_withdrawn = study is WITHDRAWN and (study.id,) not in consents
        assert kept == expected or (is_withdrawn and kept < expected)
        assert expected or not bodies[study.id, 1]
    assert len(permanent) == ("waves" in {name for name, _ in spent})
    # 3. At the end, all has arrived but what was withdrawn.
    if is_over:
        assert all(bodies[study.id, study.version] for study in (ONCE, *WAVES))
        assert set(reports) == {("once", "sent"), ("waves", "sent")}
        assert {Report.from_json(body).id for body in bodies[WITHDRAWN.id, 1]} <= deleted


def in_child(work):
    """Run in a forked process; its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = FINISHED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def cut_short(point):
    """Cut a life short at that point and live it again: whether it had so many points, and all was well."""
    folder = Path(os.environ["FAILING_DISK_ROOT"]) / str(point)
    durable = os.environ.get("FAILING_DISK_DURABLE")
    if durable:
        (Path(durable) / folder.name).mkdir()
    with Server() as server:

        def die():
            os.environ["FAILING_DISK_DIES_AT"] = str(point)
            live(folder, server.url)

        is_cut = in_child(die) == KILLED
        if durable:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(Path(durable) / folder.name, folder)
        # In a child: whoever reads a ledger may have to repair it.
        codes = [
            in_child(lambda: check(folder, server.requests)),
            in_child(lambda: live(folder, server.url)),
            in_child(lambda: check(folder, server.requests, is_over=True)),
        ]
    return is_cut, codes == [FINISHED] * 3


def start(loses_power, broken=False):
    """Run the lives in a process of their own, on such a disk; exit code 1 if anything was wrong.

    broken: with a ledger that flushes nothing, to see the problems found.
    """
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        disk = FailingDisk(Path(folder), loses_power)
        command = [sys.executable, "-m", "tests.ldp_client.killing", *["broken"][: int(broken)]]
        environment = {**os.environ, **disk.environment}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


class Careless(sqlite3.Connection):
    """A connection that flushes nothing."""

    def execute(self, statement, *values):
        return super().execute(statement.replace("EXTRA", "OFF"), *values)


def main():
    """Print how many lives were cut short and which ended badly; 1 if any did, or none was cut."""
    if sys.argv[1:]:
        sqlite3.connect = partial(sqlite3.connect, factory=Careless)
    wrong = []
    for point in count(1, STEP):
        is_cut, is_good = cut_short(point)
        wrong += [] if is_good else [point]
        if not is_cut:
            print(f"{point // STEP} lives cut short, problems at {wrong}")
            # Without a cut nothing was tested.
            return 1 if wrong or point == 1 else 0
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main())
