"""The input of an analysis: public columns, and each report's likelihood of the private columns' answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from inference.analyses.private_numbers import NumberChannel

Values = NDArray[np.float64]
Codes = NDArray[np.int64]
# The public column that separates waves in one analysis.
WAVE = "wave"


@dataclass(frozen=True)
class Looks:
    """The features of reports, and their probabilities, for checks of a fit.

    shows: (distinct, features), 1 if a report with that vector has the feature. part: (distinct,) of the
    design. chances: (parts, answers, features), P(feature | answer); unknown: what open shares add.
    exclusive: whether each report has exactly one feature, for all parts or for each. Otherwise each feature
    has a separate chance.
    """

    shows: Values
    part: Codes
    chances: Values
    unknown: Mapping[str, Values] = field(default_factory=dict)
    exclusive: bool | NDArray[np.bool_] = True

    @property
    def exclusive_parts(self) -> NDArray[np.bool_]:
        """Return `exclusive` for each part, (parts,)."""
        return np.broadcast_to(np.asarray(self.exclusive), len(self.chances))


@dataclass(frozen=True)
class Private:
    """One private column, behind a known channel.

    name: of the column. answers: the possible true answers. The first is the reference; of two, the second is
    the event. codes: (rows,) the index of each row's likelihood vector. vectors: (distinct, answers):
    P(report | answer), up to a factor that no answer changes. unknown: {name of an open share: (distinct,
    answers)}, which is added to the vectors, times that share. ordered: whether the answers have an order.
    exact: whether the factor is 1, so that log-likelihoods are the reports' own. missing: the number of rows
    without a report; their vector is ones, or NaN for a private number. looks: reports' features, for checks.
    channel: of a private number, which has no answers, and as vectors (distinct, 1) its reports themselves.
    """

    name: str
    answers: tuple[str, ...]
    codes: Codes
    vectors: Values
    unknown: Mapping[str, Values] = field(default_factory=dict)
    ordered: bool = False
    exact: bool = True
    missing: int = 0
    looks: Looks | None = None
    channel: NumberChannel | None = None


@dataclass(frozen=True)
class Table:
    """public: a row for each report, or for each group of equal reports; private: by name, in the same rows.

    counts: (rows,) reports in each row. notes: for readers of any result. digest: of the source documents.
    noise: how the design or the study describes it. doubts: why the reports cannot all come from their
    mechanisms. alike: for numeric public columns, two spellings of one number, such as 1.1 and 1.10.
    """

    public: pd.DataFrame
    private: Mapping[str, Private]
    counts: Codes
    notes: tuple[str, ...] = ()
    digest: str = ""
    noise: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    alike: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        both = [name for name in self.private if name in self.public.columns]
        if both:
            raise InputError(
                f"{both[0]} is private and public: give one of the two another name",
                code="table.private_and_public",
            )
        if not self.counts.sum():
            raise InputError("there are no reports: a fit would only return the prior", code="fit.no_reports")

    @property
    def n(self) -> int:
        """Return the number of reports."""
        return int(self.counts.sum())

    @property
    def names(self) -> list[str]:
        """Return the private columns, then the public columns."""
        return [*self.private, *map(str, self.public.columns)]


def table_of(
    public: pd.DataFrame,
    private: Sequence[Private],
    notes: tuple[str, ...] = (),
    digest: str = "",
    noise: tuple[str, ...] = (),
) -> Table:
    """Return a table with a row per report. Raises InputError if columns differ in length or share a name."""
    for one in private:
        if len(one.codes) != len(public):
            raise InputError(
                f"{one.name} has {counted(len(one.codes), 'row')}, the public columns have {len(public)}",
                code="table.unequal_rows",
            )
    frame = public.reset_index(drop=True)
    columns = {one.name: one for one in private}
    return Table(frame, columns, np.ones(len(frame), np.int64), notes, digest, noise)


def with_missing(column: Private) -> Private:
    """Return the column with an uninformative vector for missing reports, of code −1."""
    gone = column.codes < 0
    if not gone.any():
        return column
    # NaN is an uninformative number.
    silent = np.full((1, column.vectors.shape[1]), 1.0 if column.answers else np.nan)
    unknown = {name: np.vstack([slopes, 0 * silent]) for name, slopes in column.unknown.items()}
    codes = np.where(gone, len(column.vectors), column.codes)
    vectors = np.vstack([column.vectors, silent])
    return replace(column, codes=codes, vectors=vectors, unknown=unknown, missing=int(gone.sum()))
