"""A posterior: draws, their diagnostics, and where they came from."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, Self

import arviz_base
import numpy as np
from numpy.typing import NDArray
from xarray import DataTree

from inference.results.answer_law import AnswerLaw
from inference.results.diagnostics import Diagnostics, is_fixed
from inference.results.identified import IdentifiedSets
from inference.results.predictive import Predictive
from inference.results.verdict import Verdict
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import replacing
from ldp_client.words.text import counted

RESULT = "posterior.json"
# A file of very many variables takes minutes to write.
MOST_VARIABLES = 200
QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}


class Rows(dict[str, dict[str, float]]):
    """A table of numbers by parameter, with the verdict on them."""

    def __init__(self, rows: Mapping[str, dict[str, float]], verdict: Verdict) -> None:
        super().__init__(rows)
        self.verdict = verdict


@dataclass(frozen=True)
class Posterior:
    """The posterior of one question.

    Attributes:
        question: its id.
        model: its model's name.
        n: reports used, or records of tables' holders.
        draws: {parameter: array of shape (chains, draws)}, in the question's own units.
        prior_sd: {parameter: sd before the data, inf without a prior}.
        diagnostics: what the chains, the model check and the data say; `verdict` sums it up.
        study: digest of the study document.
        seed: of the sampler.
        method: "nuts", "laplace" or a name of inference.published.
        prior: as a study states it, with numbers for decimals.
        prior_draws: {parameter: array of shape (draws,)}, of those with a prior.
        predictive: simulated reports beside the observed ones; None where none were simulated.
        holders: how many, None where people answered.
        law: the distribution of the answers, where the model is no law.
        identified: what false reports leave possible; None where that was not asked.
    """

    question: str
    model: str
    n: int
    draws: Mapping[str, NDArray[np.float64]]
    prior_sd: Mapping[str, float]
    diagnostics: Diagnostics
    study: str
    seed: int
    method: str = "nuts"
    prior: Mapping[str, Any] = field(default_factory=dict)
    prior_draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    predictive: Predictive | None = None
    holders: int | None = None
    law: AnswerLaw | None = None
    identified: IdentifiedSets | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether chains, model and knowledge are good; read it before the numbers."""
        return self.diagnostics.verdict

    def summary(self) -> Rows:
        """Summarise the draws of each parameter.

        Returns:
            {parameter: mean, sd, sd over the prior's, 5 %, 50 % and 95 % quantiles, R-hat, both ESS}, in the
            question's own units; its `verdict` says what they are worth.
        """
        return Rows({name: self._row(name, draws) for name, draws in self.draws.items()}, self.verdict)

    def _row(self, name: str, draws: NDArray[np.float64]) -> dict[str, float]:
        row = {"mean": float(draws.mean()), "sd": float(draws.std(ddof=1))}
        row["sd_over_prior_sd"] = row["sd"] / self.prior_sd[name] if name in self.prior_sd else float("nan")
        row |= {label: float(np.quantile(draws, level)) for label, level in QUANTILES.items()}
        found = self.diagnostics
        row |= {
            "r_hat": found.r_hat[name],
            "ess_bulk": found.ess_bulk[name],
            "ess_tail": found.ess_tail[name],
        }
        return row

    def devices_to_halve(self) -> dict[str, float]:
        """Estimate how many devices, or holders like these, would halve each parameter's interval.

        Information adds up: 1/sd² = 1/prior_sd² + n·i, so half the sd needs n(1 + 3 share⁻¹) devices,
        where share is the part of 1/sd² that came from the reports.

        Returns:
            {parameter: about how many}; inf where reports taught nothing, or where nothing is left to narrow.
        """
        needed = {}
        for name, draws in self.draws.items():
            share = 1 - draws.var() / self.prior_sd[name] ** 2
            needed[name] = (
                (self.holders or self.n) * (1 + 3 / share)
                if share > 0.05 and not is_fixed(draws)
                else float("inf")
            )
        return needed

    def doubted(self, reasons: tuple[str, ...]) -> Self:
        """Call the model bad for reasons.

        Args:
            reasons: why the reports do not fit it.

        Returns:
            The same posterior; unchanged where there are no reasons.
        """
        return replace(self, diagnostics=self.diagnostics.with_model(reasons))

    def noted(self, notes: tuple[str, ...]) -> Posterior:
        """Add notes to the diagnostics.

        Args:
            notes: sentences for who reads the result.

        Returns:
            The same posterior with these notes behind its own.
        """
        diagnostics = replace(self.diagnostics, notes=(*self.diagnostics.notes, *notes))
        return replace(self, diagnostics=diagnostics)

    def size_in_words(self) -> str:
        """Say how much was used: reports, or records of holders."""
        if self.holders is None:
            return counted(self.n, "report")
        return f"{counted(self.n, 'record')} of {counted(self.holders, 'holder')}"

    def to_arviz(self) -> DataTree:
        """Return the draws as ArviZ reads them.

        Returns:
            A tree whose attributes are study digest, question, model and seed. Each parameter is a variable;
            of more than 200, name[x], name[y] … are one, x, y … along `name_of`.
        """
        attributes = {"study": self.study, "question": self.question, "model": self.model, "seed": self.seed}
        draws = dict(self.draws)
        labels: dict[str, list[str]] = {}
        if len(draws) > MOST_VARIABLES:
            draws, labels = _together(draws)
        # NetCDF keeps "/" for groups; a division slash looks the same.
        draws = {name.replace("/", "∕"): np.asarray(values) for name, values in draws.items()}
        return arviz_base.from_dict(
            {"posterior": draws},
            attrs={"/": attributes},
            dims={name: [f"{name}_of"] for name in labels},
            coords={f"{name}_of": found for name, found in labels.items()},
        )

    def to_document(self) -> dict[str, Any]:
        """Return this question's entry in posterior.json, where `draws` counts those of each chain."""
        found = self.diagnostics
        return {
            "model": self.model,
            "method": self.method,
            "draws": next(iter(self.draws.values())).shape[1],
            "prior": self.prior,
            "n": self.n,
            **({} if self.holders is None else {"holders": self.holders}),
            "ok": found.ok,
            "verdict": found.verdict.to_document(),
            "reasons": list(found.reasons),
            "notes": list(found.notes),
            "parameters": self.summary(),
            **({} if self.law is None else {"law": self.law.to_document()}),
            **({} if self.identified is None else {"false_reports": self.identified.to_document()}),
        }

    def save(self, folder: str | Path) -> None:
        """Write posterior.json and the draws (QUESTION.nc, NetCDF) into a folder.

        Other questions of the same study and seed that posterior.json holds already are kept.

        Args:
            folder: a path; made when missing.

        Raises:
            InputError: the folder is no path or no folder, posterior.json there holds another study's result
                or others under another seed, or a file of draws is no result of a fit: nothing is written
                then.
        """
        if not isinstance(folder, str | Path):
            raise InputError(f"the folder must be a path, not a {type(folder).__name__}")
        save_posteriors({self.question: self}, Path(folder))


def _together(
    draws: Mapping[str, NDArray[np.float64]],
) -> tuple[dict[str, NDArray[np.float64]], dict[str, list[str]]]:
    """The draws of name[x], name[y] … as one array (chains, draws, labels), and the labels, by name."""
    labels: dict[str, list[str]] = {}
    for whole in draws:
        name, bracket, rest = whole.partition("[")
        if bracket:
            labels.setdefault(name, []).append(rest.removesuffix("]"))
    found = {name: values for name, values in draws.items() if "[" not in name}
    for name, ones in labels.items():
        found[name] = np.stack([draws[f"{name}[{one}]"] for one in ones], axis=-1)
    return found, labels


def save_posteriors(posteriors: Mapping[str, Posterior], folder: Path) -> None:
    """Write posterior.json for all questions of one study, and each question's draws."""
    first = next(iter(posteriors.values()))
    questions = {name: posterior.to_document() for name, posterior in posteriors.items()}
    document = {"study": first.study, "seed": first.seed}
    document["questions"] = {**_saved_before(folder / RESULT, document, set(questions)), **questions}
    folder.mkdir(parents=True, exist_ok=True)
    # Not a number has no place in JSON: a parameter without spread has no R-hat.
    text = json.dumps(_without_nan(document), indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(str(folder / RESULT)) as file:
        file.write(text + "\n")
    for name, posterior in posteriors.items():
        # Through memory: HDF5 does not survive a disk that fills while it writes.
        buffer = io.BytesIO()
        posterior.to_arviz().to_netcdf(buffer, engine="h5netcdf")
        (folder / f"{name}.nc").write_bytes(buffer.getvalue())


def _saved_before(path: Path, head: dict[str, Any], replaced: set[str]) -> dict[str, Any]:
    """The questions of an earlier posterior.json. Raises InputError where they would not belong together."""
    if path.parent.exists() and not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder")
    if not path.exists():
        _refuse_other_draws(path.parent, replaced)
        return {}
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        questions: dict[str, Any] = {**saved["questions"]}
        study, seed = saved["study"], saved["seed"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is no result of a fit: choose another folder") from None
    if study != head["study"]:
        raise InputError(f"{path.parent} holds a fit of another study ({study}): choose another folder")
    _refuse_other_draws(path.parent, replaced - set(questions))
    kept = {name: found for name, found in questions.items() if name not in replaced}
    if kept and seed != head["seed"]:
        raise InputError(
            f"{path.parent} holds {min(kept)} under seed {seed}, not {head['seed']}: choose another folder"
        )
    return kept


def _refuse_other_draws(folder: Path, names: set[str]) -> None:
    """Raises InputError where draws would be written over a file that posterior.json does not speak of."""
    for name in sorted(names):
        if (folder / f"{name}.nc").exists():
            raise InputError(f"{folder} holds {name}.nc, which is no result of a fit: choose another folder")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value
