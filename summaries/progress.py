"""Steps of progress, and the progress of reading reports, which takes minutes if there are many millions."""

from __future__ import annotations

from collections.abc import Callable


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


def reading_of(progress: Callable[[str], None]) -> Callable[..., None]:
    """Return a function that tells how many reports were read, of how many if that is known."""

    def tell(count: int, total: int = 0) -> None:
        text = f"{count:,} reports read"
        progress(Step(text, count, total) if total else text)

    return tell
