"""The templates of pages. They escape markup in inserted text."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

PAGES = Environment(
    loader=PackageLoader("inference.results"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
