"""Templates: of pages, and of texts in Markdown and LaTeX, in which what others wrote is no markup."""

from __future__ import annotations

import re
from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

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
    """Text for LaTeX that prints as it stands, in a cell of a table too."""
    return "".join(_LATEX.get(character, character) for character in " ".join(visible(str(text)).split()))


def markdown(text: object) -> str:
    """Text for a line or a cell of Markdown that shows as it stands, of HTML nothing."""
    line = " ".join(visible(str(text)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", line)


def _environment(finalize: Callable[[object], object] | None = None) -> Environment:
    """Pages escape by themselves; of texts each value passes through `finalize`: none is forgotten."""
    return Environment(
        loader=PackageLoader("inference.results"),
        autoescape=select_autoescape(default=True, default_for_string=True) if finalize is None else False,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=finalize,
    )


PAGES, MARKDOWN, LATEX = _environment(), _environment(markdown), _environment(latex)
