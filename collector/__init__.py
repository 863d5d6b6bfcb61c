"""The server that stores studies and the noisy reports that devices send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    # Flask loads on first use, so that the command line can be built without the extra.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from collector.app import create_app

    return create_app
