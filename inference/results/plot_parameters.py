"""Common settings of posteriors' pictures: the parameters shown, their labels and the colours."""

from __future__ import annotations

import textwrap

from inference.results.posterior import Posterior
from ldp_client.words.text import visible

PRIVATE, RAW, PRIOR = "#1b5e9e", "#d9822b", "#8a8f98"
POINTS, INCHES_WIDE = 72, 4.8
LABEL_WIDTH = 26
# More rows would make the page slow and unreadable.
MOST_ROWS = 30


def shown(posterior: Posterior) -> list[str]:
    """Return all parameters, or the MOST_ROWS with the largest means, in their original order."""
    means = {name: float(draws.mean()) for name, draws in posterior.draws.items()}
    kept = set(sorted(means, key=lambda name: -means[name])[:MOST_ROWS])
    return [name for name in posterior.draws if name in kept]


def wrapped(name: str) -> str:
    """Wrap a parameter's name into short lines, without invisible characters."""
    return "\n".join(textwrap.wrap(visible(name), LABEL_WIDTH))
