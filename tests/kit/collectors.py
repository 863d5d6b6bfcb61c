"""A collector in this process for most tests, real servers for a few, and what they are sent."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing, contextmanager, suppress
from copy import copy
from datetime import date
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Condition
from typing import Any

from sqlalchemy import text

from collector import create_app
from collector.audit_log import entries
from collector.db import Database
from collector.migrations import make
from collector.tickets.codes import make_tickets
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError
from ldp_client.documents.report import report_id_of
from ldp_client.mechanisms import mechanisms_of
from schemas import Report, Study
from tests import studies
from tests.kit.operators import TOKEN, exit_code, operate
from tests.kit.serving import held_port

TICKET_KEY = "the ticket key of tests"
TODAY = date(2026, 6, 15)
REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 60

QUESTIONS = [
    {**studies.NUMBER, "bounds": ["0", "24"], "model": {"name": "normal"}},
    {**studies.CHOICE, "id": "fruit", "choices": ["apple", "pear", "plum"]},
    studies.YES_NO,
]
# Its payloads have 25 bytes, which no other bytes are like.
LONG_CHOICE = {
    **QUESTIONS[1],
    "choices": ["pear", *map(str, range(199))],
    "mechanism": {"name": "sue", "epsilon": "1"},
}
REGION = {"id": "region", "choices": ["north", 'the "south", {"digest":"', "west"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "0.5"}
STRATUM = {"id": "stratum", "choices": ["town", "country"], "source": "ticket"}
ANSWERS = {"hours": 8, "fruit": "pear", "ever": "yes"}

# In one process: another that opens the file beside a simulated disk would be forgotten by it.
MAKE_AND_RUN = """
import os, sys
from collector.db import Database
from collector.migrations import make
from collector.settings import Settings
from ldpkit.cli import main
url = os.environ["LDPKIT_DATABASE"]
if not os.path.exists(url.removeprefix("sqlite:///")):
    make(Database(url, Settings.lock_timeout))
sys.exit(main())
"""


def build_study(version=1, **changes):
    """A study of three questions; `changes` replace fields of the document."""
    fields = {"id": "habits", "version": version, "title": "Habits", **changes}
    return Study(studies.document(*QUESTIONS, **fields))


def build_report(study, **changes):
    """A report that a device might send; `changes` replace its fields."""
    payloads = {
        question.id: mechanism_for(question).perturb(ANSWERS[question.id]) for question in study.questions
    }
    secret = os.urandom(16)
    report = Report(report_id_of(secret), study.id, study.version, study.digest, payloads, secret=secret)
    vars(report).update(changes)
    return report


def conflicting(report):
    """Another report under the same id."""
    other = copy(report)
    other.payloads = {**report.payloads, "ever": bytes([1 - report.payloads["ever"][0]])}
    return other


def device_report(study, **answers):
    """A report as a device makes it, with its id's secret and its padding; public values among `answers`."""
    asked = {question.id: ANSWERS.get(question.id, "yes") for question in study.questions}
    return perturb_answers(study, mechanisms_of(study), {**asked, **answers})


def ensure_database(url):
    """A database with this release's tables, made unless it is there."""
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:") and not file.exists():
        file.write_bytes(empty_database())
        file.chmod(0o600)
        return url
    database = Database(url, 10)
    with suppress(InputError):
        make(database)
    database.engine.dispose()
    return url


@cache
def empty_database():
    """An SQLite file just made: that takes many times as long as a copy."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "empty.sqlite3"
        database = Database(f"sqlite:///{file}", 10)
        make(database)
        database.engine.dispose()
        return file.read_bytes()


class Harness:
    """A collector on one database, with a clock that tests can set, and shorthand for its routes."""

    def __init__(self, database, **settings):
        self.day = TODAY
        config = {"database": ensure_database(database), "token": TOKEN, "lock_timeout": 5, **settings}
        self.app = create_app(config, today=lambda: self.day)
        self.collector = self.app.extensions["ldpkit"]
        self.client = self.app.test_client()
        self.operator = {"Authorization": f"Bearer {TOKEN}"}

    def operate(self, *arguments):
        """Run an operator's command here; it succeeds, or raises what it refuses with."""
        operate(self.app, *arguments)

    def exit_code(self, *arguments):
        """The exit code of an operator's command here."""
        return exit_code(self.app, *arguments)

    def upkeep(self, **body):
        """Run the daily upkeep now."""
        return self.client.post("/v1/upkeep", json=body, headers=self.operator)

    def publish(self, study, path="/v1/studies"):
        """Publish a study, or a document; by another path, check a draft."""
        document = study.document if isinstance(study, Study) else study
        return self.client.post(path, json=document, headers=self.operator)

    def close(self, study_id="habits"):
        return self.client.post(f"/v1/studies/{study_id}/close", headers=self.operator)

    def write(self, change, *arguments):
        """What a function of a session returns, once it is durable."""
        with self.collector.database.write() as session:
            return change(session, *arguments)

    def sql(self, statement, **values):
        """The rows of a statement, as another process runs it."""
        with self.collector.database.writing_connection() as connection:
            result = connection.execute(text(statement), values)
            return list(result) if result.returns_rows else []

    def tickets(self, count, study_id="habits", **public):
        """So many new tickets, without which the study takes no more reports."""
        words = self.write(make_tickets, study_id, count, TICKET_KEY.encode(), public)
        self.collector.current.forget(study_id)
        return words

    def logged(self, action):
        """The audit log's lines about an action."""
        return [entry for entry in self.write(entries, 100) if entry.action == action]

    def metrics(self):
        return self.client.get("/metrics", headers=self.operator).text

    def reopen(self):
        """The status of opening a closed study."""
        return self.client.post("/v1/studies/habits/open", headers=self.operator).status_code

    @property
    def path(self):
        """The file of an SQLite database."""
        return Path(self.collector.database.url.database)

    def stored_bytes(self):
        """All bytes of an SQLite database's file and of its log."""
        files = sorted(self.path.parent.glob(f"{self.path.name}*"))
        return b"".join(file.read_bytes() for file in files)

    def put(self, report, ticket=None):
        headers = {} if ticket is None else {"LDPKit-Ticket": ticket}
        path = f"/v1/studies/{report.study}/reports/{report.id}"
        return self.app.test_client().put(path, json=report.to_document(), headers=headers)

    def post(self, reports, study_id="habits"):
        return self.client.post(f"/v1/studies/{study_id}/reports", json={"reports": reports})

    def withdraw(self, report_id, study_id="habits", secret=b""):
        """As the device does that has the secret; without one, as the operator does."""
        headers = {"LDPKit-Withdrawal": secret.hex()} if secret else self.operator
        return self.client.delete(f"/v1/studies/{study_id}/reports/{report_id}", headers=headers)

    def export(self, **query):
        return self.client.get("/v1/studies/habits/export", query_string=query, headers=self.operator)

    def summary(self, study_id="habits", **query):
        path = f"/v1/studies/{study_id}/summary"
        return self.client.get(path, query_string=query, headers=self.operator)

    def exported(self, **query):
        """The reports of a whole export."""
        *lines, _end = self.export(**query).text.splitlines()
        return [Report.from_json(line) for line in lines]


class WatchedQueue(SimpleQueue[Any]):
    """The queue of a writer, of which a test is told when work arrives. count: how much has arrived."""

    def __init__(self):
        self._changed, self.count = Condition(), 0

    def put(self, item, block=True, timeout=None):
        super().put(item, block, timeout)
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_until(self, count):
        """Wait until so much has arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, START_SECONDS)


class Server:
    """`ldpkit serve` in a process group of its own, on a free port of loopback; its block ends it."""

    def __init__(self, folder, *options, environment=None, command=("serve",)):
        self.database = folder / "collector.sqlite3"
        self.log = folder / "server.log"
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        # Granian leaves a port that it finds itself alone for a second before it listens, to whoever comes.
        with held_port() as port, self.log.open("ab") as log:
            arguments = [*command, *options, "--ready-file", str(ready)]
            arguments += [] if "--port" in options else ["--port", str(port)]
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAKE_AND_RUN, *arguments],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(REPOSITORY),
                    "LDPKIT_TOKEN": TOKEN,
                    "LDPKIT_DATABASE": f"sqlite:///{self.database}",
                    "LDPKIT_TICKET_KEY": TICKET_KEY,
                    **(environment or {}),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            wait_for(lambda: ready.exists() or self.process.poll() is not None)
            assert ready.exists(), self.log.read_text()
            self.url = ready.read_text().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def exchange(self, method, path, document=None, headers=None):
        """The status and text of an answer to a request that the server grants."""
        body = None if document is None else json.dumps(document).encode()
        fields = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, body, fields, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()

    def request(self, *arguments):
        """The status of such a request."""
        return self.exchange(*arguments)[0]

    def read(self, path):
        """The text of a page for the operator."""
        return self.exchange("GET", path)[1]

    def tickets(self, study_id, count, **public):
        """So many new tickets, without which the study takes no more reports."""
        asked = {"count": count, "public": [{"field": name, "value": public[name]} for name in public]}
        _, text = self.exchange("POST", f"/v1/studies/{study_id}/tickets", asked)
        return json.loads(text)["tickets"]

    def put(self, report, headers=None):
        path = f"/v1/studies/{report.study}/reports/{report.id}"
        return self.request("PUT", path, report.to_document(), headers)

    def logged(self, words):
        """The log's lines with these words, once there is one: some are written after an answer is."""
        wait_for(lambda: words in self.log.read_text())
        return [line for line in self.log.read_text().splitlines() if words in line]

    def children(self):
        """The workers' process ids. The list may lack some while processes start and end (man 5 proc)."""
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        wait_for(file.read_text)
        return [int(pid) for pid in file.read_text().split()]

    def kill(self):
        """kill -9 of the master and every worker at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def wait_for(condition, seconds=START_SECONDS):
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_open(port):
    """Whether something listens on a port of loopback."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextmanager
def running(command, log, is_ready):
    """Have a program running in the folder of its log, once it is ready; it ends with success."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "HOME": str(log.parent)}
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=log.parent, env=environment, stdout=output, stderr=output)
    wait_for(lambda: process.poll() is not None or is_ready())
    assert process.poll() is None, log.read_text()
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def damage_reports(file):
    """Overwrite the first page of an SQLite file's table of reports."""
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'reports'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as content:
        content.seek((page - 1) * size)
        content.write(b"\7" * size)
