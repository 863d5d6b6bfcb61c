"""A posterior: draws, the findings of their checks, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inference.results.answer_law import AnswerLaw, Implied
from inference.results.convergence import Mixing
from inference.results.identified import IdentifiedSets
from inference.results.intervals import AT_MOST, REFUSED, USUAL, Interval, in_words, interval_of
from inference.results.printed import text_of
from inference.results.quantity import Quantity
from inference.results.tree import Axis, axes_of, tree_of
from inference.results.verdict import NOTE, USABLE, Finding, Verdict, listed
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted, nearest, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from xarray import DataTree

    from inference.predictive import Predictive


# Each model's parameter names for shares of people.
SHARES = {"bernoulli": "p", "multinomial": "p", "joint table": "p", "nonparametric": "above"}
# A number's mean by its law, and the mean of the answers as clipped to the bounds.
MEAN, CLIPPED_MEAN = "mean", "clipped_mean"


@dataclass(frozen=True, repr=False)
class Posterior:
    """The posterior of one question, or of one formula.

    Attributes:
        question: the question's id; of a formula, its outcome.
        model: the model's name.
        n: number of reports used, or of the holders' records.
        draws: {parameter: array of shape (chains, draws)}, in the question's own units.
        prior_sd: {parameter: sd before the data, inf without a prior}.
        findings: of the checks of chains, model, data and prior; `verdict` summarises them.
        mixing: R-hat and effective sample sizes.
        study_digest: digest of the study document, or of a table.
        seed: of the sampler.
        method: "nuts", "gaussian_approx" or a name of inference.published.
        prior: the prior as a study states it, with numbers for decimals.
        prior_draws: {parameter: array of shape (draws,)}, for parameters with a prior.
        predictive: simulated and observed reports; None if no reports were simulated.
        holders: the number of data holders; None if people answered.
        law: the distribution of the answers, for a model without a law.
        identified: possible values under false reports; None if not requested.
        implied: the consequences of a number's law; None if the model has no such law.
        diverging: of shape (chains, draws), which transitions diverged; None for methods other than NUTS.
        log_likelihood: computes the log-likelihood of each report, (chains, draws, reports), or None if the
            model describes sums of reports.
        unit: of a number, as the study states it.
        log_odds: whether slopes are log-odds of a yes.
        formula: as given, or the names of crossed columns; "" for a question.
        form: of a formula, whether reports were counted together or one by one.
        quantities: of a formula, what answers the question: odds ratios, shares, differences and totals.
        spreads: of a formula, the sd of each coefficient's column.
        noise: of a formula, how the design or the study describes the noise.
        mode: of a formula, its entry in posterior.json: the peak of the posterior density, which is the
            maximum likelihood estimate under flat priors.
        axes: for each parameter with brackets in its name, its place in ArviZ's groups; empty to read it from
            the name.
    """

    question: str
    model: str
    n: int
    draws: Mapping[str, NDArray[np.float64]]
    prior_sd: Mapping[str, float]
    findings: tuple[Finding, ...]
    mixing: Mixing
    study_digest: str
    seed: int
    method: str = "nuts"
    prior: Mapping[str, Any] = field(default_factory=dict)
    prior_draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    predictive: Predictive | None = None
    holders: int | None = None
    law: AnswerLaw | None = None
    identified: IdentifiedSets | None = None
    implied: Implied | None = field(default=None, compare=False)
    diverging: NDArray[np.bool_] | None = None
    unit: str = ""
    log_odds: bool = False
    log_likelihood: Callable[[], NDArray[np.float64] | None] | None = field(default=None, compare=False)
    formula: str = ""
    form: str = ""
    quantities: tuple[Quantity, ...] = ()
    spreads: Mapping[str, float] = field(default_factory=dict)
    noise: tuple[str, ...] = ()
    mode: Mapping[str, Any] | None = None
    axes: Mapping[str, Axis] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on each quantity; read it before the numbers."""
        return Verdict.of_findings(self.findings, self.headlines)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes for the reader, which change no verdict."""
        return tuple(finding.text for finding in self.findings if finding.part == NOTE)

    @cached_property
    def headlines(self) -> tuple[str, ...]:
        """Return the parameters that answer the question: shares, slopes, a number's mean, or else all."""
        if slopes := tuple(name for name in self.draws if name in self.spreads):
            return slopes
        refused = [REFUSED] if REFUSED in self.draws else []
        if self.model in ("bernoulli", "multinomial", "joint table"):
            return (*(name for name in self.draws if name == "p" or name.startswith("p[")), *refused)
        slopes = tuple(name for name in self.draws if name.startswith("coefficient["))
        means = [name for name in (CLIPPED_MEAN, MEAN) if name in self.draws]
        return slopes or tuple([*means[:1], *refused] if means else self.draws)

    def in_words(self, name: str, interval: Interval = USUAL) -> tuple[str, str, str]:
        """Put a parameter in the reader's terms.

        Args:
            name: the parameter's name.
            interval: the kind of interval.

        Returns:
            What it is, its median with the unit, and its interval. A slope of log-odds becomes an odds ratio.
        """
        draws, words = self.draws[name], name
        if name.startswith("coefficient["):
            words = name[len("coefficient[") : -1]
            if self.log_odds:
                draws, words = np.exp(draws), f"odds ratio of {words}"
        elif self.is_share(name) and name.startswith("p"):
            words = "yes" if name == "p" else name[2:-1]
        words = {REFUSED: "prefer not to say", CLIPPED_MEAN: "mean of answers as clipped"}.get(name, words)
        median, ends = in_words(draws, self.is_share(name), interval)
        unit = f" {self.unit}" if self.unit and name in (MEAN, CLIPPED_MEAN, "sd") else ""
        return visible(words), f"{median}{unit}", ends

    def __getitem__(self, name: str) -> Quantity:
        """Return a parameter, or a number derived from parameters, as a quantity to calculate with.

        Args:
            name: of a parameter; of a formula, also of an odds ratio, a share, a difference or a total.

        Raises:
            InputError: the posterior has nothing of this name; the error suggests a similar name.
        """
        quantities = {quantity.name: quantity for quantity in self.quantities}
        if name in self.draws:
            known = self.quantity(name, f"{name} of {self.question}", self.draws[name])
            return replace(known, share=self.is_share(name), doubts=self._doubts(name))
        if name in quantities:
            asked = quantities[name]
            known = self.quantity(name, asked.words, asked.draws)
            # Averages over people are drawn from fewer of the coefficients' draws.
            same = asked.draws.shape == next(iter(self.draws.values())).shape
            return replace(known, contrast=asked.contrast, fits=(self.draws if same else asked.draws,))
        near = nearest(str(name), [*self.draws, *quantities])
        hint = f"did you mean {near}?" if near else f"it has {listed(list(self.draws))}"
        raise InputError(
            f"{self.question} has no parameter {name!r}: {hint}", code="result.unknown_parameter"
        )

    def is_share(self, name: str) -> bool:
        """Return True if a parameter is a share of people, which is shown in per cent.

        Args:
            name: the parameter's name.

        Returns:
            Whether it is a share under this model. Other models, and columns, may use the same names.
        """
        kind = name.partition("[")[0]
        return not self.spreads and (
            name == REFUSED
            or kind == SHARES.get(self.model)
            or (self.model == "multinomial" and kind == AT_MOST)
        )

    def quantity(self, name: str, words: str, draws: NDArray[np.float64]) -> Quantity:
        """Make a quantity of numbers calculated from the draws.

        Args:
            name: its name. A quantity whose name begins with "share" is shown in per cent.
            words: its description.
            draws: of shape (chains, draws), one for each draw of the parameters.

        Returns:
            The quantity, with the doubts of this posterior's verdict.
        """
        studies = frozenset({self.study_digest} - {""})
        doubts = self._doubts(*self.headlines)
        return Quantity(name, words, draws, fits=(self.draws,), studies=studies, doubts=doubts)

    def _doubts(self, *names: str) -> tuple[str, ...]:
        judged = self.verdict.of(*names)
        return () if judged.word == USABLE else (f"{self.question}: {judged}",)

    def share_above(self, value: float) -> Quantity:
        """Return the share of people whose answers are above a value.

        Args:
            value: in the question's units, from the lower bound to below the upper bound.

        Returns:
            The share by the model's law at each draw.

        Raises:
            InputError: the question asks for no number, or the value is not between its bounds.
        """
        law = self._implied("share_above")
        if not isinstance(value, int | float) or not law.low <= value < law.high:
            raise InputError(
                f"{self.question}: give a value from {law.low:g} to below {law.high:g}, not {value!r}",
                code="result.value_beyond_bounds",
            )
        draws = law.above(float(value))
        return self.quantity(f"share above {value:g}", f"the share of {self.question} above {value:g}", draws)

    def mean(self) -> Quantity:
        """Return the mean of answers without bounds, by the model's law.

        Returns:
            The mean, in the question's units; under `nonparametric`, the mean of answers as clipped.

        Raises:
            InputError: the question asks for no number.
        """
        law = self._implied("mean")
        return self.quantity("mean", f"the mean of {self.question}", law.mean())

    def _implied(self, asked: str) -> Implied:
        if self.implied is None:
            raise InputError(
                f"{self.question} has no {asked}: the model {self.model} has no law of a number. Take a "
                f"parameter by name, such as posterior[{next(iter(self.draws))!r}]",
                code="result.no_law_of_answers",
            )
        return self.implied

    def summary(self, level: float = USUAL.level) -> pd.DataFrame:
        """Summarise the draws of each parameter, in the question's own units.

        Args:
            level: the probability that intervals hold; their ends are named as quantiles (q05, q95).

        Returns:
            A row for each parameter: mean, sd, sd over the prior's, the interval with the median (q50),
            R-hat, both ESS, and its verdict; the frame's attrs have the findings.

        Raises:
            InputError: level is no probability.
        """
        import pandas as pd

        frame = pd.DataFrame.from_dict(self.table(interval_of(level)), orient="index")
        # Plain values, so that the frame can be written to a file together with its attrs.
        frame.attrs = {
            "question": self.question,
            "study_digest": self.study_digest,
            "level": level,
            **self.verdict.to_document(),
        }
        return frame

    def plot(self, level: float = USUAL.level) -> Axes:
        """Draw medians and intervals, as the report page does.

        Args:
            level: the probability that intervals hold.

        Returns:
            Matplotlib's axes of the first scale; others are in its figure's `axes`.

        Raises:
            InputError: level is no probability.
        """
        from inference.results.figures import interval_axes

        return interval_axes(self, interval_of(level))

    def __repr__(self) -> str:
        return text_of(self, USUAL)

    def rows(self, interval: Interval = USUAL) -> dict[str, dict[str, float]]:
        """Summarise the draws of each parameter, as posterior.json does.

        Args:
            interval: whose ends are among the quantiles.

        Returns:
            {parameter: mean, sd, sd over the prior's, three quantiles, R-hat, both ESS}.
        """
        low, high = interval.columns
        rows = {}
        for name, draws in self.draws.items():
            sd, ends = float(draws.std(ddof=1)), interval.of(draws)
            rows[name] = {
                "mean": float(draws.mean()),
                "sd": sd,
                "sd_over_prior_sd": sd / self.prior_sd.get(name, float("nan")),
                low: ends[0],
                "q50": float(np.median(draws)),
                high: ends[1],
                "r_hat": self.mixing.r_hat[name],
                "ess_bulk": self.mixing.ess_bulk[name],
                "ess_tail": self.mixing.ess_tail[name],
            }
        return rows

    def table(self, interval: Interval) -> dict[str, dict[str, Any]]:
        """Return a row for each parameter, as `summary` and tables.csv have it.

        Args:
            interval: as for `rows`.

        Returns:
            Those rows, with each parameter's verdict and the first reason for it.
        """
        verdict = self.verdict
        return {name: {**row, "verdict": str(verdict.of(name))} for name, row in self.rows(interval).items()}

    def size_in_words(self) -> str:
        """Return the number of reports used, or of records and holders, in words."""
        if self.holders is None:
            return counted(self.n, "report")
        return f"{counted(self.n, 'record')} of {counted(self.holders, 'holder')}"

    def to_arviz(self) -> DataTree:
        """Return the draws as ArviZ reads them.

        Returns:
            A tree with the groups posterior, prior and sample_stats. If reports were simulated: also
            prior_predictive, posterior_predictive and observed_data (a summary's groups, per report). If the
            model describes single reports: also log_likelihood, for `arviz_stats.loo` and `compare`. The
            dimensions are `choice` for choices, `feature` for features, and `name_of` for other names with
            brackets. The attributes include study digest, question, model and seed.
        """
        groups: dict[str, Mapping[str, NDArray[Any]]] = {}
        each = self.log_likelihood() if self.log_likelihood is not None else None
        if each is not None:
            groups["log_likelihood"] = {"report": each}
        if self.diverging is not None:
            groups["sample_stats"] = {"diverging": self.diverging}
        if self.predictive is not None:
            if self.predictive.prior is not None:
                groups["prior_predictive"] = {"reports": self.predictive.prior[None]}
            groups["posterior_predictive"] = {"reports": self.predictive.posterior[None]}
            groups["observed_data"] = {"reports": self.predictive.observed}
        before = {name: draws[None] for name, draws in self.prior_draws.items()}
        attributes: dict[str, Any] = {
            "study_digest": self.study_digest, "question": self.question, "model": self.model,
            "seed": self.seed, "verdict": str(self.verdict.overall),
            **({"formula": self.formula} if self.formula else {}),
        }  # fmt: skip
        return tree_of(self.draws, before, self.axes or axes_of(self.draws), groups, attributes)

    def to_netcdf(self) -> bytes:
        """Return the tree without log_likelihood as a NetCDF file's bytes, which xarray and ArviZ open."""
        # Written in memory: HDF5 does not recover if the disk fills while it writes.
        return bytes(replace(self, log_likelihood=None).to_arviz().to_netcdf(engine="h5netcdf"))

    def to_document(self) -> dict[str, Any]:
        """Return this question's entry in posterior.json; `draws` is the number of draws per chain."""
        verdict = self.verdict
        words = {name: verdict.of(name).word for name in self.draws}
        document: dict[str, Any] = {
            "model": self.model,
            "method": self.method,
            "draws": next(iter(self.draws.values())).shape[1],
            "prior": self.prior,
            "n": self.n,
            **({} if self.holders is None else {"holders": self.holders}),
            "verdict": verdict.to_document(),
            "notes": list(self.notes),
            "parameters": {name: {**row, "verdict": words[name]} for name, row in self.rows().items()},
            **({} if self.law is None else {"law": self.law.to_document()}),
            **({} if self.identified is None else {"contamination": self.identified.to_document()}),
        }
        if self.formula:
            document |= {"formula": self.formula, "form": self.form, "noise": list(self.noise)}
            document |= {} if self.mode is None else {"mode": self.mode}
            document["quantities"] = {each.name: each.to_document() for each in self.quantities}
        return document

    def save(self, folder: str | Path) -> None:
        """Write posterior.json and the draws (QUESTION.nc, NetCDF) into a new folder.

        Args:
            folder: a path that does not exist, or an empty folder.

        Raises:
            InputError: the folder exists and is not empty. Nothing is then written.
        """
        from inference.results.saving import new_folder, save_posteriors

        with new_folder(Path(folder)) as made:
            save_posteriors({self.question: self}, made)
