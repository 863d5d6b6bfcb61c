"""Find the terms and levels of a design matrix's columns."""

from __future__ import annotations

import ast
import re
from typing import Any

from formulaic.parser.types import Factor

from inference.analyses.formula import Names
from inference.analyses.parameter_names import INTERCEPT
from ldp_client.documents.errors import InputError


def names_in(factor: Any) -> list[str]:
    """Return the names in a factor: columns and called functions."""
    if factor.eval_method is Factor.EvalMethod.LITERAL:
        return []
    if factor.eval_method is Factor.EvalMethod.LOOKUP:
        return [str(factor.expr)]
    try:
        tree = ast.parse(str(factor.expr), mode="eval")
    except SyntaxError:
        raise InputError(
            f"the formula's term {factor.expr!s} cannot be read", code="formula.factor_not_readable"
        ) from None
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def labels(spec: Any, names: Names) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return each column's term, and each column's level."""
    terms: list[str] = []
    levels: list[str] = []
    for part in spec.structure:
        factors = [names.restored(str(factor)) for factor in part.term.factors]
        # Checked before names are restored, because a column may be called 1.
        alone = [str(factor) for factor in part.term.factors] == ["1"]
        term = INTERCEPT if alone else ":".join(factors)
        if term == INTERCEPT and not alone:
            raise InputError(
                f"rename column {INTERCEPT}, or write I({INTERCEPT}), of levels C({INTERCEPT}): an analysis "
                "has a parameter of that name",
                code="formula.column_named_intercept",
            )
        for column in part.columns:
            terms.append(term)
            levels.append(_level(str(column), part, names))
    both = list(zip(terms, levels, strict=True))
    if len(set(both)) < len(both):
        levels = [names.restored(str(column)) for part in spec.structure for column in part.columns]
    return tuple(terms), tuple(levels)


def _level(column: str, part: Any, names: Names) -> str:
    """Return the levels of a column's factors, joined; "" for none."""
    for scoped in part.scoped_terms:
        match = _form_of(scoped, names).fullmatch(names.restored(column))
        if match:
            return ", ".join(level for level in match.groups() if level)
    return ""


def _form_of(scoped: Any, names: Names) -> re.Pattern[str]:
    """Return a pattern for formulaic's column names: a contrast adds a letter if one level is left out."""
    found = []
    for one in scoped.factors:
        letter = r"(?:[A-Z]\.)?" if one.reduced else ""
        found.append(rf"{re.escape(names.restored(str(one.factor.expr)))}(?:\[{letter}(.*)\])?")
    return re.compile(":".join(found), re.DOTALL)
