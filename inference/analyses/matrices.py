"""Design matrices: a formula's columns over public cells and the possible answers of private predictors."""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from formulaic import Formula as Formulaic
from formulaic.errors import DataMismatchWarning
from formulaic.parser.types import Factor
from formulaic.transforms import TRANSFORMS

from inference.analyses.formula import INTERCEPT, Names, known_column, parse
from inference.analyses.table import Codes, Private, Values
from ldp_client.documents.errors import InputError

# The most rows over which a transform such as scale() is found.
MOST_ROWS = 20_000_000


@dataclass(frozen=True)
class Matrix:
    """values: (cells, combinations, columns). terms: each column's term; levels: its level, "" for none.

    combinations: of answers of the private predictors. spec: formulaic's, which reads other frames.
    """

    values: Values
    terms: tuple[str, ...]
    levels: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]
    spec: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Return each column's name as in bambi: the term, and its level in brackets."""
        pairs = zip(self.terms, self.levels, strict=True)
        return tuple(f"{term}[{level}]" if level else term for term, level in pairs)


def variables(side: str, columns: Sequence[str]) -> list[str]:
    """Return the columns named on a right side, in table order.

    Raises InputError for an unknown column, and for a term whose value in a row depends on the other rows.
    Rows are patterns of reports, so neither their number nor their order is that of the people, and a census
    has other rows: `age.mean()` would differ in each. Transforms such as center() keep what they found.
    """
    names, named = Names(columns), set()
    for factor in {factor for term in _read(side, names) for factor in term.factors}:
        if factor.eval_method is Factor.EvalMethod.LOOKUP:
            named.add(names.restored(str(factor.expr)))
        elif factor.eval_method is Factor.EvalMethod.PYTHON:
            nodes = list(ast.walk(ast.parse(str(factor.expr), mode="eval")))
            named |= {names.restored(node.id) for node in nodes if isinstance(node, ast.Name)}
            called = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
            odd = [name for name in called if not _is_of_single_rows(name)]
            if odd:
                known_column(odd[0].split(".")[0], [*columns, *TRANSFORMS])
                raise InputError(
                    f"{names.restored(str(factor.expr))} may depend on other rows, which are patterns of "
                    "reports, not people: use center() or scale(), np.log and the like, or add a column",
                    code="formula.term_depends_on_rows",
                )
    for name in sorted(named - set(TRANSFORMS)):
        known_column(name, columns)
    return [name for name in columns if name in named]


def _is_of_single_rows(function: str) -> bool:
    """Return True for formulaic's transforms and contrasts, and for NumPy's functions of single numbers."""
    of_numpy = function.startswith("np.") and isinstance(getattr(np, function[3:], None), np.ufunc)
    return (function in TRANSFORMS and function != "lag") or function.startswith("contr.") or of_numpy


def columns_of(text: str | None, columns: Sequence[str], also: Sequence[str] = ()) -> list[str]:
    """Return all columns that a formula names, in table order, and `also`. Raises InputError."""
    if text is None:
        return list(also)
    formula = parse(text, columns)
    named = {formula.outcome, *variables(formula.fixed, columns)}
    for one in formula.varying:
        named |= {one.group, *variables(one.expression, columns)}
    return [*(name for name in columns if name in named), *also]


def without(side: str, columns: Sequence[str], others: Sequence[str]) -> str:
    """Return a right side without the terms that name `others`, and with an intercept."""
    names = Names(columns)
    terms = [":".join(map(str, term.factors)) for term in _read(side, names)]
    kept = [term for term in terms if not set(variables(names.restored(term), columns)) & set(others)]
    return " + ".join(dict.fromkeys(["1", *map(names.restored, kept)]))


def _read(side: str, names: Names) -> Any:
    try:
        return Formulaic(names.put(side))
    except Exception as error:
        raise InputError(
            f"the formula's terms {side!r} cannot be read: {_one_line(error)}",
            code="formula.terms_not_readable",
        ) from None


def matrix_of(side: str, frame: pd.DataFrame, predictors: Sequence[Private], sizes: Codes) -> Matrix:
    """Return the design matrix of a right side over the cells of a frame.

    predictors: private columns, which run over their answers in every cell. sizes: reports in each cell, over
    which transforms such as scale() are found. Raises InputError if a term cannot be evaluated.
    """
    answers = combinations(predictors)
    expanded, names = _over_answers(frame, predictors, answers)
    found = _evaluated(_read(side, names), expanded, names)
    if found.model_spec.transform_state:
        # Over all reports, instead of once for each cell.
        repeats = np.repeat(sizes, len(answers))
        if repeats.sum() > MOST_ROWS:
            raise InputError(
                f"{side!r} has a transform that is found over all reports, more than {MOST_ROWS:,} here: "
                "add it to the table as a column",
                code="formula.too_many_reports_to_transform",
            )
        whole = expanded.loc[np.repeat(np.asarray(expanded.index), repeats)].reset_index(drop=True)
        spec = _evaluated(_read(side, names), whole, names).model_spec
        found = _evaluated(spec, expanded, names)
    for part in found.model_spec.structure:
        # formulaic drops a factor with one level.
        if not part.columns:
            term = names.restored(str(part.term))
            named = f"{term}, or a factor of it," if part.term.degree > 1 else term
            raise InputError(
                f"{named} has the same level in every row, so it has no estimable effect: remove it",
                code="formula.one_level_factor",
            )
    terms, levels = _labels(found.model_spec, names)
    shaped = np.asarray(found, np.float64).reshape(len(frame), len(answers), -1)
    return Matrix(shaped, terms, levels, answers, found.model_spec)


def again(matrix: Matrix, frame: pd.DataFrame, predictors: Sequence[Private] = ()) -> Values:
    """Return the same columns over another frame, (rows, combinations, columns).

    Raises InputError for levels that the first frame lacks, and if a term is not finite: a share would be 0
    or 1 whatever its slope is.
    """
    values = _evaluated(matrix.spec, *_over_answers(frame, predictors, matrix.combinations))
    return np.asarray(values, np.float64).reshape(len(frame), len(matrix.combinations), -1)


def combinations(predictors: Sequence[Private]) -> tuple[tuple[str, ...], ...]:
    """Return all combinations of the private predictors' answers, the last predictor's fastest."""
    return tuple(product(*(one.answers for one in predictors)))


def weights_of(matrix: Matrix, sizes: Codes) -> Values:
    """Return weights (cells, combinations), proportional to the reports from each cell."""
    count = len(matrix.combinations)
    return np.repeat((sizes / sizes.sum() / count)[:, None], count, axis=1)


def _over_answers(
    frame: pd.DataFrame, predictors: Sequence[Private], answers: Sequence[tuple[str, ...]]
) -> tuple[pd.DataFrame, Names]:
    """Repeat every row for each combination of answers; return the frame under stand-ins, and their names."""
    names = Names([*map(str, frame.columns), *(one.name for one in predictors)])
    if predictors:
        count = len(frame)
        frame = frame.loc[np.repeat(np.asarray(frame.index), len(answers))].reset_index(drop=True)
        places = np.unravel_index(np.arange(len(answers)), [len(one.answers) for one in predictors])
        for own, one in zip(places, predictors, strict=True):
            categories = list(one.answers)
            frame[one.name] = pd.Categorical.from_codes(np.tile(own, count), categories=categories)
    renamed = frame.rename(columns=dict(names.stand_ins))
    # A frame without columns has no rows for formulaic.
    return (renamed if len(renamed.columns) else renamed.assign(column0z=0.0)), names


def _labels(spec: Any, names: Names) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return each column's term, and each column's level."""
    terms: list[str] = []
    levels: list[str] = []
    for part in spec.structure:
        factors = [str(factor) for factor in part.term.factors]
        term = INTERCEPT if factors == ["1"] else ":".join(map(names.restored, factors))
        forms = [_form_of(scoped, names) for scoped in part.scoped_terms]
        for column in part.columns:
            matches = [form.fullmatch(names.restored(str(column))) for form in forms]
            found = next((match.groups() for match in matches if match), ())
            terms.append(term)
            levels.append(", ".join(level for level in found if level))
    return tuple(terms), tuple(levels)


def _form_of(scoped: Any, names: Names) -> re.Pattern[str]:
    """Return a pattern for formulaic's column names: a contrast adds a letter if one level is left out."""
    found = []
    for one in scoped.factors:
        letter = r"(?:[A-Z]\.)?" if one.reduced else ""
        found.append(rf"{re.escape(names.restored(str(one.factor.expr)))}(?:\[{letter}(.*)\])?")
    return re.compile(":".join(found), re.DOTALL)


def _evaluated(formula: Any, frame: pd.DataFrame, names: Names) -> Any:
    """Return formulaic's matrix. Raises InputError if a term cannot be evaluated, or is not finite."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataMismatchWarning)
            found = formula.get_model_matrix(frame, na_action="raise", context={}, output="pandas")
    except Exception as error:
        raise InputError(
            f"a term of the formula cannot be evaluated: {names.restored(_one_line(error))}",
            code="formula.term_not_evaluated",
        ) from None
    odd = np.flatnonzero(~np.isfinite(np.asarray(found, np.float64)).all(axis=0))
    if len(odd):
        raise InputError(
            f"the term {names.restored(str(found.columns[odd[0]]))} is not a finite number in some rows: "
            "change the term or the rows",
            code="formula.term_not_finite",
        )
    return found


def _one_line(error: BaseException) -> str:
    return re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", " ".join(str(error).split()))[:300]
