"""Templates of pages, and of texts in Markdown and LaTeX. They escape markup in inserted text."""

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
    """Escape text for LaTeX, so that it prints literally, also in a table cell."""
    return "".join(_LATEX.get(character, character) for character in " ".join(visible(str(text)).split()))


def markdown(text: object) -> str:
    """Escape text for a line or a cell of Markdown, so that it shows literally and contains no HTML."""
    line = " ".join(visible(str(text)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", line)


# Stands for a bar in a value; `block` shows this character itself as its escape.
BAR = "\ue000"
# Stands before a value that starts as a heading, a list or a blank does.
PLAIN = "\ue001"


def block(text: object) -> str:
    """Return a value for one cell of a table whose cells are separated by bars, or for a line of its own."""
    line = " ".join(visible(str(text)).split()).replace("|", BAR)
    return PLAIN + line if line.startswith(("#", "-", "?")) else line


def own_text(line: str) -> str:
    """Return a line without the marks of `block`."""
    return line.replace(BAR, "|").replace(PLAIN, "")


def _environment(finalize: Callable[[object], object] | None = None) -> Environment:
    """Return an environment: pages autoescape; in texts, every value passes through `finalize`."""
    return Environment(
        loader=PackageLoader("inference.results"),
        autoescape=select_autoescape(default=True, default_for_string=True) if finalize is None else False,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=finalize,
    )


PAGES, MARKDOWN, LATEX = _environment(), _environment(markdown), _environment(latex)
BLOCKS = _environment(block)
