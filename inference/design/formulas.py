"""Plans of formulas, from the information of the reports and the default priors. Loads no JAX.

The outcome is private: a choice with a logit link (cumulative for a scale), or a number with a normal law.
The right side has public columns. A report's law is the channel's, averaged over the law of answers in its
cell.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from inference.analyses.design_file import ColumnDesign, Design
from inference.analyses.formula import INTERCEPT, Formula, named, parse
from inference.analyses.matrices import matrix_of, variables
from inference.analyses.public_columns import COUNT
from inference.default_priors import LOGIT_SCALE, NUMBER_SCALE
from inference.design.information import DEVICES, HALF, information
from inference.design.notes import rough_notes
from inference.design.people import Outcome, outcome_of, people_in, uniform_people
from inference.design.plan import Plan
from inference.design.questions import answers_of
from inference.limits import check_devices
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError
from schemas import Question, Study
from summaries import check_study

Vector = NDArray[np.float64]

# The most combinations of public values that are summed over.
MOST_CELLS = 20_000
# The number of people over whom transforms such as scale() are found.
PEOPLE = 100_000
# A wider posterior of a difference on the logit scale is not normal. Of a number: of two of its sds.
ROUGH = 0.8
# A small change of an argument of a law; steps to the intercepts that give stated shares.
STEP, STEPS = 1e-4, 500


def plan_formula(
    source: Study | Design,
    formula: str,
    known: pd.DataFrame | None = None,
    devices: Sequence[int] = DEVICES,
    truth: Mapping[str, float] | None = None,
) -> Plan:
    """Predict the widths of a formula's coefficients.

    Args:
        source: a study, or the design of a survey done with dice.
        formula: a private outcome, and public columns.
        known: a table of people with the public columns; a study's values are equally likely without one.
        devices: numbers of people.
        truth: {"ever": 0.2, "job[worker]": 0.3} of the outcome's answers, the others share the remainder; and
            {coefficient: value}, by default 0.

    Returns:
        Half widths by coefficient, with effects whose power it has.

    Raises:
        InputError: a formula that cannot be planned, an impossible truth, or a wrong table of people.
    """
    # 1. The outcome, and the public columns.
    study = source if isinstance(source, Study) else None
    fields = {field.id: field for field in study.public} if study is not None else {}
    parsed, asked, right = _parsed(source, formula, known)
    # 2. The people, and what they report.
    parts = asked.parts if isinstance(asked, ColumnDesign) else ()
    names = list(dict.fromkeys([*right, *(name for part in parts for name in part.rows)]))
    people = (
        people_in(known, names, fields)
        if known is not None
        else uniform_people([fields[one] for one in names])
    )
    if len(people.frame) > MOST_CELLS:
        raise InputError(
            f"{len(people.frame):,} combinations of public values are too many to sum over: name fewer "
            "columns, or give a --table of people with coarser ones",
            code="plan.too_many_combinations",
        )
    outcome = outcome_of(asked, people)
    # 3. The truth of the law's arguments in each cell.
    counts = np.maximum(np.rint(PEOPLE * people.shares), 1).astype(np.int64)
    matrix = matrix_of(parsed.fixed, people.frame, (), counts)
    kept = [place for place, term in enumerate(matrix.terms) if not (outcome.ordered and term == INTERCEPT)]
    columns = matrix.values[:, 0, kept]
    outputs = outcome.outputs
    labels = [[named(matrix.terms[place], matrix.levels[place], one) for one in outputs] for place in kept]
    at, values, assumed = _truth(outcome, labels, columns, people.shares, dict(truth or {}))
    # 4. The information of one report on the coefficients, by the chain rule, and the default priors.
    each = information(outcome.law, at, np.full(at.shape[1], STEP * _scale(outcome)), outcome.channel)
    design = np.zeros((*at.shape, len(values)))
    for place in range(len(outputs)):
        design[:, place, place : columns.shape[1] * len(outputs) : len(outputs)] = columns
    for place in range(len(outcome.own)):
        design[:, len(outputs) + place, columns.shape[1] * len(outputs) + place] = 1
    whole = np.einsum("c,cap,cab,cbq->pq", people.shares, design, each, design, optimize=True)
    units, precision = _prior(outcome, columns, people.shares, labels)
    if not outcome.answers:
        units[-1] = 2 * ROUGH / values["sigma"]
    # 5. The widths.
    for n in devices:
        check_devices(n)
    chosen = tuple(sorted(set(devices)))
    answers = [n if study is None else answers_of(study, n) for n in chosen]
    halves = HALF * np.sqrt([np.diag(np.linalg.inv(n * whole + precision)) for n in answers]).T
    rough = np.asarray((halves * units[:, None] > ROUGH).any(axis=0))
    epsilon = str(asked.mechanism.epsilon) if isinstance(asked, Question) else ""
    slopes = [name for row in labels for name in row if not name.startswith(INTERCEPT)]
    return Plan(
        question=outcome.name,
        model=formula,
        devices=chosen,
        half_widths={epsilon: dict(zip(values, halves, strict=True))},
        truth=dict(truth or {}),
        notes=(*rough_notes({"": rough}, chosen), *(f"assumed: {line}" for line in (*assumed, people.words))),
        effects={name: values[name] for name in slopes if values[name]},
        odds=tuple(slopes) if outcome.answers else (),
    )


def _parsed(
    source: Study | Design, formula: str, known: pd.DataFrame | None
) -> tuple[Formula, Question | ColumnDesign, list[str]]:
    """Return a formula, its private outcome, and its public columns. Raises InputError for other formulas."""
    private: dict[str, Question | ColumnDesign] = {}
    if isinstance(source, Study):
        check_study(source)
        private |= {question.id: question for question in source.questions}
        public = [field.id for field in source.public]
    else:
        private |= {column.name: column for column in source.columns}
        own = {*private, COUNT}
        public = [] if known is None else [str(name) for name in known.columns if name not in own]
    parsed = parse(formula, [*private, *public])
    right = variables(parsed.fixed, [*private, *public])
    wrong = [name for name in right if name in private] or [one.group for one in parsed.varying]
    if parsed.outcome not in private or wrong:
        raise InputError(
            f"a plan takes a formula with a private outcome and public columns: leave out "
            f"{wrong[0] if wrong else parsed.outcome}",
            code="plan.formula_not_plannable",
        )
    return parsed, private[parsed.outcome], right


def _truth(
    outcome: Outcome,
    labels: Sequence[Sequence[str]],
    columns: Vector,
    shares: Vector,
    given: dict[str, float],
) -> tuple[Vector, dict[str, float], list[str]]:
    """Return the law's arguments in each cell, {parameter: value}, and assumptions in words.

    given: the stated truth, which is emptied. Raises InputError for a truth that no law has, or that a plan
    cannot guess.
    """
    names = [name for row in labels for name in row]
    stated = {name: given.pop(name) for name in (*names, *outcome.own) if name in given}
    values = {name: stated.get(name, 0.0) for name in (*names, *outcome.own)}
    linear = columns @ np.reshape([values[name] for name in names], (len(labels), len(outcome.outputs)))
    free = [name for name in names if name.startswith(INTERCEPT)]
    words: list[str] = []
    if outcome.answers:
        free = list(outcome.own) or free
        if not free or any(name in stated for name in free):
            raise InputError(
                f"a plan finds the intercept from the share of {outcome.name}: state that, as in --truth "
                f"{outcome.name}=0.2, and keep the intercept in the formula",
                code="plan.intercept_follows",
            )
        wanted, words = _shares(outcome, given)
        at, found = _with_shares(outcome, linear, shares, wanted)
        values |= dict(zip(free, found.tolist(), strict=True))
    else:
        for name in (*free, *outcome.own):
            if name not in stated:
                raise InputError(
                    f"state what {name} may be, such as --truth {name}=0.5: a plan cannot guess it",
                    code="plan.truth_missing",
                )
        if not values["sigma"] > 0:
            raise InputError("the truth of sigma must be above 0", code="plan.formula_truth_not_positive")
        at = np.concatenate([linear, np.full((len(linear), 1), values["sigma"])], axis=1)
    if given:
        raise InputError(
            f"{next(iter(given))!r} is no parameter of the formula, which has {listed(list(values))}",
            code="plan.unknown_truth",
        )
    effects = ", ".join(f"{name} {value:g}" for name, value in stated.items())
    return at, values, [*words, f"effects: {f'{effects}; all others ' if effects else 'all '}0"]


def _with_shares(outcome: Outcome, linear: Vector, shares: Vector, wanted: Vector) -> tuple[Vector, Vector]:
    """Return a choice's arguments at which all people have the wanted shares, and intercepts or cutpoints."""

    def arguments(found: Vector) -> Vector:
        if not outcome.ordered:
            return linear + found
        return np.concatenate([linear, np.tile(found, (len(linear), 1))], axis=1)

    def logs(average: Vector) -> Vector:
        return np.asarray(
            logit(np.cumsum(average)[:-1]) if outcome.ordered else np.log(average[1:] / average[0])
        )

    found = gap = logs(wanted)
    # Each step closes a part of the gap, as the average law's logits move by less than the intercepts.
    for _ in range(STEPS):
        gap = logs(wanted) - logs(shares @ outcome.law(arguments(found)))
        found = found + gap
        if np.abs(gap).max() < STEP**2:
            return arguments(found), found
    raise InputError(
        "no intercept gives these shares with these effects: state smaller effects", code="plan.no_intercept"
    )


def _shares(outcome: Outcome, given: dict[str, float]) -> tuple[Vector, list[str]]:
    """Take the shares of the answers out of a stated truth; others share the remainder."""
    keys = {answer: named(outcome.name, answer) for answer in outcome.answers}
    if len(keys) == 2 and outcome.name in given:
        given[keys[outcome.answers[1]]] = given.pop(outcome.name)
    stated = {answer: given.pop(key) for answer, key in keys.items() if key in given}
    rest, left = len(keys) - len(stated), 1 - sum(stated.values())
    if any(not 0 < share < 1 for share in stated.values()) or (left < 1e-9 if rest else abs(left) > 1e-6):
        raise InputError(
            f"the shares of {outcome.name} must be between 0 and 1, and add up to 1", code="plan.wrong_shares"
        )
    shares = np.asarray([stated.get(answer, left / max(rest, 1)) for answer in keys])
    words = ", ".join(f"{answer} {100 * share:.3g} %" for answer, share in zip(keys, shares, strict=True))
    how = "" if stated else f" (not stated: --truth {keys[outcome.answers[-1]]}=…)"
    return shares, [f"{outcome.name}: {words}{how}"]


def _scale(outcome: Outcome) -> float:
    """Return the sd of default priors: of the intercept, and of a coefficient times its column's unit."""
    return LOGIT_SCALE if outcome.answers else NUMBER_SCALE * outcome.units[1]


def _prior(
    outcome: Outcome, columns: Vector, shares: Vector, labels: Sequence[Sequence[str]]
) -> tuple[Vector, Vector]:
    """Return the units in which widths are judged, and the precision of the default priors.

    Raises InputError for columns that are collinear.
    """
    middles = shares @ columns
    spreads = np.sqrt(np.maximum(shares @ (columns - middles) ** 2, 0))
    two = np.asarray([len(np.unique(column)) <= 2 for column in columns.T], bool)
    # A level's prior is of the difference itself, however rare the level is.
    units = np.where(two, np.maximum(np.ptp(columns, axis=0), spreads), spreads)
    full = np.sqrt(shares)[:, None] * columns[:, columns.any(axis=0)]
    if full.size and np.linalg.matrix_rank(full / np.linalg.norm(full, axis=0)) < full.shape[1]:
        raise InputError(
            "columns of the formula are collinear, or the same for all people: leave one out",
            code="formula.collinear_columns",
        )
    outputs, scale = len(outcome.outputs), _scale(outcome)
    intercept = np.asarray([row[0].startswith(INTERCEPT) for row in labels], bool)
    units = np.where(intercept, 1.0, np.where(units > 0, units, 1.0))
    # The intercept's prior is of the linear predictor at the columns' means.
    precision = np.diag(np.where(intercept, 0.0, units**2 / scale**2))
    precision += np.outer(middles, middles) / scale**2 * intercept.any()
    size = len(labels) * outputs
    whole = np.zeros((size + len(outcome.own),) * 2)
    whole[:size, :size] = np.kron(precision, np.eye(outputs))
    whole[range(size, len(whole)), range(size, len(whole))] = 1 / scale**2
    judged = np.where(intercept, float(intercept.all()), np.where(two, 1, 2) * units) * bool(outcome.answers)
    return np.concatenate([np.repeat(judged, outputs), np.zeros(len(outcome.own))]), whole
