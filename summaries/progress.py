"""Steps of progress, and the progress of reading reports, which takes minutes if there are many millions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from schemas.disk import STREAM, count_lines


class Step(str):
    """A line of progress with the share of the work that is done.

    Args:
        text: the line.
        done: how much is done.
        total: how much there is to do.

    Attributes:
        share: done / total.
    """

    share: float

    def __new__(cls, text: str, done: float, total: float) -> Step:
        made = super().__new__(cls, text)
        made.share = done / total
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to rebuild the step in another process."""
        return Step, (str(self), self.share, 1)


def reading_of(progress: Callable[[str], None], paths: Iterable[str]) -> Callable[[int], None]:
    """Tell how many reports of these files were read; they are counted once there is something to tell."""
    total = cache(lambda: sum(_about_how_many(path) for path in paths))

    def tell(count: int) -> None:
        progress(Step(f"{count:,} reports read", count, max(count, total())))

    return tell


def columns_of(progress: Callable[[str], None]) -> Callable[[int, int], None]:
    """Tell how many reports were read, of how many."""

    def tell(count: int, total: int) -> None:
        if total:
            progress(Step(f"{count:,} reports read", count, total))

    return tell


def _about_how_many(path: str) -> int:
    """0 where that is not known."""
    if path == STREAM:
        return 0
    if not path.lower().endswith(".parquet"):
        return count_lines(path)
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        return int(read_metadata(path).num_rows)
    except (ArrowException, OSError):
        # Reading the file reports the error.
        return 0
