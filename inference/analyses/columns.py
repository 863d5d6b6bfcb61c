"""Find the terms, levels and factors of a design matrix's columns."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from formulaic.parser.types import Factor
from formulaic.transforms import TRANSFORMS
from formulaic.transforms.contrasts import TreatmentContrasts

from inference.analyses.formula import Names
from inference.analyses.parameter_names import INTERCEPT
from ldp_client.documents.errors import InputError

NUMBER, LEVEL, OTHER = "number", "level", "other"


@dataclass(frozen=True)
class Part:
    """One factor of a column. text: as in the formula. level: the column's level, "" for a number.

    kind: a number; a level against the first level; or another kind, such as a spline or another contrast.
    columns: the table's columns that the factor names.
    """

    text: str
    kind: str
    columns: tuple[str, ...] = ()
    level: str = ""


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
            _, found = _scoped(str(column), part, names)
            levels.append(", ".join(level for level in found if level))
    both = list(zip(terms, levels, strict=True))
    if len(set(both)) < len(both):
        levels = [names.restored(str(column)) for part in spec.structure for column in part.columns]
    return tuple(terms), tuple(levels)


def parts(spec: Any, names: Names) -> tuple[tuple[Part, ...], ...]:
    """Return each column's factors."""
    found = []
    for one in spec.structure:
        for column in one.columns:
            scoped, levels = _scoped(str(column), one, names)
            own = zip(scoped.factors if scoped is not None else (), levels, strict=False)
            found.append(tuple(_part(factor, level, spec.encoder_state, names) for factor, level in own))
    return tuple(found)


def _part(scoped: Any, level: str, encoders: Any, names: Names) -> Part:
    expression = str(scoped.factor.expr)
    # The name of a called function, such as bs, is not a column.
    called = {*TRANSFORMS} - {expression}
    columns = tuple(names.restored(name) for name in names_in(scoped.factor.factor) if name not in called)
    part = partial(Part, names.restored(expression), columns=columns, level=level)
    kind, state = encoders.get(expression, (None, {}))
    if kind is Factor.Kind.NUMERICAL:
        return part(OTHER if level else NUMBER)
    contrasts = getattr(state.get("contrasts"), "contrasts", None)
    return part(LEVEL if scoped.reduced and isinstance(contrasts, TreatmentContrasts) else OTHER)


def _scoped(column: str, part: Any, names: Names) -> tuple[Any, tuple[str, ...]]:
    """Return the column's product in a term, and each of its factors' levels, "" for none."""
    for scoped in part.scoped_terms:
        match = _form_of(scoped, names).fullmatch(names.restored(column))
        if match:
            return scoped, tuple(level or "" for level in match.groups())
    return None, ()


def _form_of(scoped: Any, names: Names) -> re.Pattern[str]:
    """Return a pattern for formulaic's column names: a contrast adds a letter if one level is left out."""
    found = []
    for one in scoped.factors:
        letter = r"(?:[A-Z]\.)?" if one.reduced else ""
        found.append(rf"{re.escape(names.restored(str(one.factor.expr)))}(?:\[{letter}(.*)\])?")
    return re.compile(":".join(found), re.DOTALL)
