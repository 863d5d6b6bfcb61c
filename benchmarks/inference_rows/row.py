"""One line of the table."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """met: whether the target is met; None where it cannot be measured here."""

    what: str
    measured: str
    target: str
    met: bool | None

    def __str__(self) -> str:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[self.met]
        return f"{self.what:<58} {self.measured:<52} {self.target:<18} {verdict}"
