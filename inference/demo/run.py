"""A study at work: a collector, a device for each person that sends to it over HTTP, and the fit.

The collector listens on a free loopback port until all is done. Each device has a separate ledger.
"""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inference.fitting import fit
from inference.results.posterior import Posterior
from inference.results.report import save_report
from ldp_client import Device
from ldp_client.documents.errors import TransferError
from schemas import Study

Progress = Callable[[str], None]
# Devices mostly wait for their disk and the network.
AT_ONCE = 8
STEPS = 10
STOP_SECONDS = 20.0


def try_study(
    study: Study,
    answers: Sequence[dict[str, Any]],
    folder: Path,
    show_page: Callable[[str], None],
    progress: Progress,
) -> dict[str, Posterior]:
    """Collect a report for each person's answers at a throw-away collector, and fit them.

    Args:
        study: without a channel.
        answers: each person's answers and public values.
        folder: an empty folder for the study, the reports, the posteriors and the report page.
        show_page: gets the address of the participants' page, while the collector runs. When it returns,
            the reports are exported.
        progress: gets a line for each step.

    Returns:
        {question id: posterior}.

    Raises:
        TransferError: the collector did not start, or a device could not send.
    """
    document, reports = folder / "study.json", folder / "reports.ndjson"
    document.write_text(study.to_json() + "\n", encoding="utf-8")
    with TemporaryDirectory(prefix="ldpkit-") as name, running_collector(Path(name)) as (url, environment):
        progress(f"a collector listens on {url}")
        _run(["publish", str(document), "--collector", url], environment)
        send_all(study, answers, url, Path(name) / "devices", progress)
        show_page(f"{url}/s/{study.id}")
        _run(["export", study.id, "--collector", url, "--out", str(reports)], environment)
    posteriors = fit(study, str(reports), 0, progress)
    progress("drawing the report page")
    save_report(posteriors, folder, study)
    return posteriors


def send_all(
    study: Study, answers: Sequence[dict[str, Any]], url: str, folder: Path, progress: Progress
) -> None:
    """Let one device for each person answer and send. Raises TransferError if one could not."""
    budget, fields = str(study.epsilon), {field.id for field in study.public}

    def send(number: int) -> None:
        device = Device(folder / str(number), budget, url, require_consent=False)
        private = dict(answers[number])
        public = {name: private.pop(name) for name in fields & private.keys()}
        device.answer(study, private, public=public or None)
        flushed = device.flush()
        if flushed.sent != 1:
            raise TransferError(
                f"device {number} could not send: {flushed.reason}", code="demo.device_not_sent"
            )

    step = max(1, len(answers) // STEPS)
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for number, _ in enumerate(pool.map(send, range(len(answers))), 1):
            if number % step == 0 or number == len(answers):
                progress(f"  {number} of {len(answers)} devices have answered and sent")
    finally:
        pool.shutdown(cancel_futures=True)


START_SECONDS = 60.0
LDPKIT = [sys.executable, "-m", "ldpkit"]


def _run(words: list[str], environment: dict[str, str]) -> None:
    """Run a command. Raises TransferError if it fails."""
    done = subprocess.run([*LDPKIT, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TransferError(f"ldpkit {words[0]} failed: {done.stderr.strip()}", code="demo.command_failed")


@contextmanager
def running_collector(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Run `ldpkit serve` in a new place below `folder`, and always stop it on exit.

    Yields its URL, and the environment of its operator's commands.
    """
    place, ready = folder / "collector", folder.absolute() / "url"
    _run(["init", str(place)], dict(os.environ))
    token = tomllib.loads((place / "ldpkit.toml").read_text(encoding="utf-8"))["token"]
    environment = {**os.environ, "LDPKIT_TOKEN": token}
    command = [*LDPKIT, "serve", "--port", "0", "--ready-file", str(ready)]
    with (folder / "collector.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        try:
            while not ready.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    text = (folder / "collector.log").read_text(errors="replace").strip()[-500:]
                    raise TransferError(
                        f"the collector did not start: {text}", code="demo.collector_not_started"
                    )
                time.sleep(0.05)
            yield ready.read_text().strip(), environment
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
