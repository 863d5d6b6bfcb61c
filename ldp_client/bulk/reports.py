"""Many people's reports at once."""

from ldp_client.bulk.perturbing import randomise_many
from schemas.report import ID_BYTES, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.mechanisms import Mechanism
    from schemas.study import Study


def reports_of(
    study: "Study",
    mechanisms: "dict[str, Mechanism]",
    people: "list[list[tuple[str, Any]]]",
    random: "Source",
) -> "Iterator[Report]":
    """One report for each person's quantised answers, as answering.report_of makes it, in their order."""
    payloads: "list[dict[str, bytes]]" = [{} for _ in people]
    for place, question in enumerate(study.questions):
        mechanism = mechanisms[question.id]
        together = randomise_many(mechanism, [person[place][1] for person in people], random).tobytes()
        for person, kept in enumerate(payloads):
            kept[question.id] = together[
                person * mechanism.payload_size : (person + 1) * mechanism.payload_size
            ]
    ids = random(ID_BYTES * len(people)).hex()
    for person, kept in enumerate(payloads):
        report_id = ids[2 * ID_BYTES * person : 2 * ID_BYTES * (person + 1)]
        yield Report(report_id, study.id, study.version, study.digest, kept)
