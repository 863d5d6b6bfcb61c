"""How much a benchmark does: `--quick` is less of it, `--tiny` the least that still runs all of its code."""

from __future__ import annotations

import argparse
from enum import Enum
from typing import TypeVar

Setting = TypeVar("Setting")


class Size(Enum):
    """What a tiny run prints says nothing of what is measured."""

    WHOLE = "whole"
    QUICK = "quick"
    TINY = "tiny"

    def of(self, whole: Setting, quick: Setting, tiny: Setting) -> Setting:
        """The setting of this size."""
        return {Size.WHOLE: whole, Size.QUICK: quick, Size.TINY: tiny}[self]


def add_sizes(parser: argparse.ArgumentParser, quick: str | None = None) -> None:
    """Register --tiny, and --quick where there is such a size. quick: what it leaves out."""
    parser.set_defaults(size=Size.WHOLE)
    sizes = {"--tiny": (Size.TINY, "the least that runs all; its figures say nothing")}
    if quick is not None:
        sizes["--quick"] = (Size.QUICK, quick)
    for name, (size, text) in sizes.items():
        parser.add_argument(name, dest="size", action="store_const", const=size, help=text)
