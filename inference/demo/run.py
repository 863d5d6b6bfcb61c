"""The demo, step by step: its collector, and thousands of devices that send to it over HTTP.

The collector listens on a free loopback port until the demo ends. Each device has a separate ledger.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inference.demo.raw_answers import raw_values
from inference.demo.survey import answers_of, study_for
from inference.fitting import fit
from inference.results.posterior import Posterior
from inference.results.report import save_report
from inference.results.saving import new_folder
from ldp_client import Device, Direct
from ldp_client.device.requests import put_report
from ldp_client.documents.errors import TransferError
from schemas import Study
from summaries.reading import summarize

Progress = Callable[[str], None]
# The questions' mean epsilon; and the seed of the people and the sampler, not of the noise.
EPSILON, SEED = "1", 0


def run(out: Path, people: int | None, progress: Progress) -> dict[str, Posterior]:
    """Collect the survey from one device for each person, fit it, and write the results to `out`.

    Raises InputError, TransferError. Leaves no running process and no half-written result.
    """
    study = study_for(EPSILON)
    answers = answers_of(people, SEED)
    with new_folder(out) as folder:
        (folder / "study.json").write_text(study.to_json() + "\n", encoding="utf-8")
        collect(study, answers, folder / "reports.ndjson", progress)
        summary = summarize(study, [str(folder / "reports.ndjson")])
        (folder / "summary.json").write_text(summary.to_json() + "\n", encoding="utf-8")
        posteriors = fit(study, summary, SEED, progress)
        progress("drawing the report page")
        save_report(posteriors, folder, study, raw=raw_values(study, answers))
    return posteriors


def collect(study: Study, answers: Sequence[dict[str, Any]], path: Path, progress: Progress) -> None:
    """Publish the study, let every device send, and export the reports. Raises TransferError."""
    with TemporaryDirectory(prefix="ldpkit-") as name:
        folder = Path(name)
        with running_collector(folder) as collector:
            progress(f"a collector listens on {collector.url}")
            collector.publish(study)
            twice = send_all(study, answers, collector.url, folder / "devices", progress)
            collector.export(study, path)
    # The last line is the count of the others.
    stored = sum(1 for _ in path.open(encoding="utf-8")) - 1
    progress(f"{twice} devices sent twice; {stored} reports are stored")
    if stored != len(answers):
        raise TransferError(
            f"{len(answers)} devices answered, but {stored} reports were stored", code="demo.reports_missing"
        )


# Devices mostly wait for their disk and the network.
AT_ONCE = 8
LOST_EVERY = 50
STEPS = 10
STOP_SECONDS = 20.0


def send_all(
    study: Study, answers: Sequence[dict[str, Any]], url: str, folder: Path, progress: Callable[[str], None]
) -> int:
    """Let one device for each person answer and send; return how many sent twice.

    Every 50th device loses its first acknowledgement and sends the same bytes again. Raises TransferError
    unless every report was accepted.
    """
    budget = str(study.epsilon)
    fields = {field.id for field in study.public}

    def run(number: int) -> int:
        device = Device(folder / str(number), budget, url, require_consent=False)
        given = answers[number]
        private = {name: answer for name, answer in given.items() if name not in fields}
        public = {name: value for name, value in given.items() if name in fields}
        device.answer(study, private, public=public or None)
        lost = number % LOST_EVERY == 0
        if lost:
            _send_and_lose_answer(device, url)
        flushed = device.flush()
        if flushed.sent != 1:
            raise TransferError(
                f"device {number} could not send: {flushed.reason}", code="demo.device_not_sent"
            )
        return int(lost)

    twice = 0
    step = max(1, len(answers) // STEPS)
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for number, again in enumerate(pool.map(run, range(len(answers))), 1):
            twice += again
            if number % step == 0 or number == len(answers):
                progress(f"  {number} of {len(answers)} devices have answered and sent")
    finally:
        pool.shutdown(cancel_futures=True)
    return twice


def _send_and_lose_answer(device: Device, url: str) -> None:
    for queued in device.ledger.queued():
        put_report(Direct(), f"{url}/v1/studies/{queued.study}/reports/{queued.report_id}", queued.body)


START_SECONDS = 60.0
LDPKIT = [sys.executable, "-m", "ldpkit"]


@dataclass(frozen=True)
class Collector:
    """A running collector: its base URL and its operator's token."""

    url: str
    token: str

    def publish(self, study: Study) -> None:
        """Publish a study through the HTTP API."""
        request = urllib.request.Request(f"{self.url}/v1/studies", study.canonical(), method="POST")
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10):
            pass

    def export(self, study: Study, path: Path) -> None:
        """Fetch all reports with `ldpkit export`."""
        _run(["export", study.id, "--collector", self.url, "--out", str(path)], _environment(self.token))


def _run(words: list[str], environment: dict[str, str]) -> None:
    """Run a command. Raises TransferError if it fails."""
    done = subprocess.run([*LDPKIT, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TransferError(f"ldpkit {words[0]} failed: {done.stderr.strip()}", code="demo.command_failed")


def _environment(token: str) -> dict[str, str]:
    return {**os.environ, "LDPKIT_TOKEN": token}


@contextmanager
def running_collector(folder: Path) -> Iterator[Collector]:
    """Run `ldpkit serve` in a new place below `folder`, and always stop it on exit."""
    place, ready = folder / "collector", folder.absolute() / "url"
    _run(["init", str(place)], dict(os.environ))
    token = tomllib.loads((place / "ldpkit.toml").read_text(encoding="utf-8"))["token"]
    command = [*LDPKIT, "serve", "--port", "0", "--ready-file", str(ready)]
    with (folder / "collector.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=place, env=_environment(token), stdout=log, stderr=log)
        try:
            yield Collector(_wait_for(ready, server, folder / "collector.log"), token)
        finally:
            _stop(server)


def _wait_for(ready: Path, server: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise TransferError(
                f"the collector did not start: {log.read_text(errors='replace').strip()[-500:]}",
                code="demo.collector_not_started",
            )
        time.sleep(0.05)
    return ready.read_text().strip()


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
