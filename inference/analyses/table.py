"""The input of an analysis: public columns, and each report's likelihood of the private columns' answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.results.verdict import Finding
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from inference.analyses.channel import Channel
    from inference.analyses.private_numbers import NumberChannel

Values = NDArray[np.float64]
Codes = NDArray[np.int64]
# The public column that separates waves in one analysis.
WAVE = "wave"
POOLED = "the waves are pooled as if nothing had changed: the formula does not name wave"


@dataclass(frozen=True)
class Private:
    """One private column, behind a known channel.

    name: of the column. answers: the possible true answers. The first is the reference; of two, the second is
    the event. A number has none. codes: (rows,) the index of each row's report in the channel, −1 without a
    report. channel: P(report | answer). ordered: whether the answers have an order.
    """

    name: str
    answers: tuple[str, ...]
    codes: Codes
    channel: Channel | NumberChannel
    ordered: bool = False

    @property
    def choices(self) -> Channel:
        """Return the channel of a choice."""
        assert self.answers
        return cast("Channel", self.channel)

    @property
    def number(self) -> NumberChannel | None:
        """Return the channel of a number, None of a choice."""
        return None if self.answers else cast("NumberChannel", self.channel)

    @property
    def missing(self) -> int:
        """Return the number of rows without a report."""
        return int((self.codes < 0).sum())


@dataclass(frozen=True)
class Table:
    """public: a row for each report, or for each group of equal reports; private: by name, in the same rows.

    counts: (rows,) reports in each row. notes: for readers of any result. digest: of the source documents.
    noise: how the design or the study describes it. doubts: findings if the reports cannot all come from
    their mechanisms.
    """

    public: pd.DataFrame
    private: Mapping[str, Private]
    counts: Codes
    notes: tuple[str, ...] = ()
    digest: str = ""
    noise: tuple[str, ...] = ()
    doubts: tuple[Finding, ...] = ()

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
