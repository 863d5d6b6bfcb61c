"""Templates of pages, and of texts in Markdown and LaTeX. They escape markup in inserted text."""

from __future__ import annotations

import re
from collections.abc import Callable

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from ldp_client.words.text import visible

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&",
    "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "[": "{[}", "]": "{]}", "*": "{*}", "`": "{`}", "'": "{'}",
    "-": "{-}", "−": "$-$", "–": "--", "±": r"$\pm$",
    "×": r"$\times$", "ε": r"$\varepsilon$", "δ": r"$\delta$",
    "≥": r"$\geq$", "≤": r"$\leq$", "“": "``", "”": "''", "…": r"\ldots{}", "·": r"$\cdot$", "→": r"$\to$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$]|^[#+=-])|^(\d+)([.)])(?=\s|$)")


def latex(text: object) -> str:
    """Escape text for LaTeX, so that it prints literally, also in a table cell."""
    return "".join(_LATEX.get(character, character) for character in " ".join(visible(str(text)).split()))


def markdown(text: object) -> str:
    """Escape text for a line or a cell of Markdown, so that it shows literally and contains no HTML."""
    line = " ".join(visible(str(text)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", line)


def environment(finalize: Callable[[object], object] | None = None, *packages: str) -> Environment:
    """Return an environment: pages autoescape; in texts, every value passes through `finalize`.

    packages: whose templates it has besides those of this package.
    """
    return Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in ("inference.results", *packages)]),
        autoescape=select_autoescape(default=True, default_for_string=True) if finalize is None else False,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=finalize,
    )


PAGES, MARKDOWN, LATEX = environment(), environment(markdown), environment(latex)
