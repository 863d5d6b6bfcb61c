"""The life of a device that answers two rounds of a study, for tests of several promises."""

from contextlib import suppress
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms import MECHANISMS
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Memoized, Server

BUDGET = "8"
# The second round repeats a permanent answer.
ROUNDS = [
    Study(studies.document(studies.NUMBER, studies.YES_NO, id="rounds")),
    Study(studies.document(studies.YES_NO, id="rounds", version=2)),
]


@pytest.fixture
def memoized(monkeypatch: pytest.MonkeyPatch) -> None:
    """The permanent answer can be told by its bytes, the first nine of each payload."""
    monkeypatch.setitem(MECHANISMS, "randomized_response", Memoized)


def live(folder: Path, url: str, hours: int = 2, rounds: int = 2) -> None:
    """A device consents, answers rounds and sends each; what was answered before is not answered again."""
    device = Device(folder, BUDGET, url)
    answers = {"hours": hours, "ever": hours % 2 == 0}
    for study in ROUNDS[:rounds]:
        with suppress(AlreadyAnsweredError):
            device.consent(study)
            device.answer(study, {question.id: answers[question.id] for question in study.questions})
        device.flush(attempts=1)


def bodies_of(server: Server) -> list[bytes]:
    """The bodies of all reports that arrived, in order."""
    return [body for method, _, body, _ in server.requests if method == "PUT"]
