"""Thousands of devices on one machine, each with its own ledger, sending over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ldp_client import Device
from ldp_client.device.upload import put_report
from ldp_client.documents.errors import TransferError
from schemas import Study

# Devices wait for their disk and the network most of the time.
AT_ONCE = 8
LOST_EVERY = 50
STEPS = 10


def send_all(
    study: Study, answers: Sequence[dict[str, Any]], url: str, folder: Path, progress: Callable[[str], None]
) -> int:
    """Let one device for each person answer and send; returns how many sent twice.

    Every 50th loses its first acknowledgement and sends the same bytes again. Raises
    TransferError unless every report was taken.
    """
    budget = str(study.epsilon)

    def run(number: int) -> int:
        device = Device(folder / str(number), budget, url, require_consent=False)
        device.answer(study, answers[number])
        lost = number % LOST_EVERY == 0
        if lost:
            _send_and_lose_answer(device, url)
        flushed = device.flush()
        if flushed.sent != 1:
            raise TransferError(f"device {number} could not send: {flushed.reason}")
        return int(lost)

    twice = 0
    step = max(1, len(answers) // STEPS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, again in enumerate(pool.map(run, range(len(answers))), 1):
            twice += again
            if number % step == 0 or number == len(answers):
                progress(f"  {number} of {len(answers)} devices have answered and sent")
    return twice


def _send_and_lose_answer(device: Device, url: str) -> None:
    for queued in device.ledger.queued():
        put_report(f"{url}/v1/studies/{queued.study}/reports/{queued.report_id}", queued.body)
