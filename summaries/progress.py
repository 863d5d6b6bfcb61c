"""Progress of reading reports, which takes minutes where there are many millions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from ldp_client.commands.output import Progress, Step
from ldp_client.files.disk import STREAM, count_lines


def reading_of(progress: Progress, paths: Iterable[str]) -> Callable[[int], None]:
    """Tell how many reports of these files were read; they are counted once there is something to tell."""
    total = cache(lambda: sum(_about_how_many(path) for path in paths))

    def tell(count: int) -> None:
        progress(Step(f"{count:,} reports read", count, max(count, total())))

    return tell


def columns_of(progress: Progress) -> Callable[[int, int], None]:
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
