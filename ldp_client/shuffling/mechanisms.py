"""Compute the law of mechanisms' payloads from their integers, exactly or rounded towards less privacy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ldp_client.core.integers import ceil_div, exp_bounds
from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.shuffling.law import Law, any_law, bounded_law, choice_law, compose, mixture

EXP_BITS = 128


def law_of(mechanism: Mechanism) -> Law:
    """Return the law of one mechanism's payloads.

    Args:
        mechanism: a mechanism with pure ε, without a secure sum.

    Returns:
        The law.

    Raises:
        InputError: its noise has a δ, or it is memoized: repeated reports of a permanent answer, each among
            other people, reveal more with each version.
    """
    if mechanism.privacy.delta != Rational(0):
        raise InputError.say("set.has_delta", question=mechanism.field)
    if mechanism.name == "memoized":
        raise InputError.say("set.memoized", question=mechanism.field)
    if isinstance(mechanism, ChoiceMechanism):
        return _of_choice(mechanism)
    if mechanism.name == "sampled_products":
        return _of_patterns(mechanism)
    growth = exp_above(mechanism.privacy.epsilon)
    if mechanism.name == "laplace":
        half = mechanism.privacy.epsilon * Rational(1, 2)
        return bounded_law(growth, 1 - 1 / exp_above(half))
    return any_law(growth)


def _of_choice(mechanism: ChoiceMechanism) -> Law:
    growth = Fraction(*mechanism.odds)
    # In a Hadamard response, fewer payloads support both choices if these are in different blocks.
    others = [mechanism.q, getattr(mechanism, "q_elsewhere", mechanism.q)]
    difference = _exact(mechanism.p) - min(_exact(other) for other in others)
    both = _exact(mechanism.p) - difference * growth / (growth - 1)
    return choice_law(growth, difference, both)


def _of_patterns(mechanism: Any) -> Law:
    """Return the law of randomized sign patterns: two records may differ in every sign of every block."""
    p = _exact(mechanism.p)
    return choice_law(Fraction(*mechanism.odds), p - (1 - p) / (mechanism.patterns - 1), Fraction(0))


def _exact(number: Rational) -> Fraction:
    return Fraction(number.numerator, number.denominator)


def exp_above(epsilon: Rational) -> Fraction:
    """Bound e^ε from above.

    Args:
        epsilon: at most 300.

    Returns:
        A fraction over 2**128.
    """
    scaled = ceil_div(epsilon.numerator << EXP_BITS, epsilon.denominator)
    return Fraction(exp_bounds(scaled, EXP_BITS)[1], 1 << EXP_BITS)


def law_of_report(study: Study) -> Law:
    """Return the law of a person's whole report to a study.

    Args:
        study: a study that asks people, without a secure sum.

    Returns:
        The law of a whole report.

    Raises:
        InputError: the study has a secure sum, is for data holders, or has a question for which no bound is
            known (see `law_of`).
    """
    if study.protocol is not None or study.respondent == "holder":
        raise InputError.say("set.no_reports", study=study.id)
    laws = {name: law_of(mechanism) for name, mechanism in mechanisms_of(study).items()}
    return mixture(list(laws.values())) if study.sample_one_question else compose(list(laws.values()))
