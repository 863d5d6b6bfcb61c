"""Public labels that a reader of CSV took for numbers, truth values or nothing: 1.1 and 1.10, 01, NA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

from ldp_client.documents.errors import InputError, ReportError
from schemas import Study

# The cells that pandas.read_csv takes for missing by default.
TAKEN_FOR_NOTHING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
}  # fmt: skip


class Labels(NamedTuple):
    """The labels of a study's public fields. digest: the study's. of: {field: its labels}."""

    digest: str = ""
    of: Mapping[str, Sequence[str]] = {}

    @classmethod
    def in_study(cls, study: Study) -> Labels:
        """Return the labels of a study's fields."""
        return cls(study.digest, {field.id: field.choices for field in study.public if field.choices})

    def text(self, digest: object, field: str, cell: object) -> str:
        """Return a cell as this document spells it: a number becomes the one label that equals it.

        Raises ReportError if several labels do.
        """
        labels = self.of.get(field, ()) if digest == self.digest else ()
        if isinstance(cell, str) or not labels:
            return str(cell)
        found = [label for label in labels if _reads_as(label, cell)]
        if len(found) > 1:
            both = " and ".join(found[:2])
            raise ReportError(
                f"public.{field}",
                f"is the number {cell}, which the labels {both} both are: read the column as text "
                "(dtype=str)",
                code="report.label_ambiguous",
            )
        return found[0] if found else str(cell)

    def refuse_lost(self, table: Any) -> None:
        """Raise InputError for a frame of pandas in which a label was taken for a missing cell."""
        for field, labels in self.of.items():
            lost = [label for label in labels if label in TAKEN_FOR_NOTHING]
            name = f"public.{field}"
            if lost and name in table.columns and table[name].isna().any():
                raise InputError(
                    f"the table has rows without {field}: pandas took the label {lost[0]} for a missing "
                    "cell; read the CSV with keep_default_na=False",
                    code="reports.label_lost",
                )


def _reads_as(label: str, cell: object) -> bool:
    """Return True if a reader of CSV may have read this label as this number or truth value."""
    if isinstance(cell, bool):
        return label.lower() == str(cell).lower()
    if not isinstance(cell, Real) or "_" in label:
        return label == str(cell)
    try:
        number = float(label)
    except ValueError:
        return False
    return isfinite(number) and number == float(cell)
