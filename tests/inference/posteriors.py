"""Posteriors made by hand, for tests of what is said, drawn or calculated of one."""

import numpy as np

from inference import Posterior
from inference.results.convergence import Mixing, diagnose
from inference.results.intervals import USUAL
from inference.results.prior_notes import informativeness
from inference.results.provenance import made_now
from inference.results.report import TEMPLATES, shown_of
from inference.results.verdict import INFORMATIVENESS, Finding

SHAPE = (4, 1000)
NOTHING = (Finding(INFORMATIVENESS, "the noise drowns the signal"),)


def page_of(posteriors, study):
    shown = shown_of(posteriors, study, "", USUAL, made_now())
    return TEMPLATES.get_template("report.html.j2").render(shown)


def reasons(posterior, part):
    return [one.text for one in posterior.verdict.against if one.part == part]


def made(question="colour", names=("p[<b>red</b>]", "p[blue/green]"), findings=(), others=(), **more):
    random = np.random.default_rng(0)
    first = random.beta(30, 70, SHAPE)
    draws = dict(zip(names, (first, 1 - first), strict=False)) | dict(others)
    one, many = dict.fromkeys(draws, 1.0), dict.fromkeys(draws, 4000.0)
    found = diagnose(draws, np.zeros(SHAPE, bool), findings, known=Mixing(one, many, many))
    more["prior_draws"] = {name: random.uniform(size=1000) for name in draws}
    return Posterior(question, "multinomial", 100, draws, one, *found, "digest", 1, **more)


def learnt(study, question, names, prior_sd=1.0):
    random = np.random.default_rng(4)
    draws = {name: random.normal(0.3, 0.02, SHAPE) for name in names}
    before = {name: random.normal(0.3, prior_sd, 1000) for name in names}
    found = diagnose(draws, np.zeros(SHAPE, bool), informativeness(draws, before))
    model, sds = study.question(question).model.name, dict.fromkeys(names, prior_sd)
    return Posterior(question, model, 500, draws, sds, *found, study.digest, 0, prior_draws=before)
