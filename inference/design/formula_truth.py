"""A stated truth of an analysis: shares of answers, and effects that are 0 unless they are stated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq, root

from inference.analyses.linear import Linear
from inference.analyses.parameter_names import INTERCEPT
from inference.analyses.program import Assembled
from inference.analyses.table import Values
from inference.design.truth import unstated
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError

# The range in which cutpoints are searched.
FAR = 60.0


class FormulaTruth:
    """The truth at which an analysis is evaluated.

    shares: {private column or public outcome: {answer: share}} as stated; with two answers "" is the second.
    effects: {parameter: value}. Raises InputError for names that the analysis does not have, and for shares
    that no law has.

    sites: {site: value}. fixed: sites that are taken as known. words: the assumptions.
    """

    def __init__(
        self, analysis: Assembled, shares: Mapping[str, float], effects: Mapping[str, float]
    ) -> None:
        self._analysis, self._effects = analysis, dict(effects)
        self._asked: list[str] = []
        self._shares = dict(shares)
        self._said: dict[str, str] = {}
        self.fixed: tuple[str, ...] = ()
        self.sites: dict[str, Values] = {}
        self._add_groups()
        self._add_own()
        weights = self._predictors()
        self._outcome(weights)
        self._refuse_others()
        self.words = (*self._said.values(), self._effects_in_words())

    def _stated(self, name: str, missing: float | None = None) -> float:
        """Return an effect. Raises InputError if a required effect is missing."""
        self._asked.append(name)
        value = self._effects.get(name, missing)
        if value is None:
            raise unstated(name)
        return value

    def _add_groups(self) -> None:
        """Take sds between groups as known: the linear information on them is zero if effects are 0."""
        for group in (*self._analysis.groups, *self._analysis.shares_groups):
            self.sites |= {name: np.asarray(value, float) for name, value in group.initial().items()}
            names = [one.name for one in group.entries if one.prior is not None]
            outputs = len(group.outputs)
            for place in range(len(group.spreads)):
                own = [self._positive(name) for name in names[place * outputs : (place + 1) * outputs]]
                site = f"{group.site}_sd_{place}"
                self.sites[site] = np.asarray(own)
                self.fixed = (*self.fixed, site)

    def _positive(self, name: str) -> float:
        value = self._stated(name)
        if not value > 0:
            raise InputError(
                f"the truth of {name} must be above 0, not {value:g}", code="plan.formula_truth_not_positive"
            )
        return value

    def _add_own(self) -> None:
        if not self._analysis.outcome.cutpoints:
            self.sites |= {name: np.asarray(self._positive(name)) for name in self._analysis.outcome.own}
        for weights in self._analysis.opened.weights:
            values = [self._stated(name) for name in weights.names]
            if min(values) <= 0 or max(values) >= 1 or (weights.labels and abs(sum(values) - 1) > 1e-6):
                what = "be above 0 and add up to 1" if weights.labels else "be between 0 and 1"
                raise InputError(
                    f"the truth of {listed(weights.names)} must {what}",
                    code="plan.formula_truth_not_probability",
                )
            self.sites |= weights.sites_at(values)

    def _coefficients(self, law: Linear) -> Values:
        """Effects as stated, (columns, outputs); the intercepts 0."""
        found = np.zeros((len(law.matrix.terms), len(law.outputs)))
        for row, names in enumerate(law.names()):
            if law.matrix.terms[row] != INTERCEPT:
                found[row] = [self._stated(name, 0.0) for name in names]
        return found

    def _predictors(self) -> Values:
        """Set the law of the private predictors. Return their shares of all people, (cells, combinations)."""
        analysis = self._analysis
        cells = analysis.cells.sizes / analysis.cells.sizes.sum()
        if analysis.shares is None:
            return cells[:, None]
        each = [self._target(one.name, one.answers) for one in analysis.predictors]
        wanted = np.asarray([np.prod(combination) for combination in product(*each)])
        coefficients = self._coefficients(analysis.shares)
        eta = analysis.shares.matrix.values @ coefficients
        middle = _intercepts(eta, cells[:, None], wanted, _softmax)
        coefficients[analysis.shares.intercept_place] = middle
        self.sites |= analysis.shares.sites(coefficients)
        return np.asarray(cells[:, None] * _softmax(eta + middle)[:, 0])

    def _outcome(self, weights: Values) -> None:
        """Set the outcome's law. weights: (cells, combinations) of people."""
        analysis, law = self._analysis, self._analysis.law
        coefficients = self._coefficients(law)
        eta = law.matrix.values @ coefficients
        own = {name: jnp.asarray(self.sites[name]) for name in self.sites}

        def shares(linear: Values) -> Values:
            with jax.enable_x64(True):
                return np.exp(np.asarray(analysis.outcome.law.at(jnp.asarray(linear), own)))

        answers = analysis.outcome.answers
        if analysis.outcome.cutpoints:
            cuts = _cutpoints(eta[..., 0], weights, self._target(analysis.formula.outcome, answers))
            # The program's columns are centred.
            self.sites["threshold"] = cuts - law.middles @ coefficients[law.columns, 0]
        elif law.intercept:
            names = law.names()[law.intercept_place]
            if any(name in self._effects for name in names) or not answers:
                middle = np.asarray([self._stated(name) for name in names])
                self._said_shares(shares(eta + middle), weights) if answers else None
            else:
                self._asked += names
                wanted = self._target(analysis.formula.outcome, answers)
                middle = _intercepts(eta, weights, wanted, shares)
            coefficients[law.intercept_place] = middle
        elif answers:
            self._said_shares(shares(eta), weights)
        self.sites |= law.sites(coefficients)

    def _said_shares(self, law: Values, weights: Values) -> None:
        """Report shares that follow from coefficients. Raises InputError if others are stated too."""
        name = self._analysis.formula.outcome
        if any(key.partition("[")[0] == name for key in self._shares):
            raise InputError(
                f"the share of {name} follows from the coefficients: state it, or them by --truth",
                code="plan.share_follows",
            )
        self._say(name, self._analysis.outcome.answers, np.einsum("ck,cka->a", weights, law))

    def _say(
        self, name: str, answers: Sequence[str], shares: Values | Sequence[float], how: str = ""
    ) -> None:
        both = zip(answers, shares, strict=True)
        told = ", ".join(f"{answer} {100 * share:.3g} %" for answer, share in both)
        self._said[name] = f"{name}: {told}{how}"

    def _target(self, name: str, answers: Sequence[str]) -> list[float]:
        """Return the shares of a column's answers: as stated, the remainder spread evenly over the others."""
        keys = {answer: [f"{name}[{answer}]"] for answer in answers}
        if len(answers) == 2:
            keys[answers[1]].append(name)
        given: dict[str, float] = {}
        for answer, known in keys.items():
            stated = [self._shares.pop(key) for key in known if key in self._shares]
            if len(stated) > 1:
                raise InputError(
                    f"the share of {known[0]} was stated twice: as {known[1]} too",
                    code="plan.share_stated_twice",
                )
            if stated:
                given[answer] = stated[0]
        rest = [answer for answer in answers if answer not in given]
        left = 1 - sum(given.values())
        if any(not 0 < share < 1 for share in given.values()) or (left < 1e-9 if rest else abs(left) > 1e-6):
            told = ", ".join(f"{answer} {share:g}" for answer, share in given.items())
            raise InputError(
                f"the shares of {name} ({told}) must be between 0 and 1, and add up to 1",
                code="plan.wrong_shares",
            )
        found = [given[answer] if answer in given else left / len(rest) for answer in answers]
        how = "" if given else f" (not stated: --share {name}{'' if len(answers) == 2 else '[…]'}=…)"
        self._say(name, answers, found, how)
        return found

    def _refuse_others(self) -> None:
        """Raise InputError for stated values that have no meaning here."""
        for key in self._shares:
            known = [one.name for one in self._analysis.privates]
            known += [self._analysis.formula.outcome] if self._analysis.response is None else []
            raise InputError(
                f"--share {key}: shares are of the answers to {listed(known)}, as NAME[ANSWER]=0.2",
                code="plan.unknown_share",
            )
        for key in self._effects:
            if key not in self._asked:
                raise InputError(
                    f"{key!r} is no parameter of the formula, which has {listed(self._asked)}",
                    code="plan.unknown_truth",
                )

    def _effects_in_words(self) -> str:
        stated = ", ".join(f"{name} {value:g}" for name, value in self._effects.items())
        return f"effects: {f'{stated}; all others ' if stated else 'all '}0"


def _softmax(eta: Values) -> Values:
    whole = np.concatenate([np.zeros_like(eta[..., :1]), eta], axis=-1)
    found = np.exp(whole - whole.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def _intercepts(
    eta: Values, weights: Values, wanted: Sequence[float] | Values, law: Callable[[Values], Values]
) -> Values:
    """Intercepts (outputs,) at which the average law over all people has the wanted shares."""
    target = np.asarray(wanted)

    def missing(middle: Values) -> Values:
        average = np.einsum("ck,cka->a", weights, law(eta + middle))
        return np.log(average[1:] / average[0]) - np.log(target[1:] / target[0])

    found = root(missing, np.log(target[1:] / target[0]))
    if not found.success or np.abs(missing(found.x)).max() > 1e-6:
        raise InputError(
            "no intercept gives these shares with these effects: state smaller effects",
            code="plan.no_intercept",
        )
    return np.asarray(found.x)


def _cutpoints(eta: Values, weights: Values, wanted: Sequence[float]) -> Values:
    """Cutpoints at which the average shares are those wanted."""

    def beyond(cut: float, share: float) -> float:
        return float(np.sum(weights / (1 + np.exp(eta - cut)))) - share

    return np.asarray([brentq(beyond, -FAR, FAR, (share,)) for share in np.cumsum(wanted)[:-1]])
