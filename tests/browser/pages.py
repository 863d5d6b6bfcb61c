"""A report page of three questions, one of which learnt nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inference.results.convergence import diagnose
from inference.results.posterior import Posterior
from inference.results.prior_notes import informativeness
from schemas import Study
from tests import studies
from tests.inference.posteriors import page_of

LABELS = ["student", "worker", "teacher, nurse, artist, technician or skilled work"]
STUDY = Study(studies.document(studies.YES_NO, {**studies.CHOICE, "choices": LABELS}, studies.LINEAR))
PARAMETERS = {
    "ever": ("bernoulli", ["p"]),
    "occupation": ("multinomial", [f"p[{label}]" for label in LABELS]),
    "rating": ("linear_regression", ["intercept", "coefficient[age]", "coefficient[years]", "sd"]),
}


def _posterior_of(question: str, prior_sd: float) -> Posterior:
    model, names = PARAMETERS[question]
    random = np.random.default_rng(4)
    draws = {name: random.normal(0.3, 0.1, (4, 1000)) for name in names}
    prior = dict.fromkeys(names, prior_sd)
    prior_draws = {name: random.normal(0.3, prior_sd, 1000) for name in names}
    found = diagnose(draws, np.zeros((4, 1000), bool), informativeness(draws, prior_draws))
    return Posterior(question, model, 500, draws, prior, *found, STUDY.digest, 0)


def report_page(folder: Path) -> str:
    """Its address."""
    posteriors = {name: _posterior_of(name, 0.11 if name == "rating" else 1.0) for name in PARAMETERS}
    path = folder / "report.html"
    raw = {name: {key: float(d.mean()) for key, d in p.draws.items()} for name, p in posteriors.items()}
    path.write_text(page_of(posteriors, STUDY, raw))
    return path.as_uri()
