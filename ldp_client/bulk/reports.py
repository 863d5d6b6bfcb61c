"""Many people's reports at once."""

from ldp_client.answering import padding_of, refuse_route, refuse_wrong_public
from ldp_client.bulk.perturbing import randomise_many
from ldp_client.bulk.randomness import below
from ldp_client.core.randomness import read
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Optional

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Study
    from ldp_client.mechanisms import Mechanism


def public_many(study: "Study", columns: "Mapping[str, Sequence[Any]]") -> "list[dict[str, str]]":
    """Take columns of public values as reports carry them, as `public_values` does for one person.

    Args:
        study: the study.
        columns: {public field id: values}, one for each field, of one length.

    Returns:
        {field id: value} for each row.

    Raises:
        AnswerError: a column is missing, unknown or of another length, or a value is none of its field's; the
            error names field and row.
    """
    known = {field.id: field for field in study.public}
    for name in columns:
        if name not in known:
            raise AnswerError(str(name)[:64], say("core.not_public"))
    length = max([len(column) for column in columns.values()] or [0])
    rows: "list[dict[str, str]]" = [{} for _ in range(length)]
    for name, field in known.items():
        if name not in columns or len(columns[name]) != length:
            raise AnswerError(name, say("core.one_column"))
        for number, (row, answer) in enumerate(zip(rows, columns[name]), 1):
            try:
                row[name] = field.value_of(answer)
            except AnswerError as error:
                raise AnswerError(name, say("core.row", row=number, problem=error.problem)) from None
    return rows


def reports_of(
    study: "Study",
    mechanisms: "dict[str, Mechanism]",
    people: "list[list[tuple[str, Any]]]",
    random: "Source",
    public: "Optional[list[dict[str, str]]]" = None,
) -> "Iterator[Report]":
    """One report for each person's quantised answers, as answering.report_of makes it, in their order.

    public: each person's public values. Raises RefusedError for a study with a route, AnswerError for public
    values that are not the study's.
    """
    refuse_route(study)
    values = public or [{} for _ in people]
    for each in values:
        refuse_wrong_public(study, each)
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
    head = (study.id, study.version, study.digest)
    for row, (kept, each) in enumerate(zip(payloads, values)):
        secret = secrets[SECRET_BYTES * row : SECRET_BYTES * (row + 1)]
        padding = padding_of(study, mechanisms, kept, each)
        yield Report(report_id_of(secret), *head, kept, padding, secret, each)
