"""Formulas over one record: its response, all its features, and public fields beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.analyses.formula import parse
from inference.analyses.matrices import Term, terms_of
from ldp_client.documents.errors import InputError
from schemas import Question, Study

MECHANISM = "sampled_products"
# Of an option.
FOR_SINGLE_QUESTIONS = "is for formulas of single questions: a record's regression has none"


@dataclass(frozen=True)
class RecordFormula:
    """text: as written. outcome: as it is named there. public: the terms of public fields, as a right side.

    fields: the public fields that these name, in the study's order.
    """

    text: str
    question: Question
    outcome: str
    public: str
    fields: tuple[Any, ...]


def record_formula(study: Study, text: str) -> RecordFormula | None:
    """The formula, where its outcome is a record's response, or the record itself; else None.

    Ids of other questions and of public fields come before those of responses. Raises InputError for a
    formula that no regression of the record has.
    """
    if not isinstance(text, str) or "~" not in text:
        return None
    outcome = text.split("~")[0].strip().strip("`").strip()
    question = _record(study, outcome)
    if question is None:
        return None
    _check_names(study, question)
    features = [field.id for field in question.features]
    fields = [field.id for field in study.public]
    formula = parse(text, [outcome, *features, *fields])
    if formula.varying:
        raise InputError(
            f"({formula.varying[0].expression} | {formula.varying[0].group}): a record's regression has no "
            f"terms that vary by group: name {formula.varying[0].group} as a column",
            code="formula.record_varies_by_group",
        )
    _refuse_other_questions(study, question, formula.fixed)
    terms = terms_of(formula.fixed, [*features, *fields])
    own = [term for term in terms if set(term.columns) & set(features)]
    _check_features(question, own)
    if "1" not in [term.text for term in terms]:
        raise InputError(
            "a regression of a record has an intercept: leave out the 0 or −1 of the formula",
            code="formula.record_without_intercept",
        )
    public = [term for term in terms if term not in own and term.text != "1"]
    if not public:
        raise InputError(
            f"the formula names no public field: `ldpkit fit` without --formula fits {question.id} alone",
            code="formula.no_public_field",
        )
    named = {name for term in public for name in term.columns}
    return RecordFormula(
        text,
        question,
        outcome,
        " + ".join(term.text for term in public),
        tuple(field for field in study.public if field.id in named),
    )


def _record(study: Study, outcome: str) -> Question | None:
    """The record of this id, or else with this response."""
    known = {question.id: question for question in study.questions}
    if outcome in known:
        found = [known[outcome]] if known[outcome].ask == "record" else []
    elif outcome in [field.id for field in study.public]:
        found = []
    else:
        found = [one for one in study.questions if one.ask == "record" and one.fields[-1].id == outcome]
    if len(found) > 1:
        both = ", ".join(one.id for one in found)
        raise InputError(
            f"several records have the response {outcome}: write one of {both} instead",
            code="formula.ambiguous_response",
        )
    return found[0] if found else None


def _check_names(study: Study, question: Question) -> None:
    """Raises InputError for a record whose regression has no public columns beside it."""
    if question.mechanism.name != MECHANISM:
        raise InputError(
            f"{question.id} is a record under {question.mechanism.name}: public fields stand beside records "
            f"under {MECHANISM} alone; `ldpkit fit` without a formula fits its own model",
            code="formula.record_without_public_fields",
        )
    if question.mechanism.products > 1:
        raise InputError(
            f"{question.id} has {question.mechanism.products} products a report: public fields stand beside "
            "records of one product a report alone; `ldpkit fit` without a formula fits its own model",
            code="formula.several_products_a_report",
        )
    if question.route is not None:
        raise InputError(
            f"{question.id} is a secure sum, of which no part is known by public cell",
            code="formula.secure_sum",
        )
    public = {field.id for field in study.public}
    both = [field.id for field in question.features if field.id in public]
    if both:
        raise InputError(
            f"{both[0]} is a feature of {question.id} and a public field: a formula cannot tell them apart",
            code="formula.feature_is_public_field",
        )


def _refuse_other_questions(study: Study, question: Question, side: str) -> None:
    """Raises InputError for another question on the right side: no report has products of both."""
    own = {field.id for field in question.features} | {field.id for field in study.public}
    others = [one.id for one in study.questions if one.id not in own]
    columns = [*own, *others]
    for term in terms_of(side, columns):
        for name in term.columns:
            if name in others:
                raise InputError(
                    f"{name} is another private question: the regression of {question.id} has its own "
                    "features and public fields",
                    code="formula.other_private_question",
                )


def _check_features(question: Question, terms: Sequence[Term]) -> None:
    """Raises InputError unless the terms are the features, each as it is, and the stated interactions."""
    ids = [field.id for field in question.features]
    stated = [(ids[one], ids[other]) for one, other in question.interactions]
    known = {frozenset([name]): name for name in ids}
    known |= {frozenset(pair): ":".join(pair) for pair in stated}
    named = set()
    for term in terms:
        as_it_is = [part.strip("`") for part in term.text.split(":")] == list(term.columns)
        if not as_it_is or frozenset(term.columns) not in known:
            raise InputError(
                f"{term.text}: a private feature is added as it is, {term.columns[0]}, neither changed nor "
                "multiplied, but for the products that the study states as interactions",
                code="formula.private_feature_changed",
            )
        named.add(frozenset(term.columns))
    missing = [name for columns, name in known.items() if columns not in named]
    if missing:
        raise InputError(
            f"{question.id} has the features {', '.join(known.values())}, which all belong to its "
            f"regression: add {' + '.join(missing)}",
            code="formula.features_missing",
        )
