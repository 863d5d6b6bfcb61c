"""Shrink the device library for installation: no comments, docstrings only for apps, one-space indents.

A phone carries every byte of the library, and half of the source is text for developers. Line numbers do
not change, so that tracebacks match the repository. The code does not change either, which a test checks.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Union

KINDS = (ast.Module, ast.FunctionDef, ast.ClassDef)
# Tokens that are not text, but may end on another line than they begin.
LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
INDENT = 4
Definition = Union[ast.Module, ast.FunctionDef, ast.ClassDef]


def make_lean(package: Path) -> None:
    """Shrink every Python file below a package's folder, in place."""
    used = names_of_users(package)
    for path in sorted(package.rglob("*.py")):
        path.write_text(lean(path.read_text(encoding="utf-8"), used), encoding="utf-8")


def names_of_users(package: Path) -> frozenset[str]:
    """Return the names that the package exports, and the errors that it raises."""
    for node in ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            exported = ast.literal_eval(node.value)
    errors = ast.parse((package / "documents/errors.py").read_text(encoding="utf-8")).body
    return frozenset([*exported, *(node.name for node in errors if isinstance(node, ast.ClassDef))])


def lean(source: str, used: frozenset[str]) -> str:
    """Return a module's text without comments. Docstrings stay only for the names in `used`."""
    lines = source.split("\n")
    for definition in _undocumented(ast.parse(source), used):
        text = definition.body[0]
        lines[text.lineno - 1 : text.end_lineno] = [""] * ((text.end_lineno or 0) - text.lineno + 1)
        if len(definition.body) == 1 and not isinstance(definition, ast.Module):
            lines[text.lineno - 1] = " " * text.col_offset + "pass"
    fixed: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        (row, column), (last, _) = token.start, token.end
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column].rstrip()
        elif token.type not in LAYOUT:
            # Spaces within a multi-line string belong to the string.
            fixed.update(range(row, last))
    return "\n".join(line if row in fixed else _indented_by_one(line) for row, line in enumerate(lines))


def _indented_by_one(line: str) -> str:
    text = line.lstrip(" ")
    return " " * ((len(line) - len(text)) // INDENT) + text


def _undocumented(tree: ast.Module, used: frozenset[str]) -> Iterator[Definition]:
    """Yield definitions whose docstrings are removed: all except used names and their public methods."""
    kept: set[ast.AST] = set()
    for top in tree.body:
        if isinstance(top, (ast.FunctionDef, ast.ClassDef)) and top.name in used:
            methods = [one for one in top.body if isinstance(one, ast.FunctionDef)]
            kept |= {top, *(one for one in methods if not one.name.startswith("_"))}
    for node in ast.walk(tree):
        if not isinstance(node, KINDS) or node in kept:
            continue
        if ast.get_docstring(node, clean=False) is not None:
            yield node
