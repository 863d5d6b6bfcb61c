"""The life of a device that answers two rounds of a study, for tests of several promises."""

from contextlib import suppress

from ldp_client import Device
from ldp_client.documents.errors import AlreadyAnsweredError
from schemas import Study
from tests import studies

BUDGET = "8"
# The second round repeats a permanent answer.
ROUNDS = [
    Study(studies.document(studies.NUMBER, studies.YES_NO, id="rounds")),
    Study(studies.document(studies.YES_NO, id="rounds", version=2)),
]


def live(folder, url, hours=2, rounds=2):
    """A device consents, answers rounds and sends each; what was answered before is not answered again."""
    device = Device(folder, BUDGET, url)
    answers = {"hours": hours, "ever": hours % 2 == 0}
    for study in ROUNDS[:rounds]:
        with suppress(AlreadyAnsweredError):
            device.consent(study)
            device.answer(study, {question.id: answers[question.id] for question in study.questions})
        device.flush(attempts=1)


def bodies_of(server):
    return [body for method, _, body, _ in server.requests if method == "PUT"]
