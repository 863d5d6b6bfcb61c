"""Parameters of requests: what they may be, how a route reads them, and how OpenAPI describes them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from collector.problems import PARAMETER_INVALID, ProblemError, unknown_study
from collector.reports.intake import TICKET
from collector.reports.paging import FORMATS
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Day, Hex, Identifier, Integer, OneOf, Text
from ldp_client.documents.report import ID_BYTES, SECRET_BYTES

# The largest whole number in the database.
LARGEST_COUNT = 2**31 - 1
MOST_LINES = 10_000
# The largest number in a header.
MOST_CHARACTERS = 8000


@dataclass(frozen=True)
class Parameter:
    """A parameter of a request.

    Attributes:
        name: its name.
        shape: what it may be, a field of `ldp_client.documents.fields`; a number is read from its digits.
        location: "query", "path" or "header".
        parse: what a view gets instead of the text.
        description: for OpenAPI.
        problem: makes the problem of a wrong value; by default it is invalid.
    """

    name: str
    shape: Any
    location: str = "query"
    parse: Callable[[Any], Any] = lambda value: value
    description: str = ""
    problem: Callable[[str], ProblemError] | None = None

    def read(self, text: str) -> Any:
        """Return the value of a text. Raises ProblemError."""
        value: Any = text
        # int reads other digits than ASCII too, and refuses thousands of digits with another error.
        if isinstance(self.shape, Integer) and text.isascii() and text.isdigit() and len(text) <= 10:
            value = int(text)
        try:
            return self.parse(self.shape.read(value, self.name, ReportError))
        except ReportError as error:
            if self.problem is not None:
                raise self.problem(text) from None
            raise ProblemError(PARAMETER_INVALID, error.problem, self.name) from None

    def describe(self) -> dict[str, Any]:
        """Return the OpenAPI parameter object."""
        described: dict[str, Any] = {
            "name": self.name,
            "in": self.location,
            "schema": self.shape.json_schema(),
        }
        if self.location == "path":
            described["required"] = True
        return {**described, "description": self.description} if self.description else described


STUDY_ID = Parameter("study_id", Identifier(), "path", problem=unknown_study)
REPORT_ID = Parameter(
    "report_id", Hex(2 * ID_BYTES), "path", bytes.fromhex, "A hash of a secret that only the device has."
)
IN_PATH = {
    parameter.name: parameter for parameter in (STUDY_ID, REPORT_ID, Parameter("name", Identifier(), "path"))
}
VERSION = Parameter("version", Integer(1, 10**6))
FORMAT = Parameter("format", OneOf(FORMATS))
AFTER = Parameter("after", Hex(2 * ID_BYTES), parse=bytes.fromhex)
DELETIONS = Parameter(
    "deletions",
    Integer(0, LARGEST_COUNT),
    description="With `after`: the LDPKit-Deletions of the answer that broke off.",
)
LIMIT = Parameter("limit", Integer(1, MOST_LINES))
SINCE = Parameter("since", Day(), parse=date.fromisoformat)
WITHDRAWAL_HEADER = Parameter(
    "LDPKit-Withdrawal",
    Hex(2 * SECRET_BYTES),
    "header",
    description="What the report's id is made of; without it an operator's key is needed.",
)
TICKET_HEADER = Parameter(
    TICKET,
    Text(MOST_CHARACTERS),
    "header",
    description="An unused ticket, if the study takes invited reports only.",
)
ENCODING = Parameter(
    "Content-Encoding", OneOf(("identity", "gzip")), "header", description="Applied to the whole body."
)
