"""Many people's reports at once."""

from ldp_client.answering import padding_of, refuse_route
from ldp_client.bulk.perturbing import randomise_many
from ldp_client.bulk.randomness import below
from ldp_client.core.randomness import read
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Study
    from ldp_client.mechanisms import Mechanism


def reports_of(
    study: "Study",
    mechanisms: "dict[str, Mechanism]",
    people: "list[list[tuple[str, Any]]]",
    random: "Source",
) -> "Iterator[Report]":
    """One report for each person's quantised answers, as answering.report_of makes it, in their order.

    Raises RefusedError for a study with a route.
    """
    refuse_route(study)
    names = [question.id for question in study.questions]
    # Where a study asks one question only, whose report is about which is drawn first.
    asked = below(len(names), len(people), random).tolist() if study.ask_one else None
    payloads: "list[dict[str, bytes]]" = [{} for _ in people]
    for place, name in enumerate(names):
        chosen = [row for row in range(len(people)) if asked is None or asked[row] == place]
        rows = randomise_many(mechanisms[name], [people[row][place][1] for row in chosen], random)
        for row, payload in zip(chosen, rows):
            payloads[row][name] = payload.tobytes()
    secrets = read(random, SECRET_BYTES * len(people))
    for row, kept in enumerate(payloads):
        secret = secrets[SECRET_BYTES * row : SECRET_BYTES * (row + 1)]
        padding = padding_of(study, mechanisms, kept)
        yield Report(report_id_of(secret), study.id, study.version, study.digest, kept, padding, secret)
